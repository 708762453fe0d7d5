"""An upstream that answers a call with a task: asked until it ends, relayed when it asks, cancelled with our call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.providers.mcp.connecting import connected_http
from tests.providers.mcp.scripted import Reply, Scripted, error
from tests.providers.mcp.serving import served
from tests.requirements import requirement
from toolyard.core.call import Progress, ToolResult
from toolyard.core.errors import CallError, ErrorCode, ProtocolError
from toolyard.core.question import NeedsInput, Question
from toolyard.providers.mcp import upstream_tasks

DONE = {"content": [{"type": "text", "text": "at last"}]}
NAME = {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": {}}}


def task(status: str = "working", **fields: Any) -> dict[str, Any]:
    return {"resultType": "complete", "taskId": "t 1", "status": status, "ttlMs": None, "pollIntervalMs": 1, **fields}


CREATED = task() | {"resultType": "task"}


def upstream(*looks: Any) -> Scripted:
    """A server whose `tasks/get` answers one after the other; the last one again and again."""
    left: Iterator[Any] = iter(looks)
    server = Scripted(tasks__update={"resultType": "complete"}, tasks__cancel={"resultType": "complete"})
    last: list[Any] = []

    def look(_: Any) -> Any:
        last[:] = [next(left, last[0] if last else None)]
        return last[0]

    return _with(server, {"tools/call": CREATED, "tasks/get": look})


def _with(server: Scripted, answers: dict[str, Any]) -> Scripted:
    server.answers |= answers
    return server


def sent(server: Scripted, method: str) -> list[dict[str, Any]]:
    found = [message["params"] for _, _, message in server.seen if message.get("method") == method]
    return [{key: value for key, value in params.items() if key != "_meta"} for params in found]


@requirement("mcp.tasks")
async def test_a_task_is_asked_for_until_it_is_completed_and_what_it_says_is_progress() -> None:
    server = upstream(task(statusMessage="half"), task(statusMessage="half"), task("completed", result=DONE))
    heard: list[Progress] = []
    with served(server) as url:
        async with connected_http(url) as up:
            result = await up.call("echo", progress=heard.append)
    assert result == ToolResult(content=({"type": "text", "text": "at last"},))
    assert heard == [Progress(1, message="half")]
    assert sent(server, "tasks/get") == [{"taskId": "t 1"}] * 3
    assert {headers["mcp-name"] for _, headers, message in server.seen if message.get("method") == "tasks/get"} == {
        "t 1"
    }
    declared = server.seen[-1][2]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert declared["extensions"] == {"io.modelcontextprotocol/tasks": {}}


async def test_a_failed_task_is_the_json_rpc_error_it_holds() -> None:
    server = upstream(task("failed", error={"code": -32050, "message": "The line is dead.", "data": {"line": 7}}))
    with served(server) as url:
        async with connected_http(url) as up:
            with pytest.raises(ProtocolError) as caught:
                await up.call("echo")
    assert (caught.value.rpc_code, caught.value.message, caught.value.data) == (
        -32050,
        "The line is dead.",
        {"line": 7},
    )


@pytest.mark.parametrize(
    ("look", "says"),
    [
        (task("cancelled"), "cancelled its task"),
        (task("completed"), "holds no result"),
        (task("completed", result={}), "no tool result"),
        (task("input_required"), "says not what"),
        (task("input_required", inputRequests={"a": {}}), "names no method"),
        (error(-32602, "no such task", 400), "no such task"),
    ],
)
async def test_a_task_that_brings_no_result_is_a_clear_error(look: Any, says: str) -> None:
    with served(upstream(look)) as url:
        async with connected_http(url) as up:
            with pytest.raises(CallError, match=says) as caught:
                await up.call("echo")
    assert caught.value.code is ErrorCode.UPSTREAM


async def test_its_questions_leave_with_a_state_by_which_any_node_goes_on() -> None:
    server = upstream(task("input_required", inputRequests={"user": NAME}), task("completed", result=DONE))
    may_ask = frozenset({"elicitation.form"})
    answer = {"action": "accept", "content": {"name": "Ada"}}
    with served(server) as url:
        async with connected_http(url) as up:
            with pytest.raises(NeedsInput) as asked:
                await up.call("echo", may_ask=may_ask)
        assert asked.value.questions == (Question("user", "elicitation/create", NAME["params"]),)
        async with connected_http(url) as another:
            result = await another.call(
                "echo", may_ask=may_ask, answers={"user": answer}, upstream_state=asked.value.state
            )
    assert result.text == "at last"
    assert sent(server, "tasks/update") == [{"taskId": "t 1", "inputResponses": {"user": answer}}]
    assert len(sent(server, "tools/call")) == 1


async def test_a_question_that_the_caller_cannot_answer_ends_the_task_and_says_what_is_missing() -> None:
    server = upstream(task("input_required", inputRequests={"user": NAME}))
    with served(server) as url:
        async with connected_http(url) as up:
            with pytest.raises(CallError, match=r"it lacks elicitation\.form"):
                await up.call("echo")
    assert sent(server, "tasks/cancel") == [{"taskId": "t 1"}]


async def test_cancelling_our_call_cancels_the_task() -> None:
    looked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def look(_: Any) -> Any:
        loop.call_soon_threadsafe(looked.set)
        return task()

    server = _with(upstream(), {"tasks/get": look})
    with served(server) as url:
        async with connected_http(url) as up:
            call = asyncio.create_task(up.call("echo"))
            async with asyncio.timeout(10):
                await looked.wait()
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
    assert sent(server, "tasks/cancel") == [{"taskId": "t 1"}]


async def test_a_look_that_is_lost_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_tasks, "USUAL_POLL", 0.001)
    server = upstream(Reply(503, b""), Reply(502, b""), task("completed", result=DONE))
    with served(server) as url:
        async with connected_http(url) as up:
            assert (await up.call("echo")).text == "at last"


async def test_looks_that_stay_lost_end_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_tasks, "USUAL_POLL", 0.001)
    server = upstream(Reply(503, b""))
    with served(server) as url:
        async with connected_http(url) as up:
            with pytest.raises(CallError, match="HTTP 503"):
                await up.call("echo")
    assert len(sent(server, "tasks/get")) == upstream_tasks.MOST_LOST


@pytest.mark.parametrize("status", ["completed", "input_required"])
async def test_a_task_that_is_further_already_when_it_is_made_is_looked_at_before_anything_else(status: str) -> None:
    server = upstream(task("completed", result=DONE))
    server.answers["tools/call"] = CREATED | {"status": status}
    with served(server) as url:
        async with connected_http(url) as up:
            assert (await up.call("echo")).text == "at last"
