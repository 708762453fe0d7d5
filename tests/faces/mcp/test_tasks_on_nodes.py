"""A task belongs to no node: what one began, another tells of, updates and cancels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faces.mcp.test_tasks import ENDED, KNOWS_FORMS, KNOWS_TASKS, ask, once, relay
from tests.faces.mcp.yard import Scripted, Slow, Wire, fill
from tests.requirements import requirement
from tests.store.postgres import PostgresServer
from toolyard.app import App, Settings
from toolyard.faces.mcp import build

pytestmark = pytest.mark.postgres
SLOW = {"name": "kit_slow_action", "arguments": {}}


@dataclass
class Node:
    app: App
    wire: Wire
    slow: Slow


@pytest.fixture
async def nodes(postgres_server: PostgresServer, tmp_path: Path) -> AsyncIterator[tuple[Node, Node]]:
    database = postgres_server.new_database()
    async with AsyncExitStack() as stack:
        found: list[Node] = []
        for name in ("a", "b"):
            settings = Settings(
                data_dir=tmp_path / name,
                database=database,
                blobs=str(tmp_path / "blobs"),
                demo=True,
                task_after_seconds=0.05,
            )
            app = await stack.enter_async_context(App.running(settings))
            kit = Scripted("kit")
            slow = fill(kit)
            kit.add("relay", relay, task="always")
            await app.supervisor.add_and_start(kit)
            found.append(Node(app, Wire(build(app)), slow))
        yield found[0], found[1]


async def ended(wire: Wire, task: Mapping[str, Any]) -> Any:
    async with asyncio.timeout(15):
        while (now := await ask(wire, "tasks/get", {"taskId": task["taskId"]}))["status"] not in ENDED:
            await asyncio.sleep(0)
    return now


@requirement("mcp.tasks")
async def test_another_node_tells_of_a_task_and_gives_its_result(nodes: tuple[Node, Node]) -> None:
    a, b = nodes
    task = await ask(a.wire, "tools/call", SLOW)
    assert (await ask(b.wire, "tasks/get", {"taskId": task["taskId"]}))["status"] == "working"
    wanted = {"notifications": {"taskIds": [task["taskId"]]}}
    stream = b.wire.modern_open("subscriptions/listen", wanted, meta=KNOWS_TASKS)
    await stream.frames(2)
    a.slow.release.set()
    told = (await stream.frames(3))[2]["params"]
    stream.disconnect()
    await stream.done()
    assert (told["status"], told["result"]["content"][0]["text"]) == ("completed", "at last")
    assert (await ended(b.wire, task))["result"] == told["result"]


@requirement("mcp.tasks")
async def test_another_node_cancels_a_task_and_its_tool_stops(nodes: tuple[Node, Node]) -> None:
    a, b = nodes
    task = await ask(a.wire, "tools/call", SLOW)
    await ask(b.wire, "tasks/cancel", {"taskId": task["taskId"]})
    assert (await ended(b.wire, task))["status"] == "cancelled"
    async with asyncio.timeout(10):
        await a.slow.over.wait()
    assert a.slow.ended == "cancelled"


@requirement("mcp.tasks")
async def test_a_task_that_asks_outlives_the_node_that_asked(nodes: tuple[Node, Node]) -> None:
    a, b = nodes
    task = await ask(a.wire, "tools/call", {"name": "kit_relay_action", "arguments": {}}, KNOWS_FORMS)
    await once(a.wire, task, {"input_required"})
    await a.app.engine.abandon()
    answer = {"action": "accept", "content": {"text": "Ada"}}
    asking = await once(b.wire, task, {"input_required"})
    assert list(asking["inputRequests"]) == ["name"]
    await ask(b.wire, "tasks/update", {"taskId": task["taskId"], "inputResponses": {"name": answer}})
    last = await ended(b.wire, task)
    assert last["result"]["structuredContent"] == {"state": "its state", "name": answer}
