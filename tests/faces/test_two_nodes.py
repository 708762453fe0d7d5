"""Two nodes on one PostgreSQL database: any node takes any request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faces.http.client import client_of, streaming
from tests.faces.http.test_client_tools import DONE, LOCATIONS, beat, customizations, respond
from tests.faces.http.test_sessions import events_in, inject
from tests.faces.http.tools import YardTools
from tests.faces.mcp.yard import Wire
from tests.requirements import requirement
from tests.store.postgres import PostgresServer
from toolyard.app import App, Settings
from toolyard.catalog import ToolSettings
from toolyard.core.principal import Scope
from toolyard.faces import asgi

pytestmark = pytest.mark.postgres


@dataclass
class Node:
    app: App
    face: Any
    tools: YardTools

    def client(self, key: str) -> httpx2.AsyncClient:
        return client_of(self.face, key=key)


@pytest.fixture
async def nodes(postgres_server: PostgresServer, tmp_path: Path) -> AsyncIterator[tuple[Node, Node]]:
    settings = Settings(data_dir=tmp_path / "data", database=postgres_server.new_database(), demo=True)
    async with AsyncExitStack() as stack:
        found: list[Node] = []
        for name in ("a", "b"):
            app = await stack.enter_async_context(App.running(replace(settings, data_dir=tmp_path / name)))
            tools = YardTools()
            await app.supervisor.add_and_start(tools)
            await app.set_tool_settings("yard:write", ToolSettings(approval="ask"))
            found.append(Node(app, asgi.build(app), tools))
        yield found[0], found[1]


async def key_of(node: Node, name: str, *scopes: Scope) -> str:
    return (await node.app.keys.create(name, scopes))[1]


async def pending(client: httpx2.AsyncClient) -> str:
    async with asyncio.timeout(15):
        while not (items := (await client.get("/v1/approvals?state=pending")).json()["items"]):
            pass
    return str(items[0]["id"])


@requirement("approval.gate")
@pytest.mark.parametrize("face", ["http", "mcp"])
async def test_a_decision_on_one_node_answers_the_request_that_another_node_holds(
    nodes: tuple[Node, Node], face: str
) -> None:
    a, b = nodes
    caller = await key_of(a, "ci", Scope.CALL)
    reviewer = b.client(await key_of(b, "reviewer", Scope.APPROVE))
    held: asyncio.Task[Any] | None = None
    if face == "http":
        held = asyncio.create_task(
            a.client(caller).post("/v1/tools/yard:write/call?wait=30", json={"arguments": {"text": "x"}})
        )
    else:
        params = {"name": "yard_write_action", "arguments": {"text": "x"}}
        request = Wire(a.face).modern_open("tools/call", params, headers={"Authorization": f"Bearer {caller}"})
    approval = await pending(reviewer)
    decided = await reviewer.post(f"/v1/approvals/{approval}", json={"decision": "approve"})
    assert decided.status_code == 200, decided.text
    if held is not None:
        answer = await held
        assert (answer.status_code, answer.json()["state"]) == (200, "COMPLETE")
        call_id = answer.json()["id"]
    else:
        answer = await request.done()
        result = (answer.frames[-1] if answer.frames else answer.json)["result"]
        assert not result["isError"]
        call_id = result["_meta"]["toolyard/call-id"]
    assert sorted(a.tools.ran + b.tools.ran) == ["write"]
    elsewhere = (await b.client(caller).get(f"/v1/calls/{call_id}")).json()
    assert (elsewhere["state"], elsewhere["waiting"]) == ("COMPLETE", None)


@requirement("client.pickup")
@requirement("client.heartbeat")
async def test_a_client_may_send_each_beat_and_its_response_to_another_node(nodes: tuple[Node, Node]) -> None:
    a, b = nodes
    key = await key_of(a, "app", Scope.CALL)
    on_a, on_b = a.client(key), b.client(key)
    session = (await on_a.post("/v1/sessions", json=customizations(LOCATIONS))).json()["sessionId"]
    picking_up = asyncio.create_task(on_b.get(f"/v1/tools/requests/{session}?wait=15"))
    held = asyncio.create_task(on_a.post(f"/v1/sessions/{session}/tools/getLocations/call?wait=30", json={}))
    [request] = (await picking_up).json()
    for client in (on_b, on_a, on_b, on_a):
        assert (await beat(client, session, request["requestId"])).json() == {"state": "PROCESSING"}
    pairs = {"requests": [[session, request["requestId"]]]}
    for client in (on_a, on_b):
        assert (await client.post("/v1/tools/heartbeats", json=pairs)).json() == {"gone": []}
    assert (await respond(on_b, session, request["requestId"], DONE)).status_code == 200
    ended = await held
    assert ended.json()["state"] == "COMPLETE"
    async with asyncio.timeout(10):
        for client in (on_a, on_b):
            while (await client.post("/v1/tools/heartbeats", json=pairs)).json() != {"gone": pairs["requests"]}:
                pass


async def test_naming_somebody_elses_call_does_not_end_it_for_its_client(nodes: tuple[Node, Node]) -> None:
    a, b = nodes
    key = await key_of(a, "app", Scope.CALL)
    stranger = b.client(await key_of(a, "stranger", Scope.CALL))
    session = (await a.client(key).post("/v1/sessions", json=customizations(LOCATIONS))).json()["sessionId"]
    started = await a.client(key).post(f"/v1/sessions/{session}/tools/getLocations/call?wait=0", json={})
    pairs = {"requests": [[session, started.json()["id"]]]}
    await beat(a.client(key), session, started.json()["id"])
    await stranger.post("/v1/tools/heartbeats", json=pairs)
    await b.app.client_calls.flush()
    assert (await stranger.post("/v1/tools/heartbeats", json=pairs)).json() == {"gone": pairs["requests"]}
    for node in nodes:
        assert (await node.client(key).post("/v1/tools/heartbeats", json=pairs)).json() == {"gone": []}


@requirement("session.events")
async def test_a_follower_hops_between_nodes_and_reads_the_log_without_gaps(nodes: tuple[Node, Node]) -> None:
    key = await key_of(nodes[0], "app", Scope.CALL)
    clients = [node.client(key) for node in nodes]
    session = (await clients[0].post("/v1/sessions", json={})).json()["sessionId"]
    path = f"/v1/sessions/{session}/events"
    seen: list[tuple[int, dict[str, Any]]] = []
    for hop in range(6):
        here, other = nodes[hop % 2], clients[(hop + 1) % 2]
        headers = {"authorization": f"Bearer {key}", "accept": "text/event-stream"}
        if seen:
            headers["last-event-id"] = str(seen[-1][0])
        async with streaming(here.face, path, headers=headers) as stream:
            for n in range(5):
                assert (await inject(other, session, result=f"{hop}.{n}")).status_code == 201
            read = await stream.until(f'"result":"{hop}.2"') + await stream.until("\n\n")
        seen += events_in(read)
    log = (await clients[1].get(path)).json()["items"]
    async with streaming(nodes[0].face, path, headers={**headers, "last-event-id": str(seen[-1][0])}) as stream:
        seen += events_in(await stream.until('"result":"5.4"') + await stream.until("\n\n"))
    assert seen == [(event["offset"], event) for event in log]
    assert [offset for offset, _ in seen] == list(range(1, len(seen) + 1))
