"""Skills: SKILL.md folders that agents load when they need them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from toolyard.core.clock import rfc3339
from toolyard.core.errors import BadInput, NotFound
from toolyard.core.principal import Scope
from toolyard.faces.http.access import Who, Yard, needs
from toolyard.faces.http.models import Listed
from toolyard.faces.http.paging import Page, cut
from toolyard.faces.http.skill_models import SkillFileOut, SkillOut, SkillVersionOut, SkillWithText
from toolyard.skills import MANIFEST, Skill, SkillEntry, SkillFile, from_files, from_text, from_zip, to_zip

router = APIRouter(tags=["Skills"])
_VERSION = Query(ge=1, le=2**31 - 1)
_SEE = (Scope.READ, Scope.CALL, Scope.MANAGE)
_MARKDOWN, _ZIP = ("text/markdown", "text/plain"), ("application/zip", "application/x-zip-compressed")
_BODY: Any = {
    "requestBody": {
        "required": True,
        "description": "A SKILL.md, or a zip of the skill's folder.",
        "content": {kind: {"schema": {"type": "string"}} for kind in (_MARKDOWN[0], _ZIP[0])},
    }
}


def _with_body(scope: Scope) -> dict[str, Any]:
    arguments = needs(scope)
    return {**arguments, "openapi_extra": {**arguments["openapi_extra"], **_BODY}}


@router.get("/skills", **needs(*_SEE))
async def list_skills(yard: Yard, page: Annotated[Page, Query()]) -> Listed[SkillOut]:
    """Every skill, sorted by name."""
    found, next_cursor = cut(yard.skills.entries, page, key=lambda entry: entry.name)
    return Listed(items=[_out(entry) for entry in found], next_cursor=next_cursor)


@router.post("/skills", **_with_body(Scope.MANAGE), status_code=201)
async def make_skill(yard: Yard, who: Who, request: Request, response: Response) -> SkillOut:
    """Add a skill. Its name is in its frontmatter."""
    entry = await yard.skills.save(await _sent(request), who.label, new=True)
    response.headers["Location"] = f"/v1/skills/{entry.name}"
    return _out(entry)


@router.get("/skills/{name}", **needs(*_SEE))
async def get_skill(yard: Yard, name: str, version: Annotated[int | None, _VERSION] = None) -> SkillWithText:
    """One skill with the text of its SKILL.md; an earlier version where one is named."""
    entry = yard.skills.entry(name)
    skill = await yard.skills.skill(name, version)
    out = _out(entry).model_dump() | {"frontmatter": skill.frontmatter, "files": _files(skill.listing)}
    return SkillWithText.model_validate({**out, "text": skill.text})


@router.put("/skills/{name}", **_with_body(Scope.MANAGE))
async def replace_skill(yard: Yard, who: Who, name: str, request: Request) -> SkillOut:
    """Keep another version. A zip replaces all files; a SKILL.md replaces itself and leaves the others."""
    skill = await _sent(request)
    if skill.name != name:
        raise BadInput(f"The frontmatter says {skill.name!r}, the address {name!r}.", where="SKILL.md: name")
    if len(skill.files) == 1 and not _is_zip(request):
        before = await yard.skills.skill(name)
        skill = from_files({**before.files, MANIFEST: skill.files[MANIFEST]})
    return _out(await yard.skills.save(skill, who.label, new=False))


@router.delete("/skills/{name}", **needs(Scope.MANAGE), status_code=204)
async def delete_skill(yard: Yard, name: str) -> None:
    """Remove a skill and its versions."""
    await yard.skills.remove(name)


@router.get("/skills/{name}/history", **needs(*_SEE))
async def history(yard: Yard, name: str) -> Listed[SkillVersionOut]:
    """Its versions, newest first."""
    found = await yard.skills.history(name)
    items = [SkillVersionOut(version=one.version, author=one.author, created=rfc3339(one.created)) for one in found]
    return Listed(items=items, next_cursor=None)


@router.get("/skills/{name}/export", **needs(*_SEE), response_class=Response)
async def export(yard: Yard, name: str, version: Annotated[int | None, _VERSION] = None) -> Response:
    """The folder as a zip."""
    skill = await yard.skills.skill(name, version)
    disposition = {"Content-Disposition": f'attachment; filename="{skill.name}.zip"'}
    # Packing 16 MiB takes a third of a second, in which calls go on.
    packed = await asyncio.to_thread(to_zip, skill)
    return Response(packed, media_type=_ZIP[0], headers=disposition)


@router.get("/skills/{name}/files/{path:path}", **needs(*_SEE), response_class=Response)
async def file(yard: Yard, name: str, path: str, version: Annotated[int | None, _VERSION] = None) -> Response:
    """One file, byte by byte; of an earlier version where one is named."""
    data = (await yard.skills.skill(name, version)).files.get(path)
    if data is None:
        raise NotFound(f"The skill {name!r} has no file {path[:200]!r}.")
    # Never shown as a page of ours: what is in it is somebody else's.
    safe = {"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"}
    return Response(data, media_type="application/octet-stream", headers=safe)


async def _sent(request: Request) -> Skill:
    data = await request.body()
    kind = _kind(request)
    if kind in _MARKDOWN:
        try:
            return from_text(data.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise BadInput(f"The body is no UTF-8: byte {error.start}.", where="body") from error
    if _is_zip(request):
        return await asyncio.to_thread(from_zip, data)
    raise BadInput(
        f"A skill is not sent as {kind or 'nothing in particular'}.",
        where="header:Content-Type",
        suggestion="Send a SKILL.md as text/markdown, or a zip of its folder as application/zip.",
    )


def _is_zip(request: Request) -> bool:
    return _kind(request) in _ZIP


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _out(entry: SkillEntry) -> SkillOut:
    return SkillOut(
        id=entry.name,
        name=entry.name,
        title=entry.title,
        description=entry.description,
        category=entry.category or None,
        apps=entry.apps,
        frontmatter=dict(entry.frontmatter),
        files=_files(entry.files),
        version=None if entry.declared else entry.version,
        updated=None if entry.declared else rfc3339(entry.updated),
        declared=entry.declared,
    )


def _files(files: Sequence[SkillFile]) -> list[SkillFileOut]:
    return [SkillFileOut(path=one.path, digest=one.digest, size=one.size, mime_type=one.mime_type) for one in files]
