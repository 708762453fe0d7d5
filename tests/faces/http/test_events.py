"""The event stream: in order, resumable, closed when it may no longer be read."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Any

import httpx2
import pytest
from starlette.types import ASGIApp, Message

from tests.faces.http.client import streaming
from tests.faces.http.conftest import Clients
from toolyard.app import App
from toolyard.core.principal import Scope
from toolyard.durable.events import Bus
from toolyard.faces.http.stream import EventStream


async def call(client: httpx2.AsyncClient) -> str:
    answer = await client.post("/v1/tools/yard:echo/call", json={"arguments": {"text": "x"}})
    return str(answer.json()["id"])


def parsed(text: str) -> tuple[int, str, dict[str, Any]]:
    """The last event in `text`."""
    lines = dict(line.split(": ", 1) for line in text.strip().split("\n\n")[-1].splitlines())
    return int(lines["id"]), lines["event"], json.loads(lines["data"])


async def test_calls_are_told_as_they_begin_and_end(local: httpx2.AsyncClient, face: ASGIApp) -> None:
    async with streaming(face, "/v1/events", query="topics=call") as stream:
        await stream.until("retry: 2000\n\n")
        call_id = await call(local)
        began = parsed(await stream.until("\n\n"))
        ended = parsed(await stream.until("\n\n"))
    assert stream.status == 200
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert [(event, data["id"], data["state"]) for _, event, data in (began, ended)] == [
        ("call", call_id, "PROCESSING"),
        ("call", call_id, "COMPLETE"),
    ]
    assert began[0] < ended[0]
    assert datetime.fromisoformat(began[2]["at"]) <= datetime.fromisoformat(ended[2]["at"])
    assert ended[2]["topic"] == "call"


async def test_a_reader_that_comes_back_gets_what_it_missed(local: httpx2.AsyncClient, face: ASGIApp) -> None:
    async with streaming(face, "/v1/events", query="topics=call") as stream:
        await stream.until("retry: 2000\n\n")
        await call(local)
        seen, _, _ = parsed(await stream.until("\n\n"))
        await stream.until("\n\n")
    missed = await call(local)
    for headers, query in (({"last-event-id": str(seen)}, "topics=call"), ({}, f"topics=call&after={seen}")):
        async with streaming(face, "/v1/events", headers=headers, query=query) as stream:
            text = await stream.until(missed) + await stream.until("COMPLETE")
            assert "event: missed" not in text
    async with streaming(face, "/v1/events", headers={"last-event-id": "1"}) as stream:
        await stream.until("event: missed\ndata: {}\n\n")


@pytest.mark.parametrize(
    ("query", "headers", "pointer"),
    [
        ("topics=calls", {}, "query:topics"),
        ("topics=", {}, "query:topics"),
        ("after=-1", {}, "query:after"),
        ("topic=call", {}, "query:topic"),
        ("", {"last-event-id": "x"}, "header:Last-Event-ID"),
        ("", {"last-event-id": "9" * 30}, "header:Last-Event-ID"),
    ],
)
async def test_a_stream_that_makes_no_sense_is_refused(
    local: httpx2.AsyncClient, query: str, headers: dict[str, str], pointer: str
) -> None:
    answer = await local.get(f"/v1/events?{query}", headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


async def test_the_stream_needs_the_scope_read(clients: Clients) -> None:
    assert (await (await clients.with_scopes(Scope.CALL)).get("/v1/events")).status_code == 403


async def test_stopping_the_yard_ends_its_streams(app: App, face: ASGIApp) -> None:
    async with streaming(face, "/v1/events") as stream:
        await stream.until("retry: 2000\n\n")
        app.bus.close()
        async with asyncio.timeout(5):
            await stream.ended.wait()


async def _allowed() -> bool:
    return True


async def _revoked() -> bool:
    return False


async def _never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_quiet_stream_is_kept_alive() -> None:
    stream = EventStream(Bus(), ["call"], after=None, still_allowed=_allowed, keep_alive_every=0.01)
    sent, gone = list[bytes](), asyncio.Event()

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))
        if sent.count(b": keep-alive\n\n") == 2:
            gone.set()

    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    async with asyncio.timeout(5):
        await stream({"type": "http"}, receive, send)
    assert sent[:4] == [b"", b"retry: 2000\n\n", b": keep-alive\n\n", b": keep-alive\n\n"]


async def test_a_stream_does_not_outlive_its_key() -> None:
    stream = EventStream(Bus(), ["call"], after=None, still_allowed=_revoked, keep_alive_every=0.01)
    sent = list[Message]()

    async def send(message: Message) -> None:
        sent.append(message)

    async with asyncio.timeout(5):
        await stream({"type": "http"}, _never, send)
    assert [message.get("more_body") for message in sent] == [None, True, False]


async def test_a_reader_that_stops_reading_is_dropped_and_slows_nobody() -> None:
    bus, reading = Bus(), asyncio.Event()
    stream = EventStream(bus, ["call"], after=None, still_allowed=_allowed)
    sent = list[bytes]()

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))
        if len(sent) == 3:
            reading.set()
            await resumed.wait()

    resumed = asyncio.Event()
    task = asyncio.create_task(stream({"type": "http"}, _never, send))
    async with asyncio.timeout(5):
        while not sent:
            await asyncio.sleep(0)
        bus.publish("call", {"n": 0})
        await reading.wait()
        for number in range(300):
            bus.publish("call", {"n": number})
        resumed.set()
        await task
    assert sent[-1] == b""
    assert len(sent) < 10
