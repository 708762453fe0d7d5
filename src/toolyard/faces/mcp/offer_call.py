"""`resources/read` and `prompts/get` as calls: the same path, waits and record; only their failures look different."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolyard.core.call import CallFailure, CallOutcome
from toolyard.core.errors import ErrorCode, ToolyardError
from toolyard.core.json import JsonObject
from toolyard.core.names import tool_id
from toolyard.core.offer import READ_RESOURCE, OfferMethod
from toolyard.faces.mcp.carrying import carried_out, prepared
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.tool_result import as_rpc_error
from toolyard.faces.mcp.wire import INTERNAL_ERROR, INVALID_PARAMS, META_CALL_ID, Era, RpcError

RESOURCE_NOT_FOUND = -32002
"""The legacy code; the modern one is -32602."""
_CALLERS_OWN = frozenset({ErrorCode.INVALID_ARGUMENTS, ErrorCode.NOT_FOUND})


async def offer_called(
    ctx: Context, params: Mapping[str, Any], method: OfferMethod, namespace: str, *, named: str, arguments: JsonObject
) -> tuple[JsonObject, bool]:
    """MCP's result of the method as the provider gave it, and True; or the result that asks the client, and False.

    `named` is what the client called it, `arguments` are the provider's.

    Raises:
        RpcError: it failed. There are no results with `isError` here.
    """
    talk, request = prepared(ctx, method, named, arguments, tool=tool_id(namespace, method), arguments=arguments)
    try:
        outcome = await carried_out(talk, request, params)
    except ToolyardError as error:
        raise RpcError(INTERNAL_ERROR, str(error)) from error
    if not isinstance(outcome, CallOutcome):
        return outcome, False
    if outcome.failure is not None:
        raise _failed(outcome.failure, method, ctx.era)
    structured = outcome.result.structured if outcome.result is not None else None
    if outcome.waiting is not None or not isinstance(structured, Mapping):
        told = "It still waits, for an approval or an answer. Ask again later with the same idempotency key."
        raise RpcError(INTERNAL_ERROR, told, {META_CALL_ID: outcome.call_id})
    return structured, True


def _failed(failure: CallFailure, method: OfferMethod, era: Era) -> RpcError:
    error = as_rpc_error(failure)
    if failure.rpc is None and failure.code in _CALLERS_OWN:
        error.code = INVALID_PARAMS
    if method == READ_RESOURCE and error.code in (INVALID_PARAMS, RESOURCE_NOT_FOUND):
        error.code = RESOURCE_NOT_FOUND if era is Era.LEGACY else INVALID_PARAMS
    return error
