"""A modern upstream that answers `tools/call` with a task (SEP-2663): it is asked again until there is a result.

Its questions are ours to relay: they leave as `NeedsInput`, whose state names the task, so that whichever node has the
answers gives them to it and goes on asking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from toolyard.core.call import Progress
from toolyard.core.errors import CallError, ErrorCode, ProviderError
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.question import NeedsInput, Question
from toolyard.providers.base import Invocation
from toolyard.providers.mcp.failures import BadAnswer, LinkLost, RpcFault
from toolyard.providers.mcp.link import NO_META, Link
from toolyard.providers.mcp.relay import meta_of

USUAL_POLL = 1.0
"""Seconds between two looks, where the upstream names none."""
SHORTEST_POLL = 0.05
LONGEST_POLL = 30.0
MOST_LOST = 5
"""Looks in a row that may get no answer; the task goes on meanwhile."""
CANCEL_WITHIN = 2.0
"""Seconds in which an upstream is told that its task is no longer wanted."""
_STATE = "toolyard-task:"

_log = structlog.stdlib.get_logger("toolyard.providers.mcp")


def is_task(result: JsonObject) -> bool:
    return result.get("resultType") == "task"


def task_in(state: str | None) -> str | None:
    """The task that a call's kept state names, when that is what it is."""
    return state.removeprefix(_STATE) if state is not None and state.startswith(_STATE) else None


async def follow(link: Link, created: JsonObject, invocation: Invocation) -> JsonObject:
    """The tool result of a task that was just made.

    Raises:
        NeedsInput: it asks something; `resume` goes on with the answers.
        CallError, RpcFault, LinkLost, BadAnswer: how it ended instead.
    """
    task_id = created.get("taskId")
    if not isinstance(task_id, str) or not task_id:
        raise BadAnswer("The MCP server answered with a task that has no taskId.")
    return await _Followed(link, task_id, invocation).to_its_end(created)


def _stands(created: JsonObject) -> bool:
    """Whether a task that was just made says all there is to it. One that asks or has ended already does not."""
    return created.get("status", "working") == "working"


async def resume(link: Link, task_id: str, invocation: Invocation) -> JsonObject:
    """As `follow`, for a task that has asked: the invocation holds the answers."""
    return await _Followed(link, task_id, invocation).answered()


async def cancel(link: Link, task_id: str, meta: JsonObject = NO_META) -> None:
    """Whoever waited for the task is gone, so this is quick, and a failure changes nothing."""
    try:
        async with asyncio.timeout(CANCEL_WITHIN):
            await link.request("tasks/cancel", {"taskId": task_id}, name=task_id, meta=meta)
    except (TimeoutError, ProviderError, CallError) as error:
        _log.debug("a task could not be cancelled", task=task_id, reason=str(error))


class _Followed:
    def __init__(self, link: Link, task_id: str, invocation: Invocation) -> None:
        self._link = link
        self._id = task_id
        self._invocation = invocation
        self._said: JsonValue = None
        self._reports = 0

    async def answered(self) -> JsonObject:
        await self._request("tasks/update", {"inputResponses": dict(self._invocation.answers)})
        return await self.to_its_end({"pollIntervalMs": 0})

    async def to_its_end(self, task: JsonObject) -> JsonObject:
        try:
            if not _stands(task):
                task = await self._get()
            while True:
                ended = await self._look_at(task)
                if ended is not None:
                    return ended
                await asyncio.sleep(_pause(task))
                task = await self._get()
        except asyncio.CancelledError:
            await cancel(self._link, self._id, meta_of(self._invocation))
            raise

    async def _look_at(self, task: JsonObject) -> JsonObject | None:
        status = task.get("status", "working")
        if status == "completed":
            result = task.get("result")
            if not isinstance(result, dict):
                raise BadAnswer("The MCP server's task is completed, but holds no result.")
            return result
        if status == "failed":
            raise RpcFault.of(task.get("error"))
        if status == "cancelled":
            raise CallError(ErrorCode.UPSTREAM, "The MCP server cancelled its task.", suggestion="Call it again.")
        if status == "input_required" and (questions := _questions(task)):
            await self._must_be_answerable(questions)
            raise NeedsInput(questions, f"{_STATE}{self._id}")
        self._report(task.get("statusMessage"))
        return None

    async def _must_be_answerable(self, questions: Sequence[Question]) -> None:
        missing = sorted({question.needs for question in questions} - self._invocation.may_ask)
        if missing:
            await cancel(self._link, self._id, meta_of(self._invocation))
            raise CallError(
                ErrorCode.UPSTREAM,
                f"The tool asks its caller for input, and the caller's client cannot answer it: it lacks "
                f"{' and '.join(missing)}.",
                suggestion="Call it with a client that declares these capabilities.",
            )

    def _report(self, message: JsonValue) -> None:
        progress = self._invocation.progress
        if progress is not None and isinstance(message, str) and message != self._said:
            self._said = message
            self._reports += 1
            progress(Progress(self._reports, message=message))

    async def _get(self) -> JsonObject:
        """A look that is lost is made again: whatever became of the connection, the task goes on."""
        lost = 0
        while True:
            try:
                return await self._request("tasks/get", {})
            except LinkLost:
                lost += 1
                if lost >= MOST_LOST:
                    raise
            await asyncio.sleep(lost * USUAL_POLL)

    async def _request(self, method: str, params: Mapping[str, JsonValue]) -> JsonObject:
        return await self._link.request(
            method, {"taskId": self._id, **params}, name=self._id, meta=meta_of(self._invocation)
        )


def _pause(task: JsonObject) -> float:
    milliseconds = task.get("pollIntervalMs")
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return USUAL_POLL
    return min(max(SHORTEST_POLL, milliseconds / 1000), LONGEST_POLL)


def _questions(task: JsonObject) -> list[Question]:
    requests = task.get("inputRequests")
    if not isinstance(requests, dict):
        raise BadAnswer("The MCP server's task asks for input, but says not what.")
    return [_question(key, request) for key, request in requests.items()]


def _question(key: str, request: JsonValue) -> Question:
    method = request.get("method") if isinstance(request, dict) else None
    if not isinstance(request, dict) or not isinstance(method, str):
        raise BadAnswer(f"The MCP server's task asks something under {key[:100]!r} that names no method.")
    params = request.get("params")
    return Question(key, method, params if isinstance(params, dict) else {})
