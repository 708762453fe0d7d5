"""`tools/call`: from a request's parameters to a CallRequest, and from its outcome to a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolyard.catalog import Entry
from toolyard.core.call import CallFailure, CallOutcome, CallRequest, CallState, Origin, Progress, ProgressSink
from toolyard.core.errors import ErrorCode, ToolyardError
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.faces.mcp import headers, tasks
from toolyard.faces.mcp.asking import Talk, may_ask
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.request_state import Bound
from toolyard.faces.mcp.sessions import owner_of
from toolyard.faces.mcp.tool_result import result_of
from toolyard.faces.mcp.waiting import Patience, hold_of, pending_result
from toolyard.faces.mcp.wire import (
    INVALID_PARAMS,
    META_IDEMPOTENCY,
    Era,
    RpcError,
    notification,
)

_TRACE = ("traceparent", "tracestate", "baggage")
_H_TRACE = {name: name.encode() for name in _TRACE}
_H_IDEMPOTENCY = b"idempotency-key"
_LONGEST_KEY = 255


async def call_tool(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """
    Raises:
        RpcError: parameters of the wrong shape, headers that contradict them, or no such tool in this server's slice.
    """
    name, arguments = _named(params)
    entry = ctx.view.by_direct_name(name)
    if entry is None:
        raise unknown_tool(name)
    if ctx.era is Era.MODERN and ctx.headers:
        _check_param_headers(ctx, entry, arguments)
    soft_limit = tasks.soft_limit(ctx, entry)
    report = _progress_sink(ctx)
    patience = None if report is None else Patience(report)
    hold = hold_of(ctx.meta, ctx.face.app.settings.hold_seconds)
    able = may_ask(ctx)
    state, answers = params.get("requestState"), params.get("inputResponses")
    request = CallRequest(
        tool=entry.id,
        arguments=arguments,
        principal=ctx.principal,
        origin=Origin.MCP,
        server=ctx.server.id,
        idempotency_key=_idempotency_key(ctx),
        progress=patience and patience.progress,
        trace=_trace(ctx),
        hold=0.0 if able else hold,
        may_ask=able,
        on_wait=patience and patience.waits,
    )
    calls = ctx.face.app.calls
    ctx.running.cancel = lambda: calls.cancel(request.call_id, ctx.principal)
    try:
        if state is not None or answers is not None:
            talk = Talk(ctx, _bound(ctx, name, arguments), hold if soft_limit is None else soft_limit, patience)
            outcome = await talk.taken_up(state, answers)
            if soft_limit is not None and isinstance(outcome, CallOutcome) and not outcome.state.is_final:
                outcome = await tasks.handed_out(ctx, await calls.get(outcome.call_id))
        elif soft_limit is None:
            outcome = await calls.invoke(request)
        else:
            outcome = await tasks.begin(ctx, request, soft_limit)
        if able and isinstance(outcome, CallOutcome) and outcome.waiting is not None and state is None:
            outcome = await Talk(ctx, _bound(ctx, name, arguments), hold, patience).go_on(outcome)
    except ToolyardError as error:
        return dumps(_refused(ctx, request.call_id, error))
    finally:
        if patience is not None:
            patience.stop()
        ctx.running.cancel = None
    if not isinstance(outcome, CallOutcome):
        return dumps(outcome)
    if outcome.waiting is not None:
        return dumps(pending_result(outcome, outcome.waiting, entry, ctx))
    return dumps(result_of(outcome, ctx.era, ctx.face.server_info))


def _bound(ctx: Context, name: str, arguments: JsonObject) -> Bound:
    return Bound(owner_of(ctx.principal), ctx.server.id, "tools/call", name, arguments)


def unknown_tool(name: str) -> RpcError:
    """Unknown and outside the slice look the same, and no other tool is named."""
    return RpcError(INVALID_PARAMS, f"Unknown tool: {name}")


def _refused(ctx: Context, call_id: str, error: ToolyardError) -> dict[str, JsonValue]:
    """What the call path could not take at all: a misused idempotency key, a store that is away."""
    failure = CallFailure(ErrorCode.INTERNAL, error.message, error.suggestion)
    outcome = CallOutcome(call_id, "", CallState.ERROR, failure=failure)
    return result_of(outcome, ctx.era, ctx.face.server_info)


def _named(params: Mapping[str, Any]) -> tuple[str, dict[str, JsonValue]]:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "params.name must be the name of a tool.")
    if arguments is None:
        return name, {}
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "params.arguments must be an object.")
    return name, cast("dict[str, JsonValue]", arguments)


def _check_param_headers(ctx: Context, entry: Entry, arguments: Mapping[str, Any]) -> None:
    declared = ctx.face.param_headers.of(entry.tool.input_schema)
    if declared:
        headers.check_params(declared, arguments, ctx.headers, ctx.raw_headers)


def _idempotency_key(ctx: Context) -> str | None:
    key = ctx.meta.get(META_IDEMPOTENCY)
    if key is None:
        header = ctx.headers.get(_H_IDEMPOTENCY)
        if header is None:
            return None
        key = header.decode("latin-1")
    if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
        raise RpcError(INVALID_PARAMS, f"An idempotency key is a string of 1 to {_LONGEST_KEY} characters.")
    return key


def _trace(ctx: Context) -> dict[str, str]:
    trace: dict[str, str] = {}
    for name, header in _H_TRACE.items():
        value = ctx.meta.get(name)
        if isinstance(value, str):
            trace[name] = value
        elif header in ctx.headers:
            trace[name] = ctx.headers[header].decode("latin-1")
    return trace


def _progress_sink(ctx: Context) -> ProgressSink | None:
    token = ctx.meta.get("progressToken")
    if isinstance(token, bool) or not isinstance(token, str | int):
        return None
    push = ctx.push

    def report(progress: Progress) -> None:
        params: dict[str, JsonValue] = {"progressToken": token, "progress": progress.progress}
        if progress.total is not None:
            params["total"] = progress.total
        if progress.message is not None:
            params["message"] = progress.message
        push(notification("notifications/progress", params))

    return report
