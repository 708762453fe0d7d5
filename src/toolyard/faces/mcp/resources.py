"""`resources/list`, `resources/templates/list`, `resources/read`, and a legacy session's (un)subscribe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.offer import READ_RESOURCE
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.offer_call import RESOURCE_NOT_FOUND, offer_called
from toolyard.faces.mcp.offer_lists import complete, page_of
from toolyard.faces.mcp.shown_uris import with_uri
from toolyard.faces.mcp.skills import skill_resource, skill_resources
from toolyard.faces.mcp.wire import INVALID_PARAMS, Era, RpcError
from toolyard.store.session_notes import SessionNote

MOST_FOLLOWED = 100
"""Resources that one session or one stream may follow."""
_EMPTY = b"{}"


async def list_resources(ctx: Context, params: Mapping[str, Any]) -> bytes:
    shown = {uri: one.definition for uri, one in ctx.view.offers.resources.items()}
    own = {one.uri: one.definition for one in await skill_resources(ctx)}
    if own:
        merged = {**shown, **own}
        shown = {uri: merged[uri] for uri in sorted(merged)}
    return dumps(page_of(ctx, "resources", shown, params.get("cursor")))


async def list_templates(ctx: Context, params: Mapping[str, Any]) -> bytes:
    shown = {uri: one.definition for uri, one in ctx.view.offers.templates.items()}
    return dumps(page_of(ctx, "resourceTemplates", shown, params.get("cursor")))


async def read_resource(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """
    Raises:
        RpcError: no such resource, or it cannot be read.
    """
    uri = uri_in(params)
    own = await skill_resource(ctx, uri)
    if own is not None:
        contents: list[JsonValue] = [*await own.read(ctx)]
        return dumps(complete(ctx, {"contents": contents}, ttl_ms=0))
    namespace, own_uri = located(ctx, uri)
    result, ended = await offer_called(ctx, params, READ_RESOURCE, namespace, named=uri, arguments={"uri": own_uri})
    if not ended:
        return dumps(result)
    contents_of = result.get("contents")
    if isinstance(contents_of, list | tuple):
        renamed = _renamer(ctx, namespace, uri, own_uri)
        result = {**result, "contents": [with_uri(one, renamed) for one in contents_of if isinstance(one, Mapping)]}
    ttl_ms = result.get("ttlMs")
    return dumps(complete(ctx, result, ttl_ms=ttl_ms if isinstance(ttl_ms, int) else 0))


async def subscribe(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """From now on the session's standing stream, wherever it is held, tells of changes of this resource."""
    uri = uri_in(params)
    located(ctx, uri)

    def add(note: SessionNote) -> SessionNote:
        if uri not in note.uris and len(note.uris) >= MOST_FOLLOWED:
            raise RpcError(INVALID_PARAMS, f"A session follows at most {MOST_FOLLOWED} resources.")
        return replace(note, uris=(*(one for one in note.uris if one != uri), uri))

    return await _changed(ctx, add)


async def unsubscribe(ctx: Context, params: Mapping[str, Any]) -> bytes:
    uri = uri_in(params)
    return await _changed(ctx, lambda note: replace(note, uris=tuple(one for one in note.uris if one != uri)))


def uri_in(params: Mapping[str, Any]) -> str:
    uri = params.get("uri")
    if not isinstance(uri, str) or not uri:
        raise RpcError(INVALID_PARAMS, "params.uri must be the URI of a resource.")
    return uri


def located(ctx: Context, uri: str) -> tuple[str, str]:
    """The provider of a URI, and its own URI of it.

    Raises:
        RpcError: none that this server shows (-32602, legacy -32002).
    """
    found = ctx.view.offers.where(uri)
    if found is None:
        code = RESOURCE_NOT_FOUND if ctx.era is Era.LEGACY else INVALID_PARAMS
        raise RpcError(code, f"There is no resource {uri[:200]!r} here.", {"uri": uri[:2000]})
    return found


async def _changed(ctx: Context, change: Callable[[SessionNote], SessionNote]) -> bytes:
    if ctx.session is not None:
        await ctx.face.sessions.change_note(ctx.session, change)
        ctx.face.app.engine.hint(note_topic(ctx.session.nonce))
    return _EMPTY


def note_topic(nonce: str) -> str:
    """What the node that holds the session's stream watches."""
    return f"mcp-session:{nonce}"


def _renamer(ctx: Context, namespace: str, shown: str, own: str) -> Callable[[str], str]:
    offers = ctx.view.offers

    def renamed(uri: str) -> str:
        return shown if uri == own else offers.uri(namespace, uri)

    return renamed


def as_update(uri: str, meta: JsonObject | None = None) -> JsonObject:
    """The params of `notifications/resources/updated`."""
    return {"uri": uri} if meta is None else {"uri": uri, "_meta": meta}
