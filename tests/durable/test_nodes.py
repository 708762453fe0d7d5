"""Several nodes on one database: a job runs on one, and goes on elsewhere when that one dies, stops or is cut off."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import pytest

from tests.durable.yard import CutOff, add_session, another_store, row, running, submit, until_state
from toolyard.durable import claims, jobs, log, nodes
from toolyard.durable.claims import MOST_TAKEOVERS
from toolyard.durable.engine import Engine
from toolyard.durable.jobs import Fenced, JobRow
from toolyard.durable.nodes import Lease, SuspendAwareClock
from toolyard.durable.running import RunningJob
from toolyard.store import Connection, Store

TTL = 0.4


class Turned:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> float:
        raise AssertionError("the engine compares times of the database's clock only")

    def monotonic(self) -> float:
        return self.seconds


class Holding:
    """A handler that holds its first run, and answers in the next."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.runs: list[RunningJob] = []

    async def __call__(self, job: RunningJob) -> str:
        self.runs.append(job)
        if len(self.runs) == 1:
            self.begun.set()
            await self.go.wait()
            return "held"
        return "taken over"


async def test_jobs_of_a_node_that_died_are_taken_over_when_its_lease_has_ended(store: Store, database: str) -> None:
    holding = Holding()
    await add_session(store, "ses_1")
    async with another_store(database, store) as other:
        dies, lives = Engine(store, node_id="dies", ttl=TTL), Engine(other, node_id="lives", ttl=TTL)
        dies.handle("work", holding)
        async with running(dies):
            await submit(dies, "job_1", session_id="ses_1")
            await holding.begun.wait()
            lives.handle("work", holding)
            async with running(lives):
                await dies.abandon()
                died = await store.read(lambda c: c.now())
                ended = await lives.wait("job_1")
    assert (ended.state, ended.result, ended.epoch, ended.takeovers) == ("done", "taken over", 2, 1)
    assert ended.finished is not None
    assert ended.finished - died <= TTL + 0.5
    events = await store.read(lambda c: log.page(c, "ses_1", 0, 10))
    assert [(e.seq, e.kind, e.type, e.data["node"], e.data["epoch"]) for e in events] == [
        (1, "status", "resumed", "lives", 2)
    ]


async def test_a_zombie_can_write_nothing_when_it_comes_back(store: Store, database: str) -> None:
    holding = Holding()
    async with another_store(database, store) as other:
        cut = CutOff(store)
        zombie, lives = Engine(cut, node_id="zombie", ttl=TTL), Engine(other, node_id="lives", ttl=TTL)
        zombie.handle("work", holding)
        async with running(zombie):
            await submit(zombie, "job_1")
            await holding.begun.wait()
            lives.handle("work", holding)
            async with running(lives):
                cut.cut()
                await lives.wait("job_1")
                old = holding.runs[0]
                with pytest.raises(Fenced, match="lease of node zombie has ended"):
                    old.check()
                with pytest.raises(Fenced, match="lease of node zombie has ended"):
                    await old.step("effect", pytest.fail)  # type: ignore[arg-type]
                late = asyncio.create_task(old.tx(lambda _: "written"))
                cut.mend()
                with pytest.raises(Fenced, match="Run 1 of job job_1 no longer owns it"):
                    await late
                while zombie.running:
                    await asyncio.sleep(0.005)
    assert (await row(store, "job_1")).result == "taken over"


async def test_a_zombie_whose_job_still_runs_elsewhere_stops_its_own_run(store: Store, database: str) -> None:
    begun: dict[str, asyncio.Event] = {"zombie": asyncio.Event(), "lives": asyncio.Event()}
    stopped = asyncio.Event()

    async def on_zombie(_: RunningJob) -> None:
        begun["zombie"].set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def on_the_other(_: RunningJob) -> str:
        begun["lives"].set()
        await stopped.wait()
        return "one of us"

    async with another_store(database, store) as other:
        cut = CutOff(store)
        zombie, lives = Engine(cut, node_id="zombie", ttl=TTL), Engine(other, node_id="lives", ttl=TTL)
        zombie.handle("work", on_zombie)
        async with running(zombie):
            await submit(zombie, "job_1")
            await begun["zombie"].wait()
            lives.handle("work", on_the_other)
            async with running(lives):
                cut.cut()
                await begun["lives"].wait()
                cut.mend()
                assert (await lives.wait("job_1")).result == "one of us"


