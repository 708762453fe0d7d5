"""Skills that were imported or written, and every version of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from toolyard.store.base import Connection

MOST_VERSIONS = 50
"""Of one skill; the oldest go."""


@dataclass(frozen=True, slots=True)
class SkillRow:
    """`index` is JSON: what a list of skills needs."""

    name: str
    version: int
    index: str
    updated: float


@dataclass(frozen=True, slots=True)
class Version:
    version: int
    author: str
    created: float


def index(c: Connection) -> list[SkillRow]:
    found = c.execute(
        "SELECT s.name, s.version, v.listing, s.updated FROM skills s "
        "JOIN skill_versions v ON v.name = s.name AND v.version = s.version ORDER BY s.name"
    ).fetchall()
    return [SkillRow(str(row[0]), cast("int", row[1]), str(row[2]), cast("float", row[3])) for row in found]


def content(c: Connection, name: str, version: int | None) -> str | None:
    """The files of a version, the current one where none is named."""
    row = c.execute(
        "SELECT v.content FROM skills s JOIN skill_versions v ON v.name = s.name "
        "WHERE s.name = ? AND v.version = COALESCE(?, s.version)",
        name,
        version,
    ).fetchone()
    return None if row is None else str(row[0])


def versions(c: Connection, name: str) -> list[Version]:
    found = c.execute(
        "SELECT version, author, created FROM skill_versions WHERE name = ? ORDER BY version DESC", name
    ).fetchall()
    return [Version(cast("int", row[0]), str(row[1]), cast("float", row[2])) for row in found]


def save(c: Connection, *, name: str, index: str, content: str, author: str, new: bool) -> SkillRow | None:
    """The next version; None when it should be the first and is not."""
    now = c.now()
    inserted = c.execute(
        "INSERT INTO skills (name, version, updated) VALUES (?, 1, ?) ON CONFLICT DO NOTHING", name, now
    ).rowcount
    if not inserted:
        if new:
            return None
        c.execute("UPDATE skills SET version = version + 1, updated = ? WHERE name = ?", now, name)
    row = c.execute("SELECT version FROM skills WHERE name = ?", name).fetchone()
    version = cast("int", row[0]) if row is not None else 1
    c.execute(
        "INSERT INTO skill_versions (name, version, listing, content, author, created) VALUES (?, ?, ?, ?, ?, ?)",
        name,
        version,
        index,
        content,
        author,
        now,
    )
    c.execute("DELETE FROM skill_versions WHERE name = ? AND version <= ?", name, version - MOST_VERSIONS)
    return SkillRow(name, version, index, now)


def delete(c: Connection, name: str) -> None:
    c.execute("DELETE FROM skill_versions WHERE name = ?", name)
    c.execute("DELETE FROM skills WHERE name = ?", name)
