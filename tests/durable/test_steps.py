"""Steps: done once, remembered, replayed, and compared."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.durable.yard import row, running, submit, until_state
from toolyard.core.json import JsonValue
from toolyard.durable import jobs
from toolyard.durable.engine import Engine
from toolyard.durable.jobs import Fenced
from toolyard.durable.running import RunningJob
from toolyard.store import Connection, Store


class Effects:
    def __init__(self) -> None:
        self.done: Counter[str] = Counter()

    def __getitem__(self, name: str) -> Effect:
        return Effect(self, name)


class Effect:
    def __init__(self, effects: Effects, name: str) -> None:
        self._effects = effects
        self._name = name

    async def __call__(self) -> JsonValue:
        self._effects.done[self._name] += 1
        return {"name": self._name, "time": self._effects.done[self._name]}


def wake(c: Connection) -> bool:
    jobs.lock(c, "job_1")
    return jobs.wake(c, "job_1", "key")


def step_rows(c: Connection) -> list[tuple[object, ...]]:
    return list(c.execute("SELECT job_id, n, name, digest, output, node, epoch FROM steps ORDER BY n").fetchall())


async def test_a_replay_returns_what_was_remembered_and_does_nothing_twice(store: Store) -> None:
    engine, effects = Engine(store, node_id="node_1"), Effects()

    async def work(job: RunningJob) -> JsonValue:
        first = await job.step("first", effects["first"], digest="d1")
        if job.epoch == 1:
            await job.park("key", None)
        return [first, await job.step("second", effects["second"])]

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_1")
        await until_state(engine, "job_1", "waiting")
        assert await store.tx(wake)
        engine.hint("job:job_1")
        ended = await engine.wait("job_1")
    assert ended.result == [{"name": "first", "time": 1}, {"name": "second", "time": 1}]
    assert effects.done == {"first": 1, "second": 1}
    assert await store.read(step_rows) == [
        ("job_1", 1, "first", "d1", '{"name":"first","time":1}', "node_1", 1),
        ("job_1", 2, "second", None, '{"name":"second","time":1}', "node_1", 2),
    ]


async def test_after_a_crash_only_the_step_in_flight_is_done_again(store: Store) -> None:
    effects = Effects()
    begun, never = asyncio.Event(), asyncio.Event()

    async def hang() -> JsonValue:
        effects.done["second"] += 1
        begun.set()
        await never.wait()
        return None

    async def work(job: RunningJob) -> JsonValue:
        await job.step("first", effects["first"])
        return await job.step("second", hang if job.epoch == 1 else effects["second"])

    crashes, lives = Engine(store, ttl=0.3), Engine(store, ttl=0.3)
    crashes.handle("work", work)
    async with running(crashes):
        await submit(crashes, "job_1")
        await begun.wait()
        await crashes.abandon()
        lives.handle("work", work)
        async with running(lives):
            ended = await lives.wait("job_1")
    assert (ended.result, effects.done) == ({"name": "second", "time": 2}, {"first": 1, "second": 2})


@pytest.mark.parametrize("changed", ["name", "digest"])
async def test_a_handler_that_does_something_else_on_a_replay_ends_its_job_in_error(store: Store, changed: str) -> None:
    engine, effects = Engine(store), Effects()

    async def work(job: RunningJob) -> JsonValue:
        again = job.epoch == 2
        name = "pay later" if again and changed == "name" else "pay"
        digest = "amount 2" if again and changed == "digest" else "amount 1"
        await job.step(name, effects["pay"], digest=digest)
        return await job.park("key", None)

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_1")
        await until_state(engine, "job_1", "waiting")
        assert await store.tx(wake)
        engine.hint("job:job_1")
        ended = await engine.wait("job_1")
    now = "'pay later' (amount 1)" if changed == "name" else "'pay' (amount 2)"
    assert ended.state == "error"
    assert ended.error == (
        f"Step 1 of job job_1 is {now} and was 'pay' (amount 1) in the run before:"
        " its code or its data changed while it waited. Start the job anew, or bring back the code it began with."
    )
    assert effects.done == {"pay": 1}


async def test_steps_may_run_side_by_side_when_they_begin_in_order(store: Store) -> None:
    engine, effects = Engine(store), Effects()

    async def work(job: RunningJob) -> JsonValue:
        names = [f"step {n}" for n in range(5)]
        outputs = await asyncio.gather(*(job.step(name, effects[name]) for name in names))
        if job.epoch == 1:
            await job.park("key", None)
        return outputs

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_1")
        await until_state(engine, "job_1", "waiting")
        assert await store.tx(wake)
        engine.hint("job:job_1")
        ended = await engine.wait("job_1")
    assert ended.result == [{"name": f"step {n}", "time": 1} for n in range(5)]


async def test_a_first_run_sees_a_steps_output_as_a_replay_would(store: Store) -> None:
    engine = Engine(store)
    seen: list[JsonValue] = []

    async def pair() -> JsonValue:
        return (1, 2)

    async def work(job: RunningJob) -> None:
        seen.append(await job.step("pair", pair))

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_1")
        await engine.wait("job_1")
    assert seen == [[1, 2]]


async def test_the_output_of_a_step_is_not_kept_for_a_job_that_was_cancelled_meanwhile(store: Store) -> None:
    engine = Engine(store)
    outcomes: list[str] = []

    async def work(job: RunningJob) -> None:
        async def cancel_myself() -> JsonValue:
            await store.tx(lambda c: jobs.cancel(c, job.id))
            return "effect"

        try:
            await job.step("effect", cancel_myself)
        except (Fenced, asyncio.CancelledError):  # the second, when the engine noticed first
            outcomes.append("stopped")
            raise

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_1")
        await engine.wait("job_1")
        while engine.running:
            await asyncio.sleep(0.001)
    assert (outcomes, await store.read(step_rows), (await row(store, "job_1")).state) == (["stopped"], [], "cancelled")


async def test_a_step_that_raises_is_not_remembered_and_may_be_tried_again(store: Store) -> None:
    engine, tries = Engine(store), Counter[str]()

    async def flaky() -> JsonValue:
        tries["flaky"] += 1
        if tries["flaky"] < 3:
            raise ConnectionError("not yet")
        return tries["flaky"]

    async def work(job: RunningJob) -> JsonValue:
        for _ in range(2):
            try:
                return await job.step("flaky", flaky)
            except ConnectionError:
                continue
        return await job.step("flaky", flaky)

    engine.handle("work", work)
    async with running(engine):
        await submit(engine, "job_1")
        assert (await engine.wait("job_1")).result == 3
    assert [r[1:3] for r in await store.read(step_rows)] == [(3, "flaky")]
