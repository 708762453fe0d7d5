"""Sessions: numbered events, as pages and as a stream that can be resumed; injected tool events."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from starlette.types import ASGIApp, Message

from tests.faces.http.client import streaming
from tests.faces.http.conftest import Clients
from tests.requirements import requirement
from toolyard.app import App
from toolyard.core.principal import Scope
from toolyard.faces.http import session_stream


@pytest.fixture
async def client(clients: Clients) -> httpx2.AsyncClient:
    return await clients.with_scopes(Scope.CALL, name="app")


async def new_session(client: httpx2.AsyncClient, **customizations: object) -> str:
    answer = await client.post("/v1/sessions", json={"customizations": customizations})
    assert answer.status_code == 201, answer.text
    session = str(answer.json()["sessionId"])
    assert answer.headers["location"] == f"/v1/sessions/{session}"
    return session


async def inject(client: httpx2.AsyncClient, session: str, **fields: object) -> httpx2.Response:
    body = {"tool_id": "injected:note", "arguments": {"n": 1}, "result": "noted", **fields}
    return await client.post(f"/v1/sessions/{session}/tool_events", json=body)


def sse(client: httpx2.AsyncClient, **more: str) -> dict[str, str]:
    return {"authorization": client.headers["authorization"], "accept": "text/event-stream"} | {
        name.replace("_", "-"): value for name, value in more.items()
    }


def events_in(text: str) -> list[tuple[int, dict[str, Any]]]:
    blocks = [
        dict(line.split(": ", 1) for line in block.splitlines()) for block in text.split("\n\n") if "id: " in block
    ]
    return [(int(block["id"]), json.loads(block["data"])) for block in blocks]


async def test_a_session_is_shown_listed_and_deleted(client: httpx2.AsyncClient) -> None:
    session = await new_session(client, agentId="support", extensions={"mcpProviders": ["yard"]})
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert shown == {
        "id": session,
        "principal": "key:app",
        "agent_id": "support",
        "active_turn": None,
        "tools": [],
        "mcp_providers": ["yard"],
        "customizations": {"agentId": "support", "extensions": {"mcpProviders": ["yard"]}},
        "meta": {},
        "events": shown["events"],
        "created": shown["created"],
    }
    assert [one["id"] for one in (await client.get("/v1/sessions")).json()["items"]] == [session]
    assert (await client.delete(f"/v1/sessions/{session}")).status_code == 204
    assert (await client.get(f"/v1/sessions/{session}")).status_code == 404
    assert (await inject(client, session)).status_code == 404
    assert (await client.get("/v1/sessions")).json()["items"] == []


async def test_lists_hold_the_callers_own_sessions_newest_first(client: httpx2.AsyncClient, clients: Clients) -> None:
    mine = [await new_session(client) for _ in range(5)]
    other = await clients.with_scopes(Scope.CALL, name="other")
    theirs = await new_session(other)
    first = (await client.get("/v1/sessions?limit=3")).json()
    rest = (await client.get(f"/v1/sessions?limit=3&cursor={first['next_cursor']}")).json()
    assert [one["id"] for one in first["items"] + rest["items"]] == mine[::-1]
    assert rest["next_cursor"] is None
    auditor = await clients.with_scopes(Scope.READ, name="auditor")
    assert theirs in [one["id"] for one in (await auditor.get("/v1/sessions")).json()["items"]]
    assert (await client.get("/v1/sessions?cursor=nonsense")).status_code == 422


@requirement("inject.event")
async def test_an_injected_event_is_in_the_log_without_control_characters(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    for path in (f"/v1/sessions/{session}/tool_events", f"/sessions/{session}/tool_events"):
        answer = await client.post(
            path,
            json={
                "tool_id": "injected:conversation_history",
                "arguments": {"source": "zendesk\x07"},
                "result": {"messages": [{"from": "customer", "text": "Where\x1b[31m is\u202e it?"}]},
            },
        )
        assert answer.status_code == 201, answer.text
    made = answer.json()
    page = (await client.get(f"/v1/sessions/{session}/events")).json()
    event = page["items"][-1]
    assert (event["offset"], event["session_id"], event["kind"], event["type"]) == (
        made["offset"],
        session,
        "tool",
        "tool_result",
    )
    assert (event["tool_id"], event["arguments"]) == ("injected:conversation_history", {"source": "zendesk"})
    assert event["success"] is True
    assert "\x1b" not in json.dumps(event["result"], ensure_ascii=False)
    assert "Where" in event["result"]["messages"][0]["text"]


@requirement("inject.idempotent")
async def test_a_repeated_key_adds_nothing_and_another_body_is_refused(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    first = await inject(client, session, idempotency_key="import-1")
    again = await inject(client, session, idempotency_key="import-1")
    both = await asyncio.gather(*(inject(client, session, idempotency_key="import-2") for _ in range(4)))
    assert again.json() == first.json()
    assert len({answer.text for answer in both}) == 1
    other = await inject(client, session, idempotency_key="import-1", result="else")
    assert other.status_code == 409
    items = (await client.get(f"/v1/sessions/{session}/events")).json()["items"]
    assert [event["offset"] for event in items] == list(range(1, len(items) + 1))
    assert len([event for event in items if event.get("tool_id") == "injected:note"]) == 2


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"tool_id": ""}, "/tool_id"),
        ({"tool_id": 5}, "/tool_id"),
        ({"arguments": []}, "/arguments"),
        ({"idempotency_key": ""}, "/idempotency_key"),
        ({"trigger_processing": "yes"}, "/trigger_processing"),
        ({"results": 1}, "/results"),
    ],
)
async def test_an_injected_event_that_makes_no_sense_is_refused(
    client: httpx2.AsyncClient, fields: dict[str, object], pointer: str
) -> None:
    session = await new_session(client)
    before = (await client.get(f"/v1/sessions/{session}/events")).json()
    answer = await inject(client, session, **fields)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
    assert (await client.get(f"/v1/sessions/{session}/events")).json() == before


@requirement("session.events")
async def test_events_are_paged_from_any_offset_without_gaps(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    for n in range(7):
        await inject(client, session, result=n)
    path = f"/v1/sessions/{session}/events"
    everything = (await client.get(path)).json()
    offsets = [event["offset"] for event in everything["items"]]
    assert offsets == list(range(1, len(offsets) + 1))
    paged, query = [], "limit=3"
    while True:
        page = (await client.get(f"{path}?{query}")).json()
        paged += page["items"]
        if page["next_cursor"] is None:
            break
        query = f"limit=3&cursor={page['next_cursor']}"
    assert paged == everything["items"]
    assert (await client.get(f"{path}?after=4")).json()["items"] == everything["items"][4:]


@requirement("session.events")
async def test_the_stream_is_resumed_with_the_last_event_id(client: httpx2.AsyncClient, face: ASGIApp) -> None:
    session = await new_session(client)
    path = f"/v1/sessions/{session}/events"
    for n in range(5):
        await inject(client, session, result=f"early {n}")
    async with streaming(face, path, headers=sse(client)) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        read = await stream.until("early 4") + await stream.until("\n\n")
        await inject(client, session, result="live")
        read += await stream.until('"live"') + await stream.until("\n\n")
    seen = events_in(read)
    await inject(client, session, result="missed")
    async with streaming(face, path, headers=sse(client, last_event_id=str(seen[-1][0]))) as stream:
        read = await stream.until('"missed"') + await stream.until("\n\n")
        await inject(client, session, result="and after")
        read += await stream.until('"and after"') + await stream.until("\n\n")
    seen += events_in(read)
    log = (await client.get(path)).json()["items"]
    assert seen == [(event["offset"], event) for event in log]


@requirement("session.events")
@pytest.mark.parametrize(
    ("headers", "query", "pointer"),
    [
        ({"last_event_id": "999999"}, "", "header:Last-Event-ID"),
        ({"last_event_id": "one"}, "", "header:Last-Event-ID"),
        ({"last_event_id": "-1"}, "", "header:Last-Event-ID"),
        ({}, "after=999999", "query:after"),
        ({}, "after=-1", "query:after"),
    ],
)
async def test_a_number_that_is_none_of_the_sessions_is_refused(
    client: httpx2.AsyncClient, headers: dict[str, str], query: str, pointer: str
) -> None:
    session = await new_session(client)
    answer = await client.get(f"/v1/sessions/{session}/events?{query}", headers=sse(client, **headers))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


async def test_a_quiet_stream_is_kept_alive_until_its_key_is_revoked(
    client: httpx2.AsyncClient, face: ASGIApp, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_stream, "KEEP_ALIVE_EVERY", 0.02)
    session = await new_session(client)
    async with streaming(face, f"/v1/sessions/{session}/events", headers=sse(client)) as stream:
        await stream.until(": keep-alive\n\n")
        [key] = [info for info in await app.keys.list() if info.name == "app"]
        await app.keys.revoke(key.id)
        async with asyncio.timeout(5):
            await stream.ended.wait()


async def test_a_reader_that_stops_reading_holds_up_nobody_and_loses_nothing(
    client: httpx2.AsyncClient, face: ASGIApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.faces.http.stream.SLOWEST_READ", 0.05)
    session = await new_session(client)
    path = f"/v1/sessions/{session}/events"
    stalled = asyncio.Event()

    async def never_reads(message: Message) -> None:
        if message["type"] == "http.response.body" and b"id: 1\n" in message["body"]:
            stalled.set()
            await asyncio.Event().wait()

    async def never_leaves() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in {"host": "x", **sse(client)}.items()],
        "client": ("127.0.0.1", 1),
    }
    await inject(client, session, result="first")
    reading = asyncio.create_task(face(scope, never_leaves, never_reads))  # type: ignore[arg-type]
    await stalled.wait()
    for n in range(20):
        assert (await inject(client, session, result=n)).status_code == 201
    async with asyncio.timeout(5):
        await reading
    async with streaming(face, path, headers=sse(client, last_event_id="1")) as stream:
        assert events_in(await stream.until('"result":19') + await stream.until("\n\n"))[0][0] == 2
