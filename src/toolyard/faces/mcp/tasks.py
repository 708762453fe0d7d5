"""The tasks extension (SEP-2663): a call that takes long is answered with a task, and asked for later.

The call is the task: its id the task's id, which cannot be guessed and means something to its own principal only. So a
task needs nothing of its own: what `tasks/get` says is read from the call's record, on any node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from toolyard.catalog import Entry
from toolyard.core.call import CallOutcome, CallRequest, Progress, ProgressSink
from toolyard.core.clock import SystemClock
from toolyard.core.errors import BadInput, NotFound, StoreUnavailable
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.record import CallRecord
from toolyard.faces.mcp.agent_tools import executed
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.shown_uris import shown_outcome
from toolyard.faces.mcp.task_questions import give_answers, open_questions
from toolyard.faces.mcp.task_wire import Report, Task
from toolyard.faces.mcp.wire import (
    EXTENSION_TASKS,
    INVALID_PARAMS,
    META_SERVER_INFO,
    MISSING_CAPABILITY,
    Era,
    RpcError,
    as_object,
)

LOOK_AGAIN_AFTER = 0.02
"""Seconds between two looks whether a call that was begun is on disk."""

_CLOCK = SystemClock()


# -- a call becomes a task


def soft_limit(ctx: Context, entry: Entry) -> float | None:
    """Seconds after which this call is answered with a task; None: never. A legacy client, which cannot declare tasks,
    waits with progress and then gets a handle.

    Raises:
        RpcError: the tool is always a task, and this modern request does not declare them (-32021).
    """
    mode = entry.task
    if mode == "never":
        return None
    if not is_declared(ctx):
        if mode == "always" and ctx.era is Era.MODERN:
            raise missing_capability(f"The tool {ctx.view.name_of(entry)} answers with tasks only.")
        return None
    return 0.0 if mode == "always" else ctx.face.app.settings.task_after


def is_declared(ctx: Context) -> bool:
    """Whether this very request says that its client knows tasks."""
    if not ctx.capabilities or ctx.era is not Era.MODERN:
        return False
    extensions = as_object(ctx.capabilities.get("extensions"))
    return extensions is not None and as_object(extensions.get(EXTENSION_TASKS)) is not None


def missing_capability(message: str) -> RpcError:
    required: JsonObject = {"requiredCapabilities": {"extensions": {EXTENSION_TASKS: {}}}}
    return RpcError(MISSING_CAPABILITY, message, required)


class TaskProgress:
    """What running tools of this node said last. A report lives as long as the call that makes it."""

    __slots__ = ("__weakref__", "report", "request")

    def __init__(self, request: ProgressSink | None) -> None:
        self.report: Report | None = None
        self.request = request
        """The progress of the request that made the call, until that is answered."""

    def __call__(self, progress: Progress) -> None:
        self.report = Report(progress, _CLOCK.now())
        if self.request is not None:
            self.request(progress)


_reported: WeakValueDictionary[str, TaskProgress] = WeakValueDictionary()


async def begin(ctx: Context, request: CallRequest, soft: float) -> CallOutcome | JsonObject:
    """Run a call for `soft` seconds: its outcome, its questions, or the `CreateTaskResult` that stands for both.

    Until that is answered, a client that leaves cancels its call; afterwards it does not.

    Raises:
        ToolyardError: as `Calls.invoke`.
    """
    progress = TaskProgress(request.progress)
    _reported[request.call_id] = progress
    calls = ctx.face.app.calls
    request = replace(request, progress=progress)
    if soft == 0:
        request = replace(request, recorded_first=True)
    outcome = await calls.invoke_within(request, soft)
    if outcome is not None and soft > 0 and (outcome.state.is_final or _asks(outcome)):
        return outcome
    record = await _on_record(ctx, request.call_id)
    if record.state.is_final and (soft > 0 or record.started is None):
        return await calls.outcome(record.id)
    ctx.running.cancel = None
    progress.request = None
    return await handed_out(ctx, record)


async def handed_out(ctx: Context, record: CallRecord) -> JsonObject:
    """The `CreateTaskResult` of a call that is on record."""
    task = await task_of(ctx, record)
    return {"resultType": "task", **_fields(ctx, task), "_meta": {META_SERVER_INFO: ctx.face.server_info}}


def _asks(outcome: CallOutcome) -> bool:
    return outcome.waiting is not None and outcome.waiting.kind == "question"


async def _on_record(ctx: Context, call_id: str) -> CallRecord:
    """The call, once it is on disk; an earlier one, where it repeats that."""
    calls = ctx.face.app.calls
    while True:
        await calls.put_on_record(call_id)
        try:
            return await calls.get(calls.id_on_record(call_id))
        except NotFound:
            try:
                await calls.wait(call_id, LOOK_AGAIN_AFTER)
            except NotFound as error:
                raise StoreUnavailable("The call could not be put on record; nothing was run.") from error


# -- the methods


async def get_task(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """
    Raises:
        RpcError: the client does not know tasks (-32021), or this is no task of its own (-32602).
    """
    task = await task_of(ctx, await _theirs(ctx, params))
    return dumps({"resultType": "complete", **wire_of(ctx, task), "_meta": {META_SERVER_INFO: ctx.face.server_info}})


async def update_task(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """Answers to what a task asks. Some are enough; keys that ask nothing are ignored.

    Raises:
        RpcError: as `get_task`, or an answer of the wrong shape (-32602).
    """
    record = await _theirs(ctx, params)
    answers = as_object(params.get("inputResponses"))
    if answers is None:
        raise RpcError(INVALID_PARAMS, "params.inputResponses must be an object: answers by key.")
    if not record.state.is_final:
        try:
            await give_answers(ctx, record, answers)
        except BadInput as error:
            raise RpcError(INVALID_PARAMS, str(error)) from error
    return _acknowledged(ctx)


async def cancel_task(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """Ends a task wherever it runs; one that has ended already is left as it is.

    Raises:
        RpcError: as `get_task`.
    """
    record = await _theirs(ctx, params)
    if not record.state.is_final:
        await ctx.face.app.calls.cancel(record.id, ctx.principal)
    return _acknowledged(ctx)


def wire_of(ctx: Context, task: Task) -> dict[str, JsonValue]:
    """The whole task, with what its status brings."""
    detail = task.detail(ctx.face.server_info)
    result = as_object(detail.get("result"))
    if ctx.server.agent_mode and result is not None:
        detail["result"] = executed(result)
    return {**_fields(ctx, task), **detail}


async def task_of(ctx: Context, record: CallRecord) -> Task:
    outcome = await ctx.face.app.calls.outcome(record.id)
    entry = ctx.view.get(record.tool)
    if entry is not None:
        outcome = shown_outcome(ctx.server, entry.tool, outcome)
    questions = {} if outcome.waiting is None else await open_questions(ctx, outcome)
    said = _reported.get(record.id)
    return Task(record, outcome, questions, None if said is None else said.report)


async def find_task(ctx: Context, task_id: object) -> CallRecord | None:
    """A call of this principal, made through this server; nothing for any other id, whether it exists or not."""
    if not isinstance(task_id, str):
        return None
    try:
        record = await ctx.face.app.calls.get(task_id)
    except NotFound:
        return None
    return record if (record.principal, record.server) == (ctx.principal.label, ctx.server.id) else None


async def _theirs(ctx: Context, params: Mapping[str, Any]) -> CallRecord:
    if not is_declared(ctx):
        raise missing_capability("This request does not declare the extension for tasks.")
    record = await find_task(ctx, params.get("taskId"))
    if record is None:
        raise RpcError(INVALID_PARAMS, "params.taskId names no task of yours.")
    return record


def _fields(ctx: Context, task: Task) -> dict[str, JsonValue]:
    return task.fields(_CLOCK.now(), ctx.face.app.settings.retention_days)


def _acknowledged(ctx: Context) -> bytes:
    return dumps({"resultType": "complete", "_meta": {META_SERVER_INFO: ctx.face.server_info}})
