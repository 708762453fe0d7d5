"""One call over HTTP: begun, waited for as long as the caller says, and answered with its end or with where to ask."""

from __future__ import annotations

import asyncio
from typing import cast

from fastapi.responses import Response

from toolyard.app import App
from toolyard.calls.shape import IMAGES_KEY
from toolyard.core.approval import Waiting
from toolyard.core.call import CallOutcome, CallRequest, ToolResult
from toolyard.core.clock import rfc3339
from toolyard.core.errors import NotFound
from toolyard.faces.http.models import CallEnded, CallError, CallResult, CallStarted, JsonMap, WaitingOut
from toolyard.faces.http.problems import never_reached_its_tool, problem_of_call

LONGEST_WAIT = 300
SHORTEST_WAIT = 0.1
"""Seconds: by then a call that has to wait is on record, and its answer can say what for."""

LOOK_AGAIN = 0.05
"""Seconds between looks for a call that is not on record yet, as when the database is slow."""


async def answer_call(yard: App, request: CallRequest, wait: float) -> Response:
    """Begin a call, and answer with its end, or after `wait` seconds with where to ask and what it waits for."""
    yard.calls.start(request)
    ending = asyncio.create_task(yard.calls.wait(request.call_id, LONGEST_WAIT), name=f"answer of {request.call_id}")
    try:
        await asyncio.wait((ending,), timeout=max(wait, SHORTEST_WAIT))
        outcome = await _as_it_stands(yard, request, ending)
    finally:
        ending.cancel()
    if not outcome.state.is_final:
        return _still_open(outcome)
    failure = outcome.failure
    if failure is not None and outcome.result is None and never_reached_its_tool(failure.code):
        return problem_of_call(failure, outcome.call_id)
    return Response(_ended(outcome).model_dump_json(), media_type="application/json")


def waiting_out(waiting: Waiting) -> WaitingOut:
    return WaitingOut(
        kind=waiting.kind,
        id=waiting.id,
        deadline=None if waiting.deadline is None else rfc3339(waiting.deadline),
        url=waiting.url,
    )


async def _as_it_stands(yard: App, request: CallRequest, ending: asyncio.Task[CallOutcome | None]) -> CallOutcome:
    """Its end, or what is on record. An id is given out only when it is there, to be found again whatever becomes of
    this node; until then this goes on waiting."""
    while not ending.done():
        try:
            return await yard.calls.outcome(yard.calls.id_on_record(request.call_id))
        except NotFound:  # it is about to be written down
            await asyncio.wait((ending,), timeout=LOOK_AGAIN)
    return ending.result() or await yard.calls.outcome(yard.calls.id_on_record(request.call_id))


def _still_open(outcome: CallOutcome) -> Response:
    started = CallStarted(
        id=outcome.call_id,
        tool=outcome.tool,
        state=outcome.state,
        waiting=outcome.waiting and waiting_out(outcome.waiting),
    )
    headers = {"Location": f"/v1/calls/{outcome.call_id}"}
    return Response(started.model_dump_json(), status_code=202, headers=headers, media_type="application/json")


def _ended(outcome: CallOutcome) -> CallEnded:
    result, failure = outcome.result, outcome.failure
    return CallEnded(
        id=outcome.call_id,
        tool=outcome.tool,
        state=outcome.state,
        result=result and _result(result),
        error=failure and CallError(error=failure.message, code=failure.code.value, suggestion=failure.suggestion),
        warnings=list(outcome.warnings),
    )


def _result(result: ToolResult) -> CallResult:
    meta = dict(result.meta or {})
    images = cast("list[JsonMap]", meta.pop(IMAGES_KEY, []))
    return CallResult(
        content=[dict(block) for block in result.content],
        structured=result.structured,
        is_error=result.is_error,
        images=images,
        meta=meta or None,
    )
