"""Schedules: which moments a cron line names, and exactly one job for each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tests.durable.yard import another_store, running
from toolyard.core.errors import BadInput, Conflict
from toolyard.core.json import JsonValue
from toolyard.durable import schedules
from toolyard.durable.engine import Engine
from toolyard.durable.running import RunningJob
from toolyard.durable.schedules import Schedule, next_slot
from toolyard.store import Connection, Store

BERLIN = ZoneInfo("Europe/Berlin")
MINUTELY = Schedule("sch_1", "every minute", "* * * * *", "UTC", "work", {"report": "daily"})


def following(cron: str, tz: str, start: str, count: int) -> list[str]:
    """Local times of the next slots, written with their offset."""
    zone, found = ZoneInfo(tz), []
    at = datetime.fromisoformat(start).replace(tzinfo=zone).timestamp()
    for _ in range(count):
        at = next_slot(cron, tz, at)
        found.append(datetime.fromtimestamp(at, zone).strftime("%m-%d %H:%M%z"))
    return found


@pytest.mark.parametrize(
    ("cron", "start", "expected"),
    [
        ("30 9 * * 1-5", "2026-11-20 10:00", ["11-23 09:30+0100", "11-24 09:30+0100"]),
        # the clocks go forward: the slot in the missing hour comes at its end, and the day has one
        ("30 2 * * *", "2026-03-28 12:00", ["03-29 03:00+0200", "03-30 02:30+0200"]),
        ("0 * * * *", "2026-03-29 00:30", ["03-29 01:00+0100", "03-29 03:00+0200", "03-29 04:00+0200"]),
        # the clocks go back: a daily line once, an hourly one in each real hour
        ("30 2 * * *", "2026-10-24 12:00", ["10-25 02:30+0200", "10-26 02:30+0100"]),
        ("0 * * * *", "2026-10-25 01:30", ["10-25 02:00+0200", "10-25 02:00+0100", "10-25 03:00+0100"]),
        ("0 0 29 2 *", "2026-01-01 00:00", ["02-29 00:00+0100", "02-29 00:00+0100"]),
    ],
)
async def test_a_line_names_local_times_also_when_the_clocks_change(
    cron: str, start: str, expected: Sequence[str]
) -> None:
    assert following(cron, "Europe/Berlin", start, len(expected)) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cron": "99 * * * *"}, "cron line '99"),
        ({"cron": "every day"}, "does not have five fields"),
        ({"cron": "* * * * * *"}, "does not have five fields"),
        ({"cron": "0 0 31 2 *"}, "cannot be used"),
        ({"tz": "Mars/Olympus"}, "'Mars/Olympus' is no time zone"),
        ({"tz": "../etc/passwd"}, "no time zone"),
        ({"misfire": "twice"}, "no misfire policy"),
    ],
)
async def test_a_schedule_that_cannot_be_is_refused_with_the_field(
    store: Store, change: dict[str, str], message: str
) -> None:
    with pytest.raises(BadInput, match=message) as refused:
        await store.tx(lambda c: schedules.put(c, replace(MINUTELY, **change)))  # type: ignore[arg-type]
    assert [refused.value.where] == list(change)
    assert await store.read(schedules.every) == []


async def test_a_schedule_is_kept_replaced_paused_resumed_and_removed(store: Store) -> None:
    kept = await store.tx(lambda c: schedules.put(c, MINUTELY))
    now = await store.read(lambda c: c.now())
    assert kept == replace(MINUTELY, next_fire=kept.next_fire)
    assert kept.next_fire is not None
    assert now - 1 < kept.next_fire <= now + 60
    assert kept.next_fire % 60 == 0
    hourly = replace(MINUTELY, name="hourly", cron="0 * * * *")
    replaced = await store.tx(lambda c: schedules.put(c, hourly))
    assert await store.read(schedules.every) == [replaced]
    with pytest.raises(Conflict, match="named 'hourly'"):
        await store.tx(lambda c: schedules.put(c, replace(hourly, id="sch_2")))
    assert [await store.tx(lambda c: schedules.pause(c, "sch_1")) for _ in range(2)] == [True, False]
    await due_since(store, 30)
    assert (await store.tx(schedules.fire_due)).job_ids == ()
    assert [await store.tx(lambda c: schedules.resume(c, "sch_1")) for _ in range(2)] == [True, False]
    assert await store.read(schedules.every) == [replaced]
    assert [await store.tx(lambda c: schedules.remove(c, "sch_1")) for _ in range(2)] == [True, False]
    assert (await store.tx(schedules.fire_due)).sleep == float("inf")


async def due_since(store: Store, seconds: float) -> float:
    """Put the next slot of every schedule back, as after a time without nodes; the slot, on a whole minute."""

    def move(c: Connection) -> float:
        slot = (c.now() - seconds) // 60 * 60
        c.execute("UPDATE schedules SET next_fire = ?", slot)
        return slot

    return await store.tx(move)


async def fired(store: Store) -> list[float]:
    """For which slots there are jobs now."""
    rows = await store.read(lambda c: c.execute("SELECT id FROM jobs ORDER BY id").fetchall())
    return sorted(float(str(job_id).rpartition(":")[2]) for (job_id,) in rows)


async def fire_until_nothing_is_due(store: Store) -> None:
    while (await store.tx(schedules.fire_due)).job_ids:
        continue


@pytest.mark.parametrize("policy", ["skip", "once", "all"])
async def test_slots_that_were_missed_are_treated_as_the_schedule_says(store: Store, policy: str) -> None:
    await store.tx(lambda c: schedules.put(c, replace(MINUTELY, cron="*/10 * * * *", misfire=policy)))  # type: ignore[arg-type]
    slot = (await due_since(store, 6 * 600)) // 600 * 600
    await store.tx(lambda c: c.execute("UPDATE schedules SET next_fire = ?", slot) and None)
    now = await store.read(lambda c: c.now())
    await fire_until_nothing_is_due(store)
    passed = [at for n in range(20) if (at := slot + n * 600) <= now]
    in_time = [at for at in passed if now - at <= schedules.LATE]
    once = in_time or passed[-1:]
    expected = {"skip": in_time, "once": once, "all": passed}[policy]
    assert await fired(store) == expected
    kept = (await store.read(schedules.every))[0]
    assert (kept.next_fire, kept.last_fire) == (passed[-1] + 600, expected[-1] if expected else None)


async def test_a_year_without_nodes_is_made_up_for_in_pieces(store: Store) -> None:
    await store.tx(lambda c: schedules.put(c, replace(MINUTELY, misfire="all")))
    slot = await due_since(store, 250 * 60)
    assert len((await store.tx(schedules.fire_due)).job_ids) == 100
    await fire_until_nothing_is_due(store)
    slots = await fired(store)
    assert slots[:3] == [slot, slot + 60, slot + 120]
    assert slots == [slot + n * 60 for n in range(len(slots))]
    assert len(slots) >= 250


async def test_one_job_per_slot_on_three_nodes_that_fire_at_once(store: Store, database: str) -> None:
    done: list[JsonValue] = []
    enough = asyncio.Event()

    async def work(job: RunningJob) -> None:
        done.append(job.input)
        if len(done) >= 5:
            enough.set()

    async with AsyncExitStack() as stack:
        stores = [store, *[await stack.enter_async_context(another_store(database, store)) for _ in range(2)]]
        engines = [Engine(each, node_id=f"node_{n}") for n, each in enumerate(stores)]
        for engine in engines:
            engine.handle("work", work)
        for n in range(5):
            daily = replace(MINUTELY, id=f"sch_{n}", name=f"name {n}", input={"n": n})
            await store.tx(lambda c, daily=daily: schedules.put(c, daily))  # type: ignore[misc]
        slot = await due_since(store, 0)
        async with running(*engines):
            await asyncio.gather(*(each.tx(schedules.fire_due) for each in stores * 5))
            engines[0].hint("job:")
            await enough.wait()
    expected = [{"n": n, "scheduled_for": slot} for n in range(5)]
    assert sorted((job for job in done if job["scheduled_for"] == slot), key=str) == expected  # type: ignore[index,call-overload]


async def test_the_engine_fires_by_itself(store: Store) -> None:
    engine = Engine(store)
    done: list[JsonValue] = []
    ran = asyncio.Event()

    async def work(job: RunningJob) -> None:
        done.append(job.input["report"])
        ran.set()

    engine.handle("work", work)
    await store.tx(lambda c: schedules.put(c, MINUTELY))
    now = await store.read(lambda c: c.now())
    await store.tx(lambda c: c.execute("UPDATE schedules SET next_fire = ?", now + 0.1) and None)
    async with running(engine):
        await ran.wait()
    assert done[0] == "daily"


async def test_a_schedule_that_cannot_be_read_any_more_is_paused_and_does_not_stop_the_others(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await store.tx(lambda c: schedules.put(c, MINUTELY))
    await store.tx(lambda c: schedules.put(c, replace(MINUTELY, id="sch_2", name="lost zone")))
    await store.tx(lambda c: c.execute("UPDATE schedules SET tz = 'Atlantis/Centre' WHERE id = 'sch_2'") and None)
    await due_since(store, 0)
    assert [job_id.split(":")[1] for job_id in (await store.tx(schedules.fire_due)).job_ids] == ["sch_1"]
    assert [s.state for s in await store.read(schedules.every)] == ["active", "paused"]
    assert "'lost zone' is paused: 'Atlantis/Centre' is no time zone" in caplog.text
