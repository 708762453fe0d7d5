"""Sessions: their numbered events, followed from anywhere, and the events that are added by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.calls.waiting_yard import CALLER, OTHER, customizations, node
from tests.calls.yard import blocking, request
from tests.requirements import requirement
from toolyard.core.call import CallState
from toolyard.core.errors import BadInput, Conflict, ErrorCode, NotFound
from toolyard.core.principal import Principal, PrincipalKind, Scope
from toolyard.core.session import Injected

READER = Principal(PrincipalKind.KEY, "k7", "auditor", frozenset({Scope.READ}))
DONE = {"state": "COMPLETE"}


@requirement("session.events")
async def test_a_direct_call_in_a_session_is_told_in_its_log(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session = await n.sessions.create(CALLER, customizations())
        outcome = await n.call("crm:read", {"text": "hello"}, session=session.id)
        refused = await n.call("crm:read", {}, session=session.id)
        events = await n.events(session)
        assert [(event.seq, event.kind, event.type) for event in events] == [
            (1, "tool", "tool_call"),
            (2, "tool", "tool_result"),
            (3, "tool", "tool_call"),
            (4, "tool", "tool_result"),
        ]
        assert events[0].data["execution"] == "node"
        told = events[1].data
        assert (told["toolCallId"], told["success"], told["result"]) == (outcome.call_id, True, "hello")
        assert (events[3].data["toolCallId"], events[3].data["code"]) == (refused.call_id, "invalid_arguments")


@requirement("session.events")
async def test_events_are_paged_and_followed_without_gaps_while_many_write(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n, asyncio.timeout(20):
        session = await n.sessions.create(CALLER, customizations())
        wanted = 60

        async def follow(after: int) -> list[int]:
            seen: list[int] = []
            async for event in n.sessions.follow(session.id, CALLER, after=after):
                seen.append(event.seq)
                if event.seq == wanted:
                    break
            return seen

        async def write() -> None:
            for _ in range(wanted // 6):
                await n.sessions.inject(session.id, CALLER, tool_id="x", arguments={}, result=1)

        from_start = asyncio.create_task(follow(0))
        await asyncio.gather(*(write() for _ in range(6)))
        assert await from_start == list(range(1, wanted + 1))
        assert await follow(57) == [58, 59, 60]
        page = await n.sessions.events(session.id, READER, after=10, limit=5)
        assert [event.seq for event in page] == [11, 12, 13, 14, 15]


@requirement("session.events")
async def test_a_number_from_the_future_or_another_session_is_refused(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session = await n.sessions.create(CALLER, customizations())
        for after in (1, -1):
            with pytest.raises(BadInput, match="has no event"):
                await n.sessions.events(session.id, CALLER, after=after)
            with pytest.raises(BadInput, match="has no event"):
                await anext(n.sessions.follow(session.id, CALLER, after=after))
        for who in (OTHER,):
            with pytest.raises(NotFound):
                await n.sessions.events(session.id, who)


@requirement("inject.event")
async def test_an_injected_event_is_a_clean_tool_event(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session = await n.sessions.create(CALLER, customizations())
        injected = await n.sessions.inject(
            session.id,
            CALLER,
            tool_id="any label\x00 at all",
            arguments={"q": "a\x1b[31mb"},
            result={"ro\x07ws": ["one\u202e"]},
        )
        (event,) = await n.events(session)
        assert injected == Injected(str(event.data["event_id"]), 1)
        assert (event.kind, event.type) == ("tool", "tool_result")
        assert event.data == {
            "toolCallId": injected.event_id,
            "event_id": injected.event_id,
            "name": "any label at all",
            "tool_id": "any label at all",
            "arguments": {"q": "ab"},
            "success": True,
            "result": {"rows": ["one"]},
            "resultPreview": '{"rows":["one"]}',
            "injected": True,
            "trigger_processing": False,
        }
        with pytest.raises(BadInput, match="tool_id"):
            await n.sessions.inject(session.id, CALLER, tool_id="\x00", arguments={}, result=None)
        with pytest.raises(NotFound):
            await n.sessions.inject(session.id, OTHER, tool_id="x", arguments={}, result=None)


@requirement("inject.idempotent")
async def test_a_repeated_key_gives_the_first_event_and_another_body_is_a_conflict(
    database: str, tmp_path: Path
) -> None:
    async with node(database, tmp_path) as n:
        session = await n.sessions.create(CALLER, customizations())

        async def inject(result: int) -> Injected:
            return await n.sessions.inject(
                session.id, CALLER, tool_id="x", arguments={}, result=result, idempotency_key="k"
            )

        made = await asyncio.gather(*(inject(1) for _ in range(8)))
        assert len(set(made)) == 1
        with pytest.raises(Conflict, match="used for another event"):
            await inject(2)
        assert len(await n.events(session)) == 1


async def test_deleting_a_session_ends_its_calls_and_its_followers(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n, asyncio.timeout(10):
        session = await n.sessions.create(CALLER, customizations("getPlaces"))
        by_client = await n.call("client:getPlaces", {"city": "Rome"}, session=session.id)
        gated = await n.call("crm:write", {"text": "a"}, session=session.id, server="asking")

        async def follow() -> list[str]:
            return [event.type async for event in n.sessions.follow(session.id, CALLER)]

        following = asyncio.create_task(follow())
        with pytest.raises(NotFound):
            await n.sessions.delete(session.id, OTHER)
        await n.sessions.delete(session.id, CALLER)
        assert (await following)[-2:] == ["tool_result", "tool_result"]
        for waiting in (by_client, gated):
            outcome = await n.ended(waiting.call_id)
            assert outcome.failure is not None
            assert outcome.failure.code is ErrorCode.CANCELLED
        assert (await n.approvals.page("pending")).items == ()
        with pytest.raises(NotFound):
            await n.sessions.get(session.id, CALLER)
        with pytest.raises(NotFound):
            await n.clients.respond(session.id, by_client.call_id, CALLER, DONE)
        refused = await n.call("crm:read", {"text": "a"}, session=session.id)
        assert refused.state is CallState.ERROR


async def test_stopping_tells_the_session_that_a_call_was_interrupted(database: str, tmp_path: Path) -> None:
    behaviour, begun, _ = blocking()
    async with node(database, tmp_path, behaviour) as first, asyncio.timeout(20):
        session = await first.sessions.create(CALLER, customizations())
        first.calls.start(request("crm:write", {"text": "a"}, principal=CALLER, session=session.id))
        await begun.wait()
    async with node(database, tmp_path) as second:
        assert [event.data.get("code") for event in await second.events(session)] == [None, "interrupted"]