async def test_a_job_that_kills_its_nodes_ends_in_error_and_what_hangs_on_it_is_settled(store: Store) -> None:
    told: list[str] = []

    def ended(c: Connection, job: JobRow, reason: str) -> None:
        told.append(reason)

    async def never(_: RunningJob) -> None:
        await asyncio.Event().wait()

    deadly = [Engine(store, node_id=f"node_{n}", ttl=0.1) for n in range(MOST_TAKEOVERS + 1)]
    last = Engine(store, node_id="last", ttl=0.1)
    async with running():
        for n, engine in enumerate(deadly):
            engine.handle("work", never)
            await engine.start()
            if n == 0:
                await submit(engine, "job_1")
            while (await row(store, "job_1")).owner != engine.node_id:
                await asyncio.sleep(0.01)
            assert (await row(store, "job_1")).takeovers == n
            await engine.abandon()
    last.handle("work", never, ended=ended, parent=lambda job: f"parent of {job.id}")
    async with running(last):
        given_up = await last.wait("job_1")
    reason = "6 nodes died while they ran this job; it is not tried again."
    assert (given_up.state, given_up.error, given_up.epoch, given_up.owner) == ("error", reason, 7, None)
    assert told == [reason]


async def test_each_of_many_jobs_runs_on_one_of_three_nodes_and_on_no_other(store: Store, database: str) -> None:
    ran: Counter[str] = Counter()

    async def work(job: RunningJob) -> str:
        ran[job.id] += 1
        await asyncio.sleep(0)
        return "done"

    async with AsyncExitStack() as stack:
        stores = [store, *[await stack.enter_async_context(another_store(database, store)) for _ in range(2)]]
        engines = [Engine(each, node_id=f"node_{n}", capacity=10) for n, each in enumerate(stores)]
        for engine in engines:
            engine.handle("work", work)
        async with running(*engines):
            names = [f"job_{n}" for n in range(60)]
            await asyncio.gather(*(submit(engines[n % 3], name) for n, name in enumerate(names)))
            ended = await asyncio.gather(*(engines[0].wait(name) for name in names))
    assert {(job.state, job.epoch, job.takeovers) for job in ended} == {("done", 1, 0)}
    assert ran == Counter(names)


async def test_a_job_is_cancelled_from_another_node(store: Store, database: str) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def work(_: RunningJob) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with another_store(database, store) as other:
        here, there = Engine(store, node_id="here"), Engine(other, node_id="there")
        here.handle("work", work)
        async with running(here, there):
            await submit(here, "job_1")
            await begun.wait()
            assert await there.cancel("job_1")
            async with asyncio.timeout(3):
                await stopped.wait()


async def test_a_parked_job_is_woken_from_another_node(store: Store, database: str) -> None:
    async def work(job: RunningJob) -> str:
        if job.epoch == 1:
            await job.park("answer", None)
        return "answered"

    def wake(c: Connection) -> bool:
        jobs.lock(c, "job_1")
        return jobs.wake(c, "job_1", "answer")

    async with another_store(database, store) as other:
        here, there = Engine(store, node_id="here"), Engine(other, node_id="there")
        here.handle("work", work)
        async with running(here, there):
            await submit(here, "job_1")
            await until_state(there, "job_1", "waiting")
            assert await other.tx(wake)
            there.hint("job:job_1")
            assert (await there.wait("job_1")).result == "answered"


