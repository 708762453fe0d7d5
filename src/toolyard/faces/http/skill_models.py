"""How skills look in answers."""

from __future__ import annotations

from pydantic import Field

from toolyard.faces.http.models import Given, JsonMap


class SkillFileOut(Given):
    path: str
    digest: str = Field(description="`sha256:` and 64 hex digits, over the raw bytes.")
    size: int = Field(description="Bytes.")
    mime_type: str


class SkillOut(Given):
    id: str = Field(description="Its name.")
    name: str
    title: str = Field(description="`metadata.title` of the frontmatter, or the name.")
    description: str
    category: str | None
    apps: list[str]
    frontmatter: JsonMap = Field(description="Of its SKILL.md, as it stands.")
    files: list[SkillFileOut]
    version: int | None = Field(description="Counts from 1; null for a skill of the manifest's folders.")
    updated: str | None
    declared: bool = Field(description="Whether it comes from a folder of the manifest, and is changed there.")


class SkillWithText(SkillOut):
    text: str = Field(description="The whole SKILL.md.")


class SkillVersionOut(Given):
    version: int
    author: str
    created: str
