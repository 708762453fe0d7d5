"""Hints: those who watch look at once, on other nodes a little later, and by themselves when a hint is lost."""

from __future__ import annotations

import asyncio

import orjson
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.durable.yard import another_store, running, submit, until_state
from tests.store.postgres import PostgresServer
from toolyard.core.json import JsonValue
from toolyard.durable import jobs
from toolyard.durable.engine import Engine
from toolyard.durable.hints import EVERYTHING, Watchers
from toolyard.durable.postgres_hints import CHANNEL, PostgresHints, payloads
from toolyard.durable.running import RunningJob
from toolyard.store import Store, open_store


async def test_a_hint_wakes_those_who_watch_its_topic_and_nobody_else() -> None:
    watchers = Watchers(fallback=0.05)
    async with watchers.watch("call:1") as one, watchers.watch("call:2") as two, watchers.watch("call:1") as three:
        watchers.wake(("call:1", "call:9"))
        assert [await waiter.wait(0) for waiter in (one, two, three)] == [True, False, True]
        assert not await one.wait(0), "a hint is taken once"


async def test_a_hint_between_looking_and_waiting_is_kept() -> None:
    watchers = Watchers()
    async with asyncio.timeout(1), watchers.watch("call:1") as waiter:
        watchers.wake(("call:1",))
        assert await waiter.wait()


async def test_a_watcher_looks_by_itself_when_no_hint_comes() -> None:
    watchers = Watchers(fallback=0.02)
    async with asyncio.timeout(1), watchers.watch("call:1") as waiter:
        assert not await waiter.wait(30.0)


async def test_many_watchers_together_look_no_more_often_than_the_database_likes() -> None:
    watchers = Watchers(fallback=1.0)
    assert watchers._pause() == 1.0
    watchers._count = 5000
    assert watchers._pause() == 10.0


async def test_one_waiter_may_watch_several_topics_and_leaves_nothing_behind() -> None:
    watchers = Watchers()
    async with watchers.watch("session:1", "approvals") as waiter:
        watchers.wake(("approvals",))
        assert await waiter.wait(0)
        watchers.wake((EVERYTHING,))
        assert await waiter.wait(0)
    assert (watchers._waiters, watchers._count) == ({}, 0)


@pytest.mark.parametrize("lost", [False, True])
async def test_a_woken_job_runs_on_another_node_also_when_the_hint_was_lost(
    store: Store, database: str, lost: bool
) -> None:
    async def work(job: RunningJob) -> JsonValue:
        if job.epoch == 1:
            await job.park("answer", None)
        return "answered"

    def wake(c: jobs.Connection) -> bool:
        jobs.lock(c, "job_1")
        return jobs.wake(c, "job_1", "answer")

    async with another_store(database, store) as other:
        here, there = Engine(store), Engine(other)
        here.handle("work", work)
        async with running(here, there):
            await submit(here, "job_1")
            await until_state(there, "job_1", "waiting")
            assert await other.tx(wake)
            if not lost:
                there.hint("job:job_1")
            async with asyncio.timeout(3):
                assert (await there.wait("job_1")).result == "answered"


@pytest.fixture
async def notified(postgres_server: PostgresServer):  # type: ignore[no-untyped-def]
    """A store, and a connection that hears its hints."""
    url = postgres_server.new_database()
    store = open_store(url)
    await store.start()
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as listener:
        await listener.execute(f"LISTEN {CHANNEL}")
        yield store, listener
    await store.close()


@pytest.mark.postgres
async def test_hints_of_a_moment_travel_together(notified: tuple[Store, psycopg.AsyncConnection]) -> None:
    store, listener = notified
    hints = PostgresHints(store, "node_1", lambda _: None)  # type: ignore[arg-type]
    await hints.start()
    heard: list[list[str]] = []
    hints.send(["first"])
    async for notification in listener.notifies(timeout=5):
        heard.append(orjson.loads(notification.payload))
        if len(heard) == 1:
            for n in range(500):
                hints.send([f"call:{n % 100}", "session:1"])
        if "call:99" in heard[-1]:
            break
    await hints.close()
    assert heard[0] == ["node_1", "first"]
    assert heard[1:] == [["node_1", *sorted([f"call:{n}" for n in range(100)] + ["session:1"])]]


@pytest.mark.postgres
async def test_a_node_does_not_hear_itself_and_others_do(notified: tuple[Store, psycopg.AsyncConnection]) -> None:
    store, _ = notified
    told: dict[str, list[str]] = {"node_1": [], "node_2": []}
    all_told = asyncio.Event()

    def tell_2(topics: object) -> None:
        told["node_2"].extend(topics)  # type: ignore[arg-type]
        if "call:1" in told["node_2"]:
            all_told.set()

    one = PostgresHints(store, "node_1", told["node_1"].extend)  # type: ignore[arg-type]
    two = PostgresHints(store, "node_2", tell_2)  # type: ignore[arg-type]
    async with asyncio.timeout(5):
        for hints in (one, two):
            await hints.start()
            await hints.listening.wait()
        one.send(["call:1"])
        await all_told.wait()
        await one.close()
        await two.close()
    assert told == {"node_1": [EVERYTHING], "node_2": [EVERYTHING, "call:1"]}


@pytest.mark.postgres
async def test_after_its_connections_were_cut_a_node_looks_at_everything_and_hears_again(
    notified: tuple[Store, psycopg.AsyncConnection], postgres_server: PostgresServer
) -> None:
    store, _ = notified
    told: list[str] = []
    something = asyncio.Event()

    def tell(topics: object) -> None:
        told.extend(topics)  # type: ignore[arg-type]
        something.set()

    one = PostgresHints(store, "node_1", lambda _: None)  # type: ignore[arg-type]
    two = PostgresHints(store, "node_2", tell)  # type: ignore[arg-type]
    async with asyncio.timeout(10):
        for hints in (one, two):
            await hints.start()
            await hints.listening.wait()
        told.clear()
        something.clear()
        assert postgres_server.terminate_connections() >= 3
        await something.wait()
        assert told == [EVERYTHING]
        one.send(["call:1"])
        while not {"call:1", EVERYTHING}.intersection(told[1:]):
            something.clear()
            await something.wait()
        await one.close()
        await two.close()


@given(st.lists(st.text(min_size=1, max_size=300), max_size=300, unique=True))
def test_payloads_are_small_enough_and_lose_no_topic(topics: list[str]) -> None:
    parts = payloads("node_1", topics)
    assert all(len(part.encode()) < 8000 for part in parts)
    decoded = [orjson.loads(part) for part in parts]
    assert all(sender == "node_1" for sender, *_ in decoded)
    assert [topic for _, *some in decoded for topic in some] == topics


def test_a_topic_that_is_too_long_is_sent_as_everything() -> None:
    assert payloads("node_1", ["x" * 9000]) == [f'["node_1","{EVERYTHING}"]']


async def test_more_topics_than_anybody_would_tell_apart_are_sent_as_everything() -> None:
    hints = PostgresHints(None, "node_1", lambda _: None)  # type: ignore[arg-type]
    hints.send(f"call:{n}" for n in range(5000))
    assert hints._pending == {EVERYTHING}


async def test_a_sweep_runs_again_and_again_also_after_it_failed(
    sqlite_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine(sqlite_store)
    runs: list[int] = []
    enough = asyncio.Event()

    async def sweep() -> None:
        runs.append(len(runs))
        if len(runs) == 3:
            enough.set()
        if len(runs) == 1:
            raise LookupError("once")

    engine.sweep(sweep, every=0.01)
    async with running(engine):
        await enough.wait()
    assert caplog.text.count("LookupError: once") == 1
