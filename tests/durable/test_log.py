"""The event log of a session: numbers without gaps, in the order of the commits."""

from __future__ import annotations

import asyncio

import pytest

from tests.durable.yard import add_session, another_store, running
from toolyard.core.errors import NotFound
from toolyard.durable import log
from toolyard.durable.engine import Engine
from toolyard.durable.log import SessionEvent
from toolyard.store import Connection, Store

WRITERS, EACH = 32, 6


async def test_events_are_numbered_from_one_and_read_from_any_number(store: Store) -> None:
    await add_session(store, "ses_1")
    numbers = [
        await store.tx(lambda c: log.append(c, "ses_1", "message", "message", {"text": "héllo"})),
        await store.tx(lambda c: log.append(c, "ses_1", "tool", "tool_call", {"n": 1}, "turn_1")),
    ]
    first, second = await store.read(lambda c: log.page(c, "ses_1", 0, 10))
    assert numbers == [1, 2]
    assert first == SessionEvent("ses_1", 1, "message", "message", {"text": "héllo"}, None, first.at)
    assert second == SessionEvent("ses_1", 2, "tool", "tool_call", {"n": 1}, "turn_1", second.at)
    assert abs(first.at - await store.read(lambda c: c.now())) < 60
    assert await store.read(lambda c: log.page(c, "ses_1", 1, 10)) == [second]
    assert await store.read(lambda c: log.page(c, "ses_1", 0, 1)) == [first]
    assert await store.read(lambda c: log.page(c, "ses_1", 99, 10)) == []


async def test_an_event_of_an_unknown_session_is_refused(store: Store) -> None:
    with pytest.raises(NotFound, match="no session 'ses_x'"):
        await store.tx(lambda c: log.append(c, "ses_x", "tool", "tool_call", {}))


async def test_an_event_that_is_taken_back_leaves_no_gap(store: Store) -> None:
    await add_session(store, "ses_1")

    def append_then_fail(c: Connection) -> None:
        log.append(c, "ses_1", "tool", "lost", {})
        raise LookupError

    with pytest.raises(LookupError):
        await store.tx(append_then_fail)
    assert await store.tx(lambda c: log.append(c, "ses_1", "tool", "kept", {})) == 1


async def test_many_writers_leave_no_gap_and_a_follower_elsewhere_misses_nothing(store: Store, database: str) -> None:
    """The follower goes on after the last number it saw, so an event that committed late would be missed."""
    await add_session(store, "ses_1")
    await add_session(store, "ses_2")
    received: list[SessionEvent] = []

    async with another_store(database, store) as other:
        here, there = Engine(store, node_id="here"), Engine(other, node_id="there")

        async def follow() -> None:
            async with there.watch("session:ses_1") as waiter:
                while len(received) < WRITERS * EACH:
                    after = received[-1].seq if received else 0
                    news = await other.read(lambda c, after=after: log.page(c, "ses_1", after, 7))  # type: ignore[misc]
                    received.extend(news)
                    if not news:
                        await waiter.wait()

        async def write(writer: int) -> list[int]:
            numbers: list[int] = []
            for n in range(EACH):
                data = {"writer": writer, "n": n}
                await store.tx(lambda c: log.append(c, "ses_2", "tool", "noise", {}))
                numbers.append(await store.tx(lambda c, data=data: log.append(c, "ses_1", "tool", "news", data)))  # type: ignore[misc]
                here.hint("session:ses_1")
            return numbers

        async with running(here, there):
            following = asyncio.create_task(follow())
            written = await asyncio.gather(*(write(n) for n in range(WRITERS)))
            await following
    assert [event.seq for event in received] == list(range(1, WRITERS * EACH + 1))
    by_number = {event.seq: event.data for event in received}
    assert [[by_number[n] for n in numbers] for numbers in written] == [
        [{"writer": writer, "n": n} for n in range(EACH)] for writer in range(WRITERS)
    ]
    assert [event.at for event in received] == sorted(event.at for event in received)
