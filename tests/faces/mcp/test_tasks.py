"""Calls answered with a task (SEP-2663): when, what it says, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.faces.mcp.yard import Scripted, Slow, Wire, echo, fail
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.core.call import Progress, ToolResult
from toolyard.core.errors import ProtocolError
from toolyard.core.principal import Principal, PrincipalKind, Scope
from toolyard.core.tool import Annotations
from toolyard.faces.mcp import build
from toolyard.providers.base import Invocation

TASKS = "io.modelcontextprotocol/tasks"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
REVIEWER = Principal(PrincipalKind.KEY, "reviewer", "reviewer", frozenset({Scope.APPROVE}))
KNOWS_TASKS = {CAPABILITIES: {"extensions": {TASKS: {}}}}
ENDED = {"completed", "failed", "cancelled"}


async def break_protocol(invocation: Invocation) -> ToolResult:
    raise ProtocolError(-32050, "The line is dead.", {"line": 7})


async def crash(invocation: Invocation) -> ToolResult:
    raise RuntimeError("not a CallError, so a fault of ours")


@pytest.fixture
def slow() -> Slow:
    return Slow(reports=(Progress(1, 3, "one third"),))


@pytest.fixture
def kit(slow: Slow) -> Scripted:
    kit = Scripted("kit")
    kit.add("slow", slow, annotations=Annotations(read_only=True))
    kit.add("echo", echo, annotations=Annotations(read_only=True))
    for name, run in {"job": echo, "failing": fail, "broken": break_protocol, "crashing": crash}.items():
        kit.add(name, run, task="always")
    kit.add("plain", slow, task="never")
    return kit


@pytest.fixture
async def app(tmp_path: Path, kit: Scripted) -> AsyncIterator[App]:
    settings = Settings(data_dir=tmp_path / "data", demo=True, hold_seconds=30, task_after_seconds=0.05)
    async with App.running(settings) as app:
        await app.supervisor.add_and_start(kit)
        yield app


@pytest.fixture
def wire(app: App) -> Wire:
    return Wire(build(app))


async def ask(wire: Wire, method: str, params: Mapping[str, Any], **kwargs: Any) -> Any:
    """The result of a request that declares the extension."""
    headers = {"Mcp-Name": params["taskId"]} if "taskId" in params else None
    answer = await wire.modern(method, params, meta=KNOWS_TASKS, headers=headers, **kwargs)
    return answer.json["result"]


async def call(wire: Wire, tool: str, **arguments: Any) -> Any:
    return await ask(wire, "tools/call", {"name": f"kit_{tool}_action", "arguments": arguments})


async def ended(wire: Wire, task: Mapping[str, Any]) -> Any:
    async with asyncio.timeout(10):
        while (now := await ask(wire, "tasks/get", {"taskId": task["taskId"]}))["status"] not in ENDED:
            pass
    return now


async def test_a_quick_call_is_answered_as_it_always_was(wire: Wire) -> None:
    result = await call(wire, "echo", text="hi")
    assert (result["resultType"], result["structuredContent"]) == ("complete", {"text": "hi"})
    assert "taskId" not in result


@requirement("mcp.tasks")
async def test_a_call_that_takes_longer_than_the_soft_limit_becomes_a_task_and_survives_its_request(
    app: App, wire: Wire, slow: Slow
) -> None:
    request = wire.modern_open("tools/call", {"name": "kit_slow_action", "arguments": {}}, meta=KNOWS_TASKS)
    task = (await request.done()).json["result"]
    request.disconnect()
    stamp = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert {key: value for key, value in task.items() if key not in ("createdAt", "lastUpdatedAt", "_meta")} == {
        "resultType": "task",
        "taskId": task["taskId"],
        "status": "working",
        "statusMessage": "one third",
        "ttlMs": None,
        "pollIntervalMs": 500,
    }
    import re

    assert re.fullmatch(stamp, task["createdAt"])
    assert re.fullmatch(stamp, task["lastUpdatedAt"])
    record = await app.calls.get(task["taskId"])
    assert record.state == "PROCESSING"
    slow.release.set()
    last = await ended(wire, task)
    assert (last["status"], last["resultType"]) == ("completed", "complete")
    assert last["result"]["content"] == [{"type": "text", "text": "at last"}]
    assert last["createdAt"] == task["createdAt"]
    assert slow.ended == "done"