async def test_a_node_that_stops_lets_its_runs_end_and_gives_the_rest_back_at_once(store: Store, database: str) -> None:
    holding = Holding()
    slow = asyncio.Event()

    async def soon(job: RunningJob) -> str:
        slow.set()
        await asyncio.sleep(0.05)
        return f"ended on run {job.epoch}"

    async with another_store(database, store) as other:
        stops, stays = Engine(store, node_id="stops", grace=0.3), Engine(other, node_id="stays")
        stops.handle("work", holding)
        stops.handle("soon", soon)
        async with running(stops, stays):
            await submit(stops, "job_1")
            await submit(stops, "job_2", kind="soon")
            await asyncio.gather(holding.begun.wait(), slow.wait())
            stays.handle("work", holding)
            await stops.stop()
            assert (await row(store, "job_2")).result == "ended on run 1"
            assert await store.read(node_ids) == ["stays"]
            ended = await stays.wait("job_1")
    assert (ended.result, ended.epoch, ended.takeovers) == ("taken over", 2, 0)
    assert await store.read(node_ids) == []


async def test_a_run_that_will_not_stop_keeps_its_job_until_the_lease_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.durable.runs._PATIENCE_WITH_CANCELLED", 0.05)
    begun, go = asyncio.Event(), asyncio.Event()

    async def stubborn(_: RunningJob) -> None:
        begun.set()
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue

    engine = Engine(store, node_id="node_1", grace=0.05)
    engine.handle("work", stubborn)
    async with running(engine):
        await submit(engine, "job_1")
        await begun.wait()
        await engine.stop()
        assert ((await row(store, "job_1")).owner, await store.read(node_ids)) == ("node_1", ["node_1"])
        go.set()
        while engine.running:
            await asyncio.sleep(0.001)


async def test_a_job_that_this_node_owns_but_does_not_run_is_begun_again(store: Store) -> None:
    """As when the COMMIT of a claim was not acknowledged, or a run lost the database."""
    engine = Engine(store, node_id="node_1")
    holding = Holding()
    holding.go.set()
    async with running(engine):
        await submit(engine, "job_1")
        wanted = claims.Wanted("node_1", ("work",), 1, frozenset())
        look = await store.tx(lambda c: claims.look(c, wanted))
        assert [(claimed.job.id, claimed.job.epoch) for claimed in look.claimed] == [("job_1", 1)]
        engine.handle("work", holding)
        ended = await engine.wait("job_1")
    assert (ended.result, ended.epoch, ended.takeovers) == ("held", 1, 0)


async def test_sqlite_belongs_to_one_process_so_a_restart_does_not_wait_for_old_leases(sqlite_store: Store) -> None:
    holding = Holding()
    killed = Engine(sqlite_store, node_id="killed", ttl=3600)
    killed.handle("work", holding)
    async with running(killed):
        await submit(killed, "job_1")
        await holding.begun.wait()
        await killed.abandon()
        restarted = Engine(sqlite_store, node_id="restarted")
        restarted.handle("work", holding)
        async with running(restarted):
            ended = await restarted.wait("job_1")
    assert (ended.result, ended.takeovers) == ("taken over", 1)


async def test_a_node_believes_in_its_lease_from_the_moment_the_renewal_was_sent() -> None:
    clock = Turned()
    lease = Lease("node_1", 5.0, clock)
    with pytest.raises(Fenced):
        lease.check()
    sent = lease.sending()
    clock.seconds += 3
    lease.renewed(sent)
    assert (lease.age, lease.held, lease.fresh) == (3.0, True, False)
    clock.seconds += 2.001
    with pytest.raises(Fenced, match="The lease of node node_1 has ended"):
        lease.check()


async def test_a_node_whose_lease_is_half_over_claims_nothing(store: Store) -> None:
    clock = Turned()
    cut = CutOff(store)
    engine = Engine(cut, clock=clock, ttl=5.0)
    ran = asyncio.Event()

    async def work(_: RunningJob) -> None:
        ran.set()

    engine.handle("work", work)
    async with running(engine):
        clock.seconds += 2.6
        cut.cut()
        await store.tx(lambda c: jobs.insert(c, jobs.NewJob("job_1", "work")))
        engine.hint("job:job_1")
        assert engine._room() == 0
        cut.mend()
        await ran.wait()


