"""A modern client's standing stream: acknowledged first, then one notification for each change it asked about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from toolyard.catalog import View
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.faces.mcp.changes import ListKind
from toolyard.faces.mcp.face import Context, Face, Push
from toolyard.faces.mcp.resources import MOST_FOLLOWED, as_update, note_topic
from toolyard.faces.mcp.sessions import Session
from toolyard.faces.mcp.task_feed import following, tasks_to_follow
from toolyard.faces.mcp.wire import (
    INVALID_PARAMS,
    META_SERVER_INFO,
    META_SUBSCRIPTION,
    RpcError,
    as_object,
    notification,
)

_LISTS: Mapping[ListKind, str] = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}


async def listen(ctx: Context, params: Mapping[str, Any]) -> bytes:
    wanted = as_object(params.get("notifications"))
    if wanted is None:
        raise RpcError(INVALID_PARAMS, "params.notifications must be an object that says what to listen to.")
    meta: dict[str, JsonValue] = {META_SUBSCRIPTION: ctx.request_id}
    lists: set[ListKind] = {kind for kind, name in _LISTS.items() if wanted.get(name) is True}
    uris = [uri for uri in _uris_in(wanted) if _is_told_of(ctx.view, uri)]
    task_ids = await tasks_to_follow(ctx, wanted)
    subscription = ctx.face.changes.subscribe(ctx.server)
    ctx.running.cancel = subscription.cancel
    try:
        honoured: dict[str, JsonValue] = {_LISTS[kind]: True for kind in _LISTS if kind in lists}
        if uris:
            honoured["resourceSubscriptions"] = [*uris]
        if task_ids:
            honoured["taskIds"] = task_ids
        ctx.push(notification("notifications/subscriptions/acknowledged", {"notifications": honoured, "_meta": meta}))
        async with following(ctx, task_ids, meta), resources_followed(ctx.face, ctx.view, uris, ctx.push, meta):
            async for changed in subscription:
                for kind in sorted(lists & changed):
                    ctx.push(list_changed(kind, meta))
    finally:
        ctx.face.changes.unsubscribe(subscription)
    return dumps({"resultType": "complete", "_meta": {**meta, META_SERVER_INFO: ctx.face.server_info}})


def list_changed(kind: ListKind, meta: JsonObject | None = None) -> bytes:
    return notification(f"notifications/{kind}/list_changed", None if meta is None else {"_meta": meta})


@asynccontextmanager
async def resources_followed(
    face: Face, view: View, uris: Sequence[str], push: Push, meta: JsonObject | None = None
) -> AsyncGenerator[None, None]:
    """Push the news of these resources while the context is open. Those that this server does not show are left out."""
    async with AsyncExitStack() as stack:
        for uri in uris:
            found = view.offers.where(uri)
            if found is not None:
                heard = _teller(push, notification("notifications/resources/updated", as_update(uri, meta)))
                await stack.enter_async_context(face.app.supervisor.following(*found, heard))
        yield


@asynccontextmanager
async def session_followed(face: Face, view: View, session: Session, push: Push) -> AsyncGenerator[None, None]:
    """As `resources_followed`, of what a legacy session subscribes to, now and later, on whichever node it says so."""
    feed = asyncio.create_task(_session_feed(face, view, session, push), name="resources of a session")
    try:
        yield
    finally:
        feed.cancel()
        await asyncio.wait([feed])


async def _session_feed(face: Face, view: View, session: Session, push: Push) -> None:
    async with face.app.engine.watch(note_topic(session.nonce)) as waiter:
        uris = now = (await face.sessions.read_note(session)).uris
        while True:
            async with resources_followed(face, view, uris, push):
                while now == uris:
                    hinted = await waiter.wait()
                    now = (await face.sessions.read_note(session) if hinted else face.sessions.note(session)).uris
            uris = now


def _teller(push: Push, frame: bytes) -> Callable[[], None]:
    return lambda: push(frame)


def _is_told_of(view: View, uri: str) -> bool:
    """Whether news of it can come at all: what is not served is not acknowledged."""
    found = view.offers.where(uri)
    return found is not None and view.offers.follows(found[0])


def _uris_in(wanted: Mapping[str, Any]) -> list[str]:
    given = wanted.get("resourceSubscriptions")
    if given is None:
        return []
    if not isinstance(given, list) or len(cast("list[object]", given)) > MOST_FOLLOWED:
        raise RpcError(
            INVALID_PARAMS, f"params.notifications.resourceSubscriptions must be a list of up to {MOST_FOLLOWED} URIs."
        )
    return list(dict.fromkeys(str(uri) for uri in cast("list[object]", given)))
