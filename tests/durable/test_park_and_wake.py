"""The races of park and wake, each with two connections that are held at the worst moment.

PostgreSQL runs both transactions at once. SQLite has one writer, so there the two orders are all there is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from tests.durable.yard import row
from toolyard.durable import claims, jobs, nodes
from toolyard.durable.jobs import Fenced, JobRow, NewJob
from toolyard.store import Connection, Store

HELD = 5.0
"""Seconds after which a held transaction gives up, so that a failure is no deadlock."""


async def running_job(store: Store) -> JobRow:
    def claim(c: Connection) -> JobRow:
        nodes.renew(c, "node_1", 30.0, None)
        jobs.insert(c, NewJob("job_1", "call", state="running", owner="node_1"))
        found = jobs.get(c, "job_1")
        assert found is not None
        return found

    return await store.tx(claim)


def put(name: str) -> Callable[[Connection], None]:
    def write(c: Connection) -> None:
        c.execute("INSERT INTO values_kept (name, value) VALUES (?, '') ON CONFLICT DO NOTHING", name)

    return write


def count(c: Connection, prefix: str) -> int:
    found = c.execute("SELECT count(*) FROM values_kept WHERE name LIKE ?", f"{prefix}%").fetchone()
    assert found is not None
    return int(str(found[0]))


def decide(c: Connection) -> bool:
    """As an approval is decided: lock, write, wake."""
    jobs.lock(c, "job_1")
    put("decision")(c)
    return jobs.wake(c, "job_1", "approval")


def park_unless_decided(c: Connection) -> str:
    jobs.fence(c, "job_1", 1)
    if count(c, "decision"):
        return "goes on"
    jobs.park(c, "job_1", 1, "approval", None)
    return "parks"


async def at_the_same_time(
    store: Store, first: Callable[[Connection], object], second: Callable[[Connection], object]
) -> tuple[object, object]:
    """`first` has done its work, and has not committed, when `second` begins; it commits once `second` waits for it or
    has gone as far as it can without."""
    first_is_done, second_has_begun = threading.Event(), threading.Event()

    def hold(c: Connection) -> object:
        value = first(c)
        first_is_done.set()
        assert second_has_begun.wait(HELD)
        threading.Event().wait(0.1)  # for the second to run into the lock, or past it where there is none
        return value

    def follow(c: Connection) -> object:
        second_has_begun.set()
        return second(c)

    held = asyncio.create_task(store.tx(hold))
    await asyncio.to_thread(first_is_done.wait, HELD)
    if store.dialect == "sqlite":
        second_has_begun.set()
    return tuple(await asyncio.gather(held, store.tx(follow)))  # type: ignore[return-value]


async def test_a_decision_during_parking_wakes_the_job(store: Store) -> None:
    await running_job(store)
    assert await at_the_same_time(store, park_unless_decided, decide) == ("parks", True)
    assert (await row(store, "job_1")).state == "ready"


async def test_a_job_that_parks_during_a_decision_sees_it_and_goes_on(store: Store) -> None:
    await running_job(store)
    assert await at_the_same_time(store, decide, park_unless_decided) == (False, "goes on")
    assert (await row(store, "job_1")).state == "running"


async def test_of_two_calls_that_settle_at_once_one_sees_that_both_have(store: Store) -> None:
    await running_job(store)
    await store.tx(lambda c: jobs.park(c, "job_1", 1, "calls", None))

    def settle(name: str) -> Callable[[Connection], bool]:
        def write(c: Connection) -> bool:
            jobs.lock(c, "job_1")
            put(f"settled {name}")(c)
            return count(c, "settled") == 2 and jobs.wake(c, "job_1", "calls")

        return write

    assert sorted(await at_the_same_time(store, settle("a"), settle("b"))) == [False, True]  # type: ignore[type-var]
    assert (await row(store, "job_1")).state == "ready"


async def test_a_cancel_during_a_write_of_the_run_comes_after_it(store: Store) -> None:
    await running_job(store)

    def write(c: Connection) -> str:
        jobs.fence(c, "job_1", 1)
        put("step")(c)
        return "written"

    assert await at_the_same_time(store, write, lambda c: jobs.cancel(c, "job_1")) == ("written", True)
    with pytest.raises(Fenced):
        await store.tx(write)


async def test_a_write_of_the_run_during_its_cancel_is_refused(store: Store) -> None:
    await running_job(store)

    def write(c: Connection) -> None:
        jobs.fence(c, "job_1", 1)
        put("step")(c)

    with pytest.raises(Fenced):
        await at_the_same_time(store, lambda c: jobs.cancel(c, "job_1"), write)
    assert await store.read(lambda c: count(c, "step")) == 0


async def test_a_job_that_is_woken_and_claimed_meanwhile_cannot_be_parked_by_its_old_run(store: Store) -> None:
    await running_job(store)
    await store.tx(lambda c: jobs.park(c, "job_1", 1, "approval", None))
    assert await store.tx(decide)
    look = await store.tx(lambda c: claims.look(c, claims.Wanted("node_1", ("call",), 1, frozenset())))
    assert look.mine == {("job_1", 2)}
    with pytest.raises(Fenced):
        await store.tx(park_unless_decided)


async def test_two_nodes_that_claim_at_once_never_get_the_same_job(store: Store) -> None:
    for n in range(4):
        await store.tx(lambda c, n=n: jobs.insert(c, NewJob(f"job_{n}", "call")))  # type: ignore[misc]

    for node in ("node_1", "node_2"):
        await store.tx(lambda c, node=node: nodes.renew(c, node, 30.0, None))  # type: ignore[misc]

    def claim(node: str) -> Callable[[Connection], frozenset[tuple[str, int]]]:
        return lambda c: claims.look(c, claims.Wanted(node, ("call",), 2, frozenset())).mine

    first, second = await at_the_same_time(store, claim("node_1"), claim("node_2"))
    assert sorted([*first, *second]) == [(f"job_{n}", 1) for n in range(4)]  # type: ignore[misc]


async def test_a_node_that_renews_while_it_is_declared_dead_does_not_keep_its_jobs(store: Store) -> None:
    """Otherwise it would believe in its lease and in its jobs while another node runs them."""
    await store.tx(lambda c: nodes.renew(c, "late", -1.0, None))
    await store.tx(lambda c: jobs.insert(c, NewJob("job_1", "call", state="running", owner="late")))

    def renew(c: Connection) -> frozenset[tuple[str, int]]:
        nodes.renew(c, "late", 30.0, None)
        return claims.owned(c, "late")

    def take(c: Connection) -> frozenset[tuple[str, int]]:
        return claims.look(c, claims.Wanted("quick", ("call",), 1, frozenset())).mine

    assert await at_the_same_time(store, take, renew) == ({("job_1", 2)}, frozenset())


async def test_a_node_that_has_renewed_just_now_is_not_declared_dead(store: Store) -> None:
    await store.tx(lambda c: nodes.renew(c, "late", -1.0, None))
    await store.tx(lambda c: jobs.insert(c, NewJob("job_1", "call", state="running", owner="late")))

    def renew(c: Connection) -> frozenset[tuple[str, int]]:
        nodes.renew(c, "late", 30.0, None)
        return claims.owned(c, "late")

    def take(c: Connection) -> frozenset[tuple[str, int]]:
        return claims.look(c, claims.Wanted("quick", ("call",), 1, frozenset())).mine

    assert await at_the_same_time(store, renew, take) == ({("job_1", 1)}, frozenset())