async def test_the_clock_of_leases_counts_suspend_and_only_goes_forward() -> None:
    clock = SuspendAwareClock()
    first = clock.monotonic()
    assert clock.monotonic() >= first
    assert nodes._COUNTS_SUSPEND != __import__("time").CLOCK_REALTIME


async def test_a_dead_node_that_renews_while_its_jobs_are_taken_finds_that_they_are_gone(store: Store) -> None:
    """The row of the dead node is deleted, under its lock, before its jobs are taken."""
    await store.tx(lambda c: nodes.renew(c, "late", -1.0, None))
    await store.tx(lambda c: jobs.insert(c, jobs.NewJob("job_1", "work", state="running", owner="late")))
    wanted = claims.Wanted("quick", ("work",), 1, frozenset())
    await store.tx(lambda c: nodes.renew(c, "quick", 5.0, None))
    look = await store.tx(lambda c: claims.look(c, wanted))
    await store.tx(lambda c: nodes.renew(c, "late", 5.0, None))
    assert look.mine == {("job_1", 2)}
    assert await store.tx(lambda c: claims.owned(c, "late")) == frozenset()


async def test_a_node_does_not_take_its_own_jobs_over_when_the_clock_jumps(store: Store) -> None:
    """Its lease seems to have ended, or another node has removed its row for that."""
    wanted = claims.Wanted("node_1", ("work",), 1, frozenset({("job_1", 1)}))
    await store.tx(lambda c: jobs.insert(c, jobs.NewJob("job_1", "work", state="running", owner="node_1")))
    assert (await store.tx(lambda c: claims.look(c, wanted))).mine == {("job_1", 1)}
    await store.tx(lambda c: nodes.renew(c, "node_1", -1.0, None))
    assert (await store.tx(lambda c: claims.look(c, wanted))).mine == {("job_1", 1)}
    assert await store.read(node_ids) == ["node_1"]


async def test_the_job_that_could_run_first_runs_first(store: Store) -> None:
    """Ready ones by the time they became ready; those whose deadline has come before them."""

    def prepare(c: Connection) -> None:
        for name in ("first", "second", "third"):
            jobs.insert(c, jobs.NewJob(name, "work"))
        jobs.insert(c, jobs.NewJob("parked", "work", state="waiting", wake_key="key"))
        jobs.insert(c, jobs.NewJob("due", "work", state="waiting", wake_at=c.now() - 1))
        jobs.wake(c, "parked", "key")

    await store.tx(prepare)
    await store.tx(lambda c: jobs.insert(c, jobs.NewJob("late", "work")))
    order: list[str] = []
    known: frozenset[tuple[str, int]] = frozenset()
    for _ in range(6):
        wanted = claims.Wanted("node_1", ("work",), 1, known)
        look = await store.tx(lambda c, wanted=wanted: claims.look(c, wanted))  # type: ignore[misc]
        assert len(look.claimed) == 1
        order += [claimed.job.id for claimed in look.claimed]
        known = look.mine
    assert order == ["due", "first", "second", "third", "parked", "late"]


async def test_a_look_says_how_long_to_sleep(store: Store) -> None:
    wanted = claims.Wanted("node_1", ("work",), 1, frozenset())
    nothing = await store.tx(lambda c: claims.look(c, wanted))
    await store.tx(lambda c: nodes.renew(c, "node_2", 30.0, None))
    lease = await store.tx(lambda c: claims.look(c, wanted))

    def park(c: Connection) -> None:
        jobs.insert(c, jobs.NewJob("job_1", "work", state="waiting", wake_at=c.now() + 2))
        jobs.insert(c, jobs.NewJob("job_2", "other", state="waiting", wake_at=c.now() + 1))

    await store.tx(park)
    due = await store.tx(lambda c: claims.look(c, wanted))
    assert nothing.sleep == float("inf")
    assert 29 < lease.sleep <= 30
    assert 1.5 < due.sleep <= 2


def node_ids(c: Connection) -> list[str]:
    return [str(node_id) for (node_id,) in c.execute("SELECT id FROM nodes ORDER BY id").fetchall()]
