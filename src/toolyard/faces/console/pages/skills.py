"""`/skills`: what agents can load, rendered and raw, with every version; importing and editing."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from starlette.responses import Response

from toolyard.core.errors import BadInput, ToolyardError
from toolyard.core.principal import Scope
from toolyard.faces.console.rendering import path_part
from toolyard.faces.console.visit import Visit
from toolyard.skills import MANIFEST, Skill, from_files, from_text, from_zip

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

NEW = """---
name: my-skill
description: What it does, and when to use it.
metadata:
  title: My skill
  category: General
---
# My skill

1. First, ...
"""


async def index(visit: Visit) -> Response:
    return _listed(visit)


async def create(visit: Visit) -> Response:
    """From an uploaded zip or SKILL.md, or from the text that was written. Only a zip may replace a skill: it has all
    files, where a SKILL.md alone would drop the others unasked."""
    try:
        skill = _given(visit)
        whole = visit.posted.files.get("file", b"").startswith(b"PK")
        await visit.app.skills.save(skill, visit.principal.label, new=None if whole else True)
    except ToolyardError as error:
        return _listed(visit, text=visit.posted.get("text"), error=error)
    return visit.go(f"/skills/{path_part(skill.name)}?notice=skill-saved")


async def show(visit: Visit) -> Response:
    """
    Raises:
        NotFound: there is no such skill or version.
        BadInput: the version is no number.
    """
    entry = visit.app.skills.entry(visit.part("skill"))
    version = _version(visit)
    skill = await visit.app.skills.skill(entry.name, version)
    return visit.page(
        "skill.html",
        skill=skill,
        entry=entry,
        version=version,
        rendered=_markdown().render(skill.body),
        history=await visit.app.skills.history(entry.name),
        servers=[one for one in visit.app.servers.values() if one.shows_skill(entry.name)],
        may_manage=visit.principal.may(Scope.MANAGE) and not entry.declared,
    )


async def edit(visit: Visit) -> Response:
    entry = visit.app.skills.entry(visit.part("skill"))
    skill = await visit.app.skills.skill(entry.name, _version(visit))
    return visit.page("skill_edit.html", entry=entry, text=skill.text, error=None)


async def save(visit: Visit) -> Response:
    """Another version of its SKILL.md; the other files stay. `preview` only shows what it would look like."""
    entry = visit.app.skills.entry(visit.part("skill"))
    text = _raw(visit)
    try:
        before = await visit.app.skills.skill(entry.name)
        skill = from_files({**before.files, MANIFEST: text.encode()}, folder=entry.name)
        if not visit.posted.get("preview"):
            await visit.app.skills.save(skill, visit.principal.label, new=False)
    except ToolyardError as error:
        return visit.page("skill_edit.html", code=422, entry=entry, text=text, error=error)
    if visit.posted.get("preview"):
        rendered = _markdown().render(skill.body)
        return visit.page("skill_edit.html", entry=entry, text=text, error=None, rendered=rendered)
    return visit.go(f"/skills/{path_part(entry.name)}?notice=skill-saved")


async def ask_to_remove(visit: Visit) -> Response:
    return visit.page("remove_skill.html", entry=visit.app.skills.entry(visit.part("skill")))


async def remove(visit: Visit) -> Response:
    await visit.app.skills.remove(visit.part("skill"))
    return visit.go("/skills?notice=skill-removed")


def _listed(visit: Visit, *, text: str = NEW, error: ToolyardError | None = None) -> Response:
    return visit.page(
        "skills.html",
        code=422 if error else 200,
        entries=visit.app.skills.entries,
        may_manage=visit.principal.may(Scope.MANAGE),
        text=text or NEW,
        error=error,
    )


def _given(visit: Visit) -> Skill:
    uploaded = visit.posted.files.get("file")
    if not uploaded:
        return from_text(_raw(visit))
    if uploaded.startswith(b"PK"):
        return from_zip(uploaded)
    try:
        return from_text(uploaded.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput("The file is neither a zip nor UTF-8 text.", where="file") from error


def _raw(visit: Visit) -> str:
    """As it was typed, with the line ends that browsers send made plain."""
    text = next((value for name, value in visit.posted.pairs if name == "text"), "")
    return text.replace("\r\n", "\n")


def _version(visit: Visit) -> int | None:
    given = visit.query.get("version")
    if given is None:
        return None
    if not given.isdecimal() or len(given) > 9:
        raise BadInput(f"{given[:40]!r} is no version.", where="version", suggestion="Choose one from the history.")
    return int(given)


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    """CommonMark with tables. Raw HTML stays text, and pictures and links lead nowhere by script."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
