"""Step 1: the name of a tool -> its entry in the caller's slice of the current snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from toolyard.catalog import Catalog, Entry, Server
from toolyard.core.errors import CallError, ErrorCode


def resolve(catalog: Catalog, servers: Mapping[str, Server], tool: str, server: str | None) -> Entry:
    """
    Unknown, disabled and outside the slice look the same from outside, and no name is offered in return.

    Raises:
        CallError: `not_found`.
    """
    snapshot = catalog.snapshot
    if server is None:
        entry = snapshot.get(tool)
    else:
        sliced = servers.get(server)
        entry = snapshot.view(sliced).get(tool) if sliced else None
    if entry is None or not entry.settings.enabled:
        raise CallError(
            ErrorCode.NOT_FOUND,
            f"There is no tool {tool[:200]!r} here.",
            suggestion="List or search the tools to see what can be called.",
        )
    return entry
