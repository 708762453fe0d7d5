"""The skills extension (SEP-2640): `skills/list`, `skills/get`, `resources/directory/read`, and the files as resources.

A skill's address is that of its SKILL.md, `skill://yard/<name>/SKILL.md`; digests are over the files' raw bytes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

from toolyard.core.errors import NotFound
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.offer_lists import complete, page_of
from toolyard.faces.mcp.own_resources import OwnResource
from toolyard.faces.mcp.skill_tools import skills_of, uri_of
from toolyard.faces.mcp.wire import INVALID_PARAMS, RpcError
from toolyard.skills import MANIFEST, SkillEntry, SkillFile

DIRECTORY = "inode/directory"
Read = Callable[[Context], Awaitable[Sequence[JsonObject]]]


async def list_skills(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """One entry for each skill, never split across pages."""
    listed = {uri_of(one, MANIFEST): _listed(one) for one in _shown(ctx)}
    return dumps(page_of(ctx, "skills", listed, params.get("cursor")))


async def get_skill(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """
    Raises:
        RpcError: no skill has this URI (-32602).
    """
    uri = params.get("uri")
    found = next((one for one in _shown(ctx) if uri_of(one, MANIFEST) == uri), None)
    if found is None:
        raise RpcError(INVALID_PARAMS, f"There is no skill {str(uri)[:200]!r} here.")
    return dumps(complete(ctx, {"skill": _listed(found)}, ttl_ms=0))


async def read_directory(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """The direct children of a skill's folder, or of a folder within it.

    Raises:
        RpcError: that is no folder (-32602).
    """
    uri = params.get("uri")
    folder = uri.rstrip("/") if isinstance(uri, str) else ""
    for entry in _shown(ctx):
        root = uri_of(entry, "").rstrip("/")
        if folder == root or folder.startswith(f"{root}/"):
            inside = unquote(folder.removeprefix(root).strip("/"))
            children = _children(entry, inside)
            if children:
                return dumps(page_of(ctx, "resources", children, params.get("cursor")))
    raise RpcError(INVALID_PARAMS, f"{str(uri)[:200]!r} is no folder of a skill here.")


async def skill_resources(ctx: Context) -> Sequence[OwnResource]:
    """The SKILL.md of each: those that a client looks for in `resources/list`. Other files are found from there."""
    return [_resource(one, file) for one in _shown(ctx) for file in one.files if file.path == MANIFEST]


async def skill_resource(ctx: Context, uri: str) -> OwnResource | None:
    if not uri.startswith("skill://"):
        return None
    for entry in _shown(ctx):
        for file in entry.files:
            if uri_of(entry, file.path) == uri:
                return _resource(entry, file)
    return None


def _shown(ctx: Context) -> list[SkillEntry]:
    return skills_of(ctx.face.app.skills.entries, ctx.server)


def _listed(entry: SkillEntry) -> JsonObject:
    resources: list[JsonValue] = [
        {"uri": uri_of(entry, file.path), "digest": file.digest, "size": file.size} for file in entry.files
    ]
    return {"uri": uri_of(entry, MANIFEST), "frontmatter": entry.frontmatter, "resources": resources}


def _resource(entry: SkillEntry, file: SkillFile) -> OwnResource:
    uri = uri_of(entry, file.path)
    return OwnResource(uri, _definition(entry, file), partial(_read, entry, file))


def _definition(entry: SkillEntry, file: SkillFile) -> JsonObject:
    shown: dict[str, JsonValue] = {
        "uri": uri_of(entry, file.path),
        "name": file.path.rpartition("/")[2],
        "mimeType": file.mime_type,
        "size": file.size,
    }
    if file.path == MANIFEST:
        shown |= {"name": entry.name, "title": entry.title, "description": entry.description}
    return shown


async def _read(entry: SkillEntry, file: SkillFile, ctx: Context) -> Sequence[JsonObject]:
    """
    Raises:
        RpcError: it has just gone (-32602).
    """
    try:
        data = (await ctx.face.app.skills.skill(entry.name)).files[file.path]
    except (NotFound, KeyError) as error:
        raise RpcError(
            INVALID_PARAMS, f"There is no file {file.path!r} in the skill {entry.name!r} any more."
        ) from error
    content: dict[str, JsonValue] = {"uri": uri_of(entry, file.path), "mimeType": file.mime_type}
    try:
        return [{**content, "text": data.decode("utf-8")}]
    except UnicodeDecodeError:
        return [{**content, "blob": b64encode(data).decode()}]


def _children(entry: SkillEntry, inside: str) -> dict[str, JsonObject]:
    """By URI, files and folders of one level."""
    found: dict[str, JsonObject] = {}
    prefix = f"{inside}/" if inside else ""
    for file in entry.files:
        if not file.path.startswith(prefix):
            continue
        child, deeper, _ = file.path.removeprefix(prefix).partition("/")
        uri = uri_of(entry, prefix + child)
        found[uri] = {"uri": uri, "name": child, "mimeType": DIRECTORY} if deeper else _definition(entry, file)
    return {uri: found[uri] for uri in sorted(found)}
