"""One request that is a call: begun, or taken up again with what its client answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolyard.core.call import CallOutcome, CallRequest, Origin
from toolyard.core.json import JsonObject
from toolyard.faces.mcp import tasks
from toolyard.faces.mcp.asking import Talk, by_key, may_ask
from toolyard.faces.mcp.call_request import idempotency_key, progress_sink, trace
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.logs import log_level, log_sink
from toolyard.faces.mcp.request_state import Bound
from toolyard.faces.mcp.sessions import owner_of
from toolyard.faces.mcp.waiting import Patience, hold_of


def prepared(
    ctx: Context, method: str, named: str, given: JsonObject, *, tool: str, arguments: JsonObject
) -> tuple[Talk, CallRequest]:
    """The call that a request is. `named` and `given` are what its client said, and bind a state to this very request.

    Raises:
        RpcError: something in its `_meta` or headers cannot be (-32602).
    """
    report = progress_sink(ctx)
    patience = None if report is None else Patience(report)
    hold = hold_of(ctx.meta, ctx.face.app.settings.hold_limit)
    able, log = may_ask(ctx), log_sink(ctx)
    bound = Bound(owner_of(ctx.principal), ctx.server.id, method, named, given)
    request = CallRequest(
        tool=tool,
        arguments=arguments,
        principal=ctx.principal,
        origin=Origin.MCP,
        server=ctx.server.id,
        idempotency_key=idempotency_key(ctx),
        progress=patience and patience.progress,
        trace=trace(ctx),
        hold=0.0 if able else hold,
        may_ask=able,
        on_wait=patience and patience.waits,
        log=log,
        log_level=log_level(ctx),
    )
    return Talk(ctx, bound, hold, patience, log), request


async def carried_out(
    talk: Talk, request: CallRequest, params: Mapping[str, Any], soft_limit: float | None = None
) -> CallOutcome | JsonObject:
    """The call's outcome, which may be open; or the result that asks its client, or stands for it as a task.

    Raises:
        RpcError: the state or the answers are not this request's (-32602).
        ToolyardError: the call path could not take it at all.
    """
    ctx = talk.ctx
    calls = ctx.face.app.calls
    ctx.running.cancel = lambda: calls.cancel(request.call_id, ctx.principal)
    try:
        if params.get("requestState") is None:
            answers = params.get("inputResponses")
            by_key(answers)  # nothing may have begun when they cannot be read
            return await _begun(talk, request, soft_limit, answers)
        return await _taken_up(talk, params, soft_limit)
    finally:
        if talk.patience is not None:
            talk.patience.stop()
        ctx.running.cancel = None


async def _begun(
    talk: Talk, request: CallRequest, soft_limit: float | None, answers: object
) -> CallOutcome | JsonObject:
    """To its end, to what the client is asked first, or to the task that stands for the rest. `answers` without a state
    are given ahead: to what the call asks under these keys.
    """
    if soft_limit is None:
        outcome = await talk.ctx.face.app.calls.invoke(request)
    else:
        outcome = await tasks.begin(talk.ctx, request, soft_limit)
    if request.may_ask and isinstance(outcome, CallOutcome) and outcome.waiting is not None:
        return await talk.go_on(outcome) if answers is None else await talk.answered_ahead(outcome, answers)
    return outcome


async def _taken_up(talk: Talk, params: Mapping[str, Any], soft_limit: float | None) -> CallOutcome | JsonObject:
    """The same request again, with answers: the call it began goes on."""
    if soft_limit is not None:
        talk = replace(talk, hold=soft_limit)
    outcome = await talk.taken_up(params.get("requestState"), params.get("inputResponses"))
    if soft_limit is not None and isinstance(outcome, CallOutcome) and not outcome.state.is_final:
        return await tasks.handed_out(talk.ctx, await talk.ctx.face.app.calls.get(outcome.call_id))
    return outcome
