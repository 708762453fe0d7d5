"""Pages of resources, templates and prompts. A cursor names the last entry of the page before, as for tools."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from toolyard.core.json import JsonObject, JsonValue
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.lists import PAGE_SIZE, TTL_MS, cursor_after, name_in
from toolyard.faces.mcp.wire import META_SERVER_INFO, Era


def page_of(ctx: Context, key: str, definitions: Mapping[str, JsonObject], cursor: JsonValue) -> JsonObject:
    """One page of `definitions`, which are sorted by the name or URI that they are listed under.

    Raises:
        RpcError: the cursor is none of ours (-32602).
    """
    names = list(definitions)
    start = 0 if cursor is None else bisect_right(names, name_in(cursor))
    shown = names[start : start + PAGE_SIZE]
    page: dict[str, JsonValue] = {key: [definitions[name] for name in shown]}
    if start + len(shown) < len(names):
        page["nextCursor"] = cursor_after(shown[-1])
    return complete(ctx, page, ttl_ms=TTL_MS)


def complete(ctx: Context, result: Mapping[str, JsonValue], *, ttl_ms: int | None = None) -> JsonObject:
    """A result as this era has it. `ttl_ms`: for how long a modern client may keep it, where it may."""
    if ctx.era is Era.LEGACY:
        return {name: value for name, value in result.items() if name not in ("resultType", "ttlMs", "cacheScope")}
    meta = result.get("_meta")
    stamped = {**(meta if isinstance(meta, Mapping) else {}), META_SERVER_INFO: ctx.face.server_info}
    caching: JsonObject = {} if ttl_ms is None else {"ttlMs": ttl_ms, "cacheScope": "private"}
    return {**result, "resultType": "complete", **caching, "_meta": stamped}
