"""What an MCP server offers beside tools, listed as it is. A list that cannot be had is empty, and no other suffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import structlog

from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.offer import NO_OFFERS, Offers
from toolyard.providers.mcp.failures import BadAnswer, RpcFault
from toolyard.providers.mcp.link import Link

MOST_ENTRIES = 10_000
MOST_PAGES = 500
_METHODS = {
    "resources": ("resources/list", "uri"),
    "resourceTemplates": ("resources/templates/list", "uriTemplate"),
    "prompts": ("prompts/list", "name"),
}
_log = structlog.stdlib.get_logger("toolyard.providers.mcp")


async def offers_of(link: Link, capabilities: JsonObject) -> Offers:
    """The lists of what the server declared.

    Raises:
        LinkLost: it no longer answers.
    """
    resources = capabilities.get("resources")
    if not isinstance(resources, Mapping) and "prompts" not in capabilities:
        return NO_OFFERS
    listed = isinstance(resources, Mapping)
    return Offers(
        await _listed(link, "resources") if listed else (),
        await _listed(link, "resourceTemplates") if listed else (),
        await _listed(link, "prompts") if "prompts" in capabilities else (),
        completes="completions" in capabilities,
        subscribes=isinstance(resources, Mapping) and resources.get("subscribe") is True,
    )


def to_offer_result(result: JsonObject, holds: Literal["contents", "messages"]) -> ToolResult:
    """The result of a read or a get, to the letter.

    Raises:
        CallError: it is none.
    """
    if not isinstance(result.get(holds), list):
        raise CallError(ErrorCode.UPSTREAM, f"The MCP server's answer has no list of {holds}.")
    return ToolResult(content=(), structured=result, has_structured=True)


async def subscribe_each(link: Link, before: frozenset[str], uris: frozenset[str]) -> None:
    """From what a legacy session follows to what it shall follow. A resource that the server refuses to tell of keeps
    no other from being followed.

    Raises:
        LinkLost: it no longer answers.
    """
    steps = [("resources/subscribe", uri) for uri in sorted(uris - before)]
    steps += [("resources/unsubscribe", uri) for uri in sorted(before - uris)]
    for method, uri in steps:
        try:
            await link.request(method, {"uri": uri})
        except (RpcFault, BadAnswer) as error:
            _log.info("a resource cannot be followed", method=method, uri=uri, reason=error.message)


async def _listed(link: Link, key: Literal["resources", "resourceTemplates", "prompts"]) -> tuple[JsonObject, ...]:
    method, name = _METHODS[key]
    found: dict[str, JsonObject] = {}
    cursor: JsonValue = None
    cursors: set[str] = set()
    try:
        for _ in range(MOST_PAGES):
            page = await link.request(method, {} if cursor is None else {"cursor": cursor})
            entries = page.get(key)
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, Mapping) and isinstance(own := entry.get(name), str) and own:
                    found.setdefault(own, entry)
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor or cursor in cursors or len(found) >= MOST_ENTRIES:
                break
            cursors.add(cursor)
    except (RpcFault, BadAnswer) as error:
        _log.info("a list cannot be had", method=method, reason=error.message)
    return tuple(found.values())[:MOST_ENTRIES]
