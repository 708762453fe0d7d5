"""The event bus: in order, to those who asked, never waiting for anybody."""

from __future__ import annotations

import asyncio

from toolyard.durable.events import REMEMBERED, Bus, Event, Subscription


async def taken(events: Subscription, count: int) -> list[Event]:
    async with asyncio.timeout(5):
        return [await anext(events) for _ in range(count)]


async def test_events_reach_those_who_asked_for_their_topic_in_order() -> None:
    bus = Bus()
    async with bus.subscribe(["call", "provider"]) as events:
        for number, topic in enumerate(("call", "catalog", "provider", "call")):
            bus.publish(topic, {"n": number})
        found = await taken(events, 3)
    assert [(event.topic, event.data) for event in found] == [
        ("call", {"n": 0}),
        ("provider", {"n": 2}),
        ("call", {"n": 3}),
    ]
    assert found[0].id < found[1].id < found[2].id


async def test_a_waiting_reader_is_woken() -> None:
    bus = Bus()
    async with bus.subscribe(["call"]) as events:
        waiting = asyncio.create_task(taken(events, 1))
        await asyncio.sleep(0)
        bus.publish("call", {"n": 1})
        assert [event.data for event in await waiting] == [{"n": 1}]


async def test_a_slow_reader_is_dropped_and_slows_nobody() -> None:
    bus = Bus()
    async with bus.subscribe(["call"], size=4) as slow, bus.subscribe(["call"], size=100) as quick:
        for number in range(10):
            bus.publish("call", {"n": number})
        assert [event.data["n"] for event in await taken(quick, 10)] == list(range(10))
        assert [event async for event in slow] == []
        assert (slow.dropped, quick.dropped) == (True, False)


async def test_a_reader_that_comes_back_gets_what_it_missed() -> None:
    bus = Bus()
    async with bus.subscribe(["call"]) as events:
        for number in range(5):
            bus.publish("call", {"n": number})
        seen = (await taken(events, 2))[-1]
    async with bus.subscribe(["call"], after=seen.id) as again:
        assert [event.data["n"] for event in await taken(again, 3)] == [2, 3, 4]
        assert not again.missed


async def test_a_reader_that_was_away_too_long_is_told() -> None:
    bus = Bus()
    bus.publish("call", {"n": 0})
    async with bus.subscribe(["call"], after=0) as stranger:
        assert stranger.missed
    first = (await _all_since(bus, 0))[0]
    for number in range(REMEMBERED + 1):
        bus.publish("call", {"n": number})
    async with bus.subscribe(["call"], after=first.id, size=REMEMBERED) as late:
        assert late.missed
    async with bus.subscribe(["call"], after=first.id + 10**9) as from_the_future:
        assert from_the_future.missed


async def _all_since(bus: Bus, after: int) -> list[Event]:
    async with bus.subscribe(["call"], after=after) as events:
        return await taken(events, 1)


async def test_closing_ends_every_reader_and_refuses_new_ones() -> None:
    bus = Bus()
    async with bus.subscribe(["call"]) as events:
        waiting = asyncio.create_task(anext(events, None))
        await asyncio.sleep(0)
        bus.close()
        async with asyncio.timeout(5):
            assert await waiting is None
    async with bus.subscribe(["call"]) as late:
        assert [event async for event in late] == []


def test_a_listener_is_told_within_publish_until_it_stops() -> None:
    bus, heard = Bus(), list[object]()
    stop = bus.listen("call", lambda event: heard.append(event.data["n"]))
    bus.publish("call", {"n": 1})
    bus.publish("provider", {"n": 2})
    stop()
    bus.publish("call", {"n": 3})
    assert heard == [1]
