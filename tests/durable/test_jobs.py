"""Jobs: inserted, claimed, run, parked, woken, cancelled, ended."""

from __future__ import annotations

import asyncio

import pytest

from tests.durable.yard import insert, row, running
from toolyard.durable import jobs
from toolyard.durable.engine import Engine
from toolyard.durable.jobs import Fenced, NewJob
from toolyard.durable.running import Park, RunningJob
from toolyard.store import Store


async def test_a_job_runs_and_keeps_what_its_handler_returned(store: Store) -> None:
    engine = Engine(store)

    async def work(job: RunningJob) -> dict[str, object]:
        return {"doubled": job.input["n"] * 2}  # type: ignore[operator]

    engine.handle("work", work)
    async with asyncio.timeout(5), running(engine):
        await insert(engine, "job_1", input={"n": 21})
        ended = await engine.wait("job_1")
    assert (ended.state, ended.result, ended.epoch, ended.owner) == ("done", {"doubled": 42}, 1, None)


async def test_a_parked_job_is_woken_by_its_key_and_runs_again(store: Store) -> None:
    engine = Engine(store)
    runs: list[int] = []
    parked = asyncio.Event()

    async def work(job: RunningJob) -> str:
        runs.append(job.epoch)
        if len(runs) == 1:
            parked.set()
            await job.park("answer", None, lambda _: True)
        return "answered"

    engine.handle("work", work)
    async with asyncio.timeout(5), running(engine):
        await insert(engine, "job_1")
        await parked.wait()
        async with engine.watch("job:job_1") as waiter:
            while (await row(store, "job_1")).state != "waiting":
                await waiter.wait(0.1)

        def wake(c: jobs.Connection) -> tuple[bool, bool]:
            jobs.lock(c, "job_1")
            return jobs.wake(c, "job_1", "another"), jobs.wake(c, "job_1", "answer")

        assert await store.tx(wake) == (False, True)
        engine.hint("job:job_1")
        ended = await engine.wait("job_1")
    assert (ended.result, runs, ended.takeovers) == ("answered", [1, 2], 0)


async def test_a_parked_job_runs_again_when_its_time_has_come(store: Store) -> None:
    engine = Engine(store)
    now = await store.read(lambda c: c.now())

    async def work(job: RunningJob) -> str:
        if job.epoch == 1:
            raise Park("never", now + 0.1)
        return "late"

    engine.handle("work", work)
    async with asyncio.timeout(5), running(engine):
        await insert(engine, "job_1")
        ended = await engine.wait("job_1")
    assert (ended.result, ended.epoch) == ("late", 2)
    assert ended.finished is not None
    assert ended.finished >= now + 0.1


async def test_a_cancelled_job_stops_where_it_runs_and_can_write_nothing_more(store: Store) -> None:
    engine = Engine(store)
    begun, stopped = asyncio.Event(), asyncio.Event()
    handed: list[RunningJob] = []

    async def work(job: RunningJob) -> None:
        handed.append(job)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    engine.handle("work", work)
    async with asyncio.timeout(5), running(engine):
        await insert(engine, "job_1")
        await begun.wait()
        assert await engine.cancel("job_1")
        assert not await engine.cancel("job_1")
        await stopped.wait()
        with pytest.raises(Fenced):
            await handed[0].tx(lambda c: jobs.insert(c, NewJob("job_2", "work")))
        assert await store.read(lambda c: jobs.get(c, "job_2")) is None
    assert (await row(store, "job_1")).state == "cancelled"
