"""Jobs on one node: inserted, run, parked, woken, cancelled, ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from tests.durable.yard import row, running, submit, until_state
from toolyard.core.errors import CallError, ErrorCode, NotFound
from toolyard.core.json import JsonValue
from toolyard.durable import jobs
from toolyard.durable.engine import Engine
from toolyard.durable.jobs import Fenced, JobRow, NewJob
from toolyard.durable.running import Park, RunEnded, RunningJob
from toolyard.store import Connection, Store


async def echo(job: RunningJob) -> JsonValue:
    return {"input": job.input, "epoch": job.epoch}


async def test_a_job_runs_and_keeps_what_its_handler_returned(store: Store) -> None:
    engine = Engine(store, node_id="node_1")
    engine.handle("work", echo)
    async with running(engine):
        await submit(engine, "job_1")
        ended = await engine.wait("job_1")
    assert ended == JobRow(
        "job_1", None, "work", {"job": "job_1"}, "done", owner=None, epoch=1, takeovers=0, wake_at=None, wake_key=None,
        result={"input": {"job": "job_1"}, "epoch": 1}, error=None, created=ended.created, finished=ended.finished,
    )  # fmt: skip
    assert ended.finished is not None
    assert ended.finished >= ended.created


async def test_a_job_is_inserted_once(store: Store) -> None:
    engine = Engine(store)
    assert await engine.submit(NewJob("job_1", "work", {"first": True}))
    assert not await engine.submit(NewJob("job_1", "work", {"first": False}))
    assert (await row(store, "job_1")).input == {"first": True}


async def test_a_job_whose_kind_has_no_handler_here_is_left_alone(store: Store) -> None:
    engine = Engine(store)
    engine.handle("work", echo)
    async with running(engine):
        await submit(engine, "job_1", kind="other")
        await submit(engine, "job_2")
        await engine.wait("job_2")
        assert (await engine.wait("job_1", 0)).state == "ready"


async def test_a_caller_may_insert_its_job_running_so_that_it_is_not_queued(store: Store) -> None:
    engine = Engine(store)
    engine.handle("work", echo)
    async with running(engine):
        await engine.submit(NewJob("job_1", "work", state="running", owner=engine.node_id))
        assert (await engine.wait("job_1")).result == {"input": {}, "epoch": 1}
    with pytest.raises(ValueError, match="begins with an owner when it begins running"):
        await engine.submit(NewJob("job_2", "work", state="running"))


async def test_a_parked_job_is_woken_by_its_key_and_runs_again(store: Store) -> None:
    engine = Engine(store)
    runs: list[int] = []

    async def work(job: RunningJob) -> str:
        runs.append(job.epoch)
        if len(runs) == 1:
            await job.park("answer", None)
        return "answered"

    def wake(c: Connection) -> tuple[bool, bool, bool]:
        jobs.lock(c, "job_1")
        return jobs.wake(c, "job_1", "another"), jobs.wake(c, "job_1", "answer"), jobs.wake(c, "job_1", "answer")

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_1")
        parked = await until_state(engine, "job_1", "waiting")
        assert (parked.wake_key, parked.owner) == ("answer", None)
        assert engine.running == frozenset()
        assert await store.tx(wake) == (False, True, False)
        engine.hint("job:job_1")
        ended = await engine.wait("job_1")
    assert (ended.result, runs, ended.takeovers) == ("answered", [1, 2], 0)


@pytest.mark.parametrize("inserted_parked", [True, False])
async def test_a_parked_job_runs_again_when_its_time_has_come(store: Store, inserted_parked: bool) -> None:
    engine = Engine(store)
    now = await store.read(lambda c: c.now())

    async def work(job: RunningJob) -> str:
        if job.epoch == 1 and not inserted_parked:
            raise Park("never", now + 0.15)
        return "late"

    engine.handle("work", work)
    async with running(engine):
        if inserted_parked:
            await engine.submit(NewJob("job_1", "work", state="waiting", wake_at=now + 0.15))
        else:
            await submit(engine, "job_1")
        ended = await engine.wait("job_1")
    assert (ended.result, ended.epoch) == ("late", 1 if inserted_parked else 2)
    assert ended.finished is not None
    assert now + 0.145 <= ended.finished < now + 1.0


async def test_a_job_that_has_nothing_left_to_wait_for_goes_on(store: Store) -> None:
    engine = Engine(store)
    seen: list[str] = []

    def not_any_more(_: Connection) -> bool:
        return False

    async def work(job: RunningJob) -> str:
        if not seen:
            seen.append("from its start again")
            raise Park("answer", None, not_any_more)
        await job.park("answer", None, not_any_more)
        seen.append("from here")
        return "done"

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_1")
        assert ((await engine.wait("job_1")).epoch, seen) == (1, ["from its start again", "from here"])


async def test_a_job_cannot_wait_for_nothing(store: Store) -> None:
    engine = Engine(store)

    async def work(job: RunningJob) -> None:
        await job.park(None, None)

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_1")
        ended = await engine.wait("job_1")
    assert (ended.state, ended.error) == (
        "error",
        "ValueError: job job_1 would wait for ever: give a key, a time, or both",
    )


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
    async with running(engine):
        await submit(engine, "job_1")
        await begun.wait()
        assert (await engine.cancel("job_1"), await engine.cancel("job_1")) == (True, False)
        await stopped.wait()
        writes: list[Callable[[Connection], object]] = [
            lambda c: jobs.fence(c, "job_1", 1),
            lambda c: jobs.park(c, "job_1", 1, "key", None),
            lambda c: jobs.finish(c, "job_1", 1, "done"),
        ]
        for write in writes:
            with pytest.raises(Fenced):
                await store.tx(write)
        with pytest.raises(Fenced):
            await handed[0].tx(lambda c: jobs.insert(c, NewJob("job_2", "work")))
        with pytest.raises(NotFound):
            await engine.wait("job_2")
    ended = await row(store, "job_1")
    assert (ended.state, ended.epoch, ended.owner) == ("cancelled", 2, None)


@pytest.mark.parametrize("state", ["ready", "waiting"])
async def test_a_job_that_does_not_run_is_cancelled_too(store: Store, state: str) -> None:
    engine = Engine(store)
    ran: list[str] = []

    async def work(job: RunningJob) -> None:
        ran.append(job.id)

    await engine.submit(NewJob("job_1", "work", state=state, wake_key="key" if state == "waiting" else None))  # type: ignore[arg-type]
    assert await engine.cancel("job_1")
    assert not await store.tx(lambda c: jobs.wake(c, "job_1", "key"))
    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_2")
        await engine.wait("job_2")
    assert (ran, (await row(store, "job_1")).state) == (["job_2"], "cancelled")


async def test_a_handler_that_raises_ends_its_job_in_error_and_settles_what_hangs_on_it(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine(store)
    told: list[tuple[str, str]] = []

    async def refuse(job: RunningJob) -> None:
        raise CallError(ErrorCode.DENIED, "not today", suggestion="Come back tomorrow.")

    async def break_down(job: RunningJob) -> None:
        raise ZeroDivisionError("by nothing")

    def ended(c: Connection, job: JobRow, reason: str) -> None:
        told.append((job.id, reason))
        jobs.insert(c, NewJob(f"after_{job.id}", "later"))

    engine.handle("refused", refuse, ended=ended)
    engine.handle("broken", break_down)
    async with running(engine):
        await submit(engine, "job_1", kind="refused")
        await submit(engine, "job_2", kind="broken")
        first, second = await engine.wait("job_1"), await engine.wait("job_2")
    assert (first.state, first.error) == ("error", "not today Come back tomorrow.")
    assert (second.state, second.error) == ("error", "ZeroDivisionError: by nothing")
    assert told == [("job_1", "not today Come back tomorrow.")]
    assert (await row(store, "after_job_1")).state == "ready"
    assert [r.exc_info is not None for r in caplog.records if r.levelno == logging.ERROR] == [True]


async def test_a_job_ends_even_when_what_hangs_on_it_cannot_be_settled(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine(store)

    async def refuse(job: RunningJob) -> None:
        raise CallError(ErrorCode.DENIED, "no")

    def ended(c: Connection, job: JobRow, reason: str) -> None:
        jobs.insert(c, NewJob("half", "later"))
        raise LookupError("nothing hangs on it")

    engine.handle("work", refuse, ended=ended)
    async with running(engine):
        await submit(engine, "job_1")
        assert (await engine.wait("job_1")).error == "no"
        with pytest.raises(NotFound):
            await engine.wait("half")
    assert "could not be settled" in caplog.text


async def test_a_job_ends_in_one_transaction_with_what_belongs_to_its_end(store: Store) -> None:
    engine = Engine(store)
    went_on: list[str] = []

    async def work(job: RunningJob) -> None:
        await job.finish("ended", within=lambda c: jobs.insert(c, NewJob("next", "later")), parent="other")
        went_on.append("after its end")

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_1")
        assert (await engine.wait("job_1")).result == "ended"
    assert (await row(store, "next")).state == "ready"
    assert went_on == []


async def test_what_belongs_to_an_end_is_not_written_for_a_cancelled_job(store: Store) -> None:
    engine = Engine(store)
    outcome: list[str] = []

    async def work(job: RunningJob) -> None:
        await store.tx(lambda c: jobs.cancel(c, job.id))
        try:
            await job.finish("ended", within=lambda c: jobs.insert(c, NewJob("next", "later")))
        except (Fenced, RunEnded) as error:
            outcome.append(type(error).__name__)

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_1")
        await engine.wait("job_1")
        with pytest.raises(NotFound):
            await engine.wait("next")
    assert outcome == ["Fenced"]


async def test_no_more_jobs_run_at_once_than_the_node_has_room_for(store: Store) -> None:
    engine = Engine(store, capacity=2)
    running_now: set[str] = set()
    most: list[int] = []
    go = asyncio.Event()
    two = asyncio.Event()

    async def work(job: RunningJob) -> None:
        running_now.add(job.id)
        most.append(len(running_now))
        if len(running_now) == 2:
            two.set()
        await go.wait()
        running_now.remove(job.id)

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, *(f"job_{n}" for n in range(7)))
        await two.wait()
        go.set()
        for n in range(7):
            assert (await engine.wait(f"job_{n}")).state == "done"
    assert max(most) == 2


async def test_waiting_for_a_job_gives_it_as_it_is_when_the_time_is_over(store: Store) -> None:
    engine = Engine(store)
    await submit(engine, "job_1")
    assert (await engine.wait("job_1", 0.05)).state == "ready"
