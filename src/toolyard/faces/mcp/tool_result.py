"""The outcome of a call as a `CallToolResult`."""

from __future__ import annotations

from collections.abc import Mapping

from toolyard.core.call import CallOutcome
from toolyard.core.json import JsonValue
from toolyard.faces.mcp.wire import META_CALL_ID, META_ERROR, META_SERVER_INFO, META_WARNINGS, Era


def result_of(outcome: CallOutcome, era: Era, server_info: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A `CallToolResult`. The tool's own content, structured value and `_meta` are passed on as they came."""
    result, failure = outcome.result, outcome.failure
    meta: dict[str, JsonValue] = {**result.meta} if result is not None and result.meta else {}
    meta[META_CALL_ID] = outcome.call_id
    if outcome.warnings:
        meta[META_WARNINGS] = outcome.warnings
    wire: dict[str, JsonValue] = {}
    if result is not None:
        wire["content"] = result.content
        # A legacy client takes nothing but an object here; the text says the same.
        if result.has_structured and (era is Era.MODERN or isinstance(result.structured, Mapping)):
            wire["structuredContent"] = result.structured
    if failure is not None:
        meta[META_ERROR] = failure.to_wire()
        if not wire.get("content"):
            wire["content"] = [{"type": "text", "text": failure.to_text()}]
    wire["isError"] = failure is not None or (result is not None and result.is_error)
    if era is Era.MODERN:
        wire["resultType"] = "complete"
        meta[META_SERVER_INFO] = server_info
    wire["_meta"] = meta
    return wire
