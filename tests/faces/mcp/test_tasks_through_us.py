"""A yard in front of another yard: the one behind answers with tasks, and the client in front sees calls or tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faces.mcp.test_tasks import KNOWS_FORMS, ask, break_protocol, confirm, ended, once
from tests.faces.mcp.yard import Scripted, Slow, Wire, fill
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.catalog import ToolSettings
from toolyard.core.errors import ErrorCode
from toolyard.core.record import CallFilter
from toolyard.faces.mcp import build
from toolyard.providers.mcp import McpHttpProvider
from toolyard.serving import listening_socket, serving


@dataclass
class Pair:
    front: Wire
    app: App
    behind: App
    slow: Slow


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    bound = listening_socket("127.0.0.1", 0)
    settings = Settings(data_dir=tmp_path / "behind", demo=True, task_after_seconds=0.02)
    async with App.running(settings) as behind:
        kit = Scripted("kit")
        slow = fill(kit)
        kit.add("confirm", confirm, task="always")
        kit.add("broken", break_protocol, task="always")
        await behind.supervisor.add_and_start(kit)
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
        async with serving(build(behind), bound), App.running(Settings(data_dir=tmp_path / "front", demo=True)) as app:
            await app.supervisor.add_and_start(McpHttpProvider("up", url, egress=app.egress))
            yield Pair(Wire(build(app)), app, behind, slow)


def call(tool: str) -> dict[str, Any]:
    return {"name": f"up_kit_{tool}_action_action", "arguments": {}}


@requirement("mcp.tasks")
async def test_a_client_without_tasks_has_the_result_of_a_task_behind_us(pair: Pair) -> None:
    request = pair.front.modern_open("tools/call", call("slow"))
    await pair.slow.started.wait()
    pair.slow.release.set()
    result = (await request.done()).json["result"]
    assert (result["resultType"], result["content"]) == ("complete", [{"type": "text", "text": "at last"}])


@requirement("mcp.tasks")
async def test_a_client_that_leaves_cancels_the_task_behind_us(pair: Pair) -> None:
    request = pair.front.modern_open("tools/call", call("slow"))
    async with asyncio.timeout(10):
        await pair.slow.started.wait()
        request.disconnect()
        await pair.slow.over.wait()
    await request.done()
    assert pair.slow.ended == "cancelled"


async def test_a_protocol_error_behind_us_keeps_its_code_in_our_task(pair: Pair) -> None:
    await pair.app.set_tool_settings("up:kit_broken_action", ToolSettings(task="always"))
    last = await ended(pair.front, await ask(pair.front, "tools/call", call("broken")))
    assert (last["status"], last["error"]) == (
        "failed",
        {"code": -32050, "message": "The line is dead.", "data": {"line": 7}},
    )


@requirement("mcp.tasks")
@requirement("mcp.bridge")
async def test_what_a_task_behind_us_asks_reaches_our_client_and_its_answers_go_back(pair: Pair) -> None:
    await pair.app.set_tool_settings("up:kit_confirm_action", ToolSettings(task="always"))
    task = await ask(pair.front, "tools/call", call("confirm"), KNOWS_FORMS)
    asking = await once(pair.front, task, {"input_required"})
    assert list(asking["inputRequests"]) == ["name", "sure"]
    answers = {key: {"action": "accept", "content": {"text": key}} for key in ("name", "sure")}
    await ask(pair.front, "tasks/update", {"taskId": task["taskId"], "inputResponses": answers})
    last = await ended(pair.front, task)
    assert last["result"]["structuredContent"] == answers


@requirement("mcp.tasks")
async def test_a_call_that_is_cancelled_while_its_task_behind_us_asks_cancels_that_task(pair: Pair) -> None:
    await pair.app.set_tool_settings("up:kit_confirm_action", ToolSettings(task="always"))
    task = await ask(pair.front, "tools/call", call("confirm"), KNOWS_FORMS)
    await once(pair.front, task, {"input_required"})
    await ask(pair.front, "tasks/cancel", {"taskId": task["taskId"]})
    (behind,) = (await pair.behind.calls.page(CallFilter(tool="kit:confirm"))).items
    assert behind.error_code is ErrorCode.CANCELLED
