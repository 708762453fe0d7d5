"""The outcome of a call as a `CallToolResult`, or as the JSON-RPC error that took its place."""

from __future__ import annotations

from collections.abc import Mapping

from toolyard.core.call import CallFailure, CallOutcome
from toolyard.core.errors import ErrorCode
from toolyard.core.json import JsonValue
from toolyard.faces.mcp.wire import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    META_CALL_ID,
    META_ERROR,
    META_SERVER_INFO,
    META_WARNINGS,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Era,
    RpcError,
)

_OF_OUR_OWN_LINK = frozenset({METHOD_NOT_FOUND, HEADER_MISMATCH, UNSUPPORTED_VERSION})
"""What an upstream says of our request to it: our client would take these for what we say of its own."""


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


def is_rpc_error(failure: CallFailure) -> bool:
    """Whether no model can make anything of it: the upstream answered with a JSON-RPC error, or the fault is ours."""
    return failure.rpc is not None or failure.code is ErrorCode.INTERNAL


def as_rpc_error(failure: CallFailure) -> RpcError:
    """As it came from the upstream, or ours."""
    rpc = failure.rpc
    if rpc is None:
        return RpcError(INTERNAL_ERROR, failure.to_text())
    code, message = rpc.get("code"), rpc.get("message")
    if not isinstance(code, int) or code in _OF_OUR_OWN_LINK:
        code = INTERNAL_ERROR
    return RpcError(code, message if isinstance(message, str) else failure.to_text(), rpc.get("data"))
