"""Step 1: the name of a tool -> its entry in the caller's slice of the current snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from toolyard.catalog import Catalog, Entry, Server
from toolyard.core.call import CallRequest
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.session import CLIENT_NAMESPACE


def resolve(catalog: Catalog, servers: Mapping[str, Server], tool: str, server: str | None) -> Entry:
    """
    Unknown, disabled and outside the slice look the same from outside, and no name is offered in return. Which
    resources and prompts a server shows is asked where they are named, before they are read.

    Raises:
        CallError: `not_found`.
    """
    snapshot = catalog.snapshot
    sliced = None if server is None else servers.get(server)
    entry = None
    if sliced is not None:
        entry = snapshot.view(sliced).get(tool) or snapshot.offer(tool)
    elif server is None:
        entry = snapshot.get(tool) or snapshot.offer(tool)
    if entry is None or not entry.settings.enabled:
        raise CallError(
            ErrorCode.NOT_FOUND,
            f"There is no tool {tool[:200]!r} here.",
            suggestion="List or search the tools to see what can be called.",
        )
    return entry


def in_session(request: CallRequest, entry: Entry) -> CallRequest:
    """A client tool is always told its session.

    Raises:
        CallError: `invalid_arguments`, the caller named another session.
    """
    if entry.tool.namespace != CLIENT_NAMESPACE:
        return request
    named = request.arguments.get("sessionId", request.session)
    if named != request.session:
        raise CallError(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid arguments for {entry.id}: sessionId is another session than the call's.",
            suggestion="Leave sessionId out; it is filled in.",
        )
    return replace(request, arguments={**request.arguments, "sessionId": request.session})
