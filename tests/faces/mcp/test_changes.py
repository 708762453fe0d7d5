"""list_changed: on a modern subscription and on a legacy session's stream, when a client would see another list."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.faces.mcp.conftest import Yard
from tests.faces.mcp.yard import BOTH, LegacySession, Request, Wire, echo
from toolyard.catalog import Server, ToolSettings

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
CHANGED = "notifications/tools/list_changed"


async def listen(wire: Wire, *, tools: bool = True, path: str = "/mcp") -> Request:
    request = wire.modern_open(
        "subscriptions/listen",
        {"notifications": {"toolsListChanged": tools, "promptsListChanged": "yes"}},
        request_id="sub-1",
        path=path,
    )
    await request.frames(1)
    return request


async def follow(session: LegacySession) -> Request:
    request = session.wire.open("GET", headers={"Accept": BOTH, "Mcp-Session-Id": session.id})
    await request.until(lambda answer: answer.status != 0)
    return request


async def switch(yard: Yard, tool: str, *, on: bool) -> None:
    await yard.app.set_tool_settings(tool, ToolSettings(enabled=on))


async def test_a_subscription_is_acknowledged_first_and_only_for_what_is_served(wire: Wire) -> None:
    request = await listen(wire)
    assert request.answer.headers["content-type"] == "text/event-stream"
    assert request.answer.frames == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": {"toolsListChanged": True}, "_meta": {SUBSCRIPTION: "sub-1"}},
        }
    ]
    request.disconnect()
    await request.done()


async def test_both_eras_hear_of_a_change(yard: Yard) -> None:
    modern, legacy = await listen(yard.wire), await follow(await yard.wire.initialize())
    await switch(yard, "kit:fail", on=False)
    assert (await modern.frames(2))[1] == {
        "jsonrpc": "2.0",
        "method": CHANGED,
        "params": {"_meta": {SUBSCRIPTION: "sub-1"}},
    }
    assert await legacy.frames(1) == [{"jsonrpc": "2.0", "method": CHANGED}]
    for request in (modern, legacy):
        request.disconnect()
        await request.done()


async def test_many_publishes_in_a_row_are_told_once(yard: Yard) -> None:
    request = await listen(yard.wire)
    for number in range(20):
        yard.provider.add(f"more{number}", echo)
        await yard.app.supervisor.refresh("kit")
    await request.frames(2)
    await switch(yard, "kit:fail", on=False)
    frames = await request.frames(3)
    assert len(frames) <= 4
    request.disconnect()
    await request.done()


async def test_a_change_that_a_client_cannot_see_is_not_told(yard: Yard) -> None:
    await yard.app.save_server(Server("narrow", tools=("kit:echo",)))
    narrow, wide = await listen(yard.wire, path="/mcp/narrow"), await listen(yard.wire)
    yard.app.catalog.set_availability("kit", False, "down")
    await switch(yard, "kit:fail", on=False)
    await wide.frames(2)
    await switch(yard, "kit:echo", on=False)
    assert [frame["method"] for frame in await narrow.frames(2)][1:] == [CHANGED]
    for request in (narrow, wide):
        request.disconnect()
        await request.done()


async def test_who_did_not_ask_for_tools_hears_nothing_of_them(yard: Yard) -> None:
    deaf, hearing = await listen(yard.wire, tools=False), await listen(yard.wire)
    assert deaf.answer.frames[0]["params"]["notifications"] == {}
    await switch(yard, "kit:fail", on=False)
    await hearing.frames(2)
    for request in (deaf, hearing):
        request.disconnect()
        await request.done()
    assert len(deaf.answer.frames) == 1


async def test_a_new_slice_of_a_server_is_a_change(yard: Yard) -> None:
    await yard.app.save_server(Server("sales", tools=("kit:echo",)))
    request = await listen(yard.wire, path="/mcp/sales")
    await yard.app.save_server(Server("sales", tools=("kit:*",)))
    assert [frame["method"] for frame in await request.frames(2)][1:] == [CHANGED]
    request.disconnect()
    await request.done()


async def test_a_session_has_one_stream_and_the_newest_is_it(yard: Yard) -> None:
    session = await yard.wire.initialize()
    old = await follow(session)
    new = await follow(session)
    await old.done()
    await switch(yard, "kit:fail", on=False)
    await new.frames(1)
    assert old.answer.frames == []
    new.disconnect()
    await new.done()


async def test_ending_a_session_ends_its_stream(wire: Wire) -> None:
    session = await wire.initialize()
    stream = await follow(session)
    await wire.send("DELETE", headers={"Mcp-Session-Id": session.id})
    assert (await stream.done()).status == 200


async def test_a_stream_must_be_accepted(wire: Wire) -> None:
    session = await wire.initialize()
    answer = await wire.send("GET", headers={"Accept": "application/json", "Mcp-Session-Id": session.id})
    assert answer.status == 406


async def test_nothing_is_kept_of_streams_whose_clients_left(yard: Yard) -> None:
    requests: list[Any] = [await listen(yard.wire), await follow(await yard.wire.initialize())]
    assert yard.edge.face.changes.open_streams == 2
    for request in requests:
        request.disconnect()
        await request.done()
    assert yard.edge.face.changes.open_streams == 0


async def test_a_face_that_stops_ends_its_streams_with_a_last_word(yard: Yard) -> None:
    request = await listen(yard.wire)
    yard.edge.face.close()
    async with asyncio.timeout(5):
        answer = await request.done()
    last = answer.frames[-1]
    assert (last["id"], last["result"]["_meta"][SUBSCRIPTION]) == ("sub-1", "sub-1")


async def test_a_server_that_stops_may_cancel_a_stream_and_it_ends_in_order(yard: Yard) -> None:
    modern, legacy = await listen(yard.wire), await follow(await yard.wire.initialize())
    for request in (modern, legacy):
        request.task.cancel()
        await request.done()
    assert modern.answer.frames[-1]["id"] == "sub-1"
    assert yard.edge.face.changes.open_streams == 0
