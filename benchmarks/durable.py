"""What durable work costs: `python -m benchmarks.durable --json out.json`.

On each engine: the time of a memoised step whose effect does nothing; from a decision (lock, write, wake, commit) to
the resumed handler, on the same node and (PostgreSQL) on another one; what 100,000 parked jobs take, and the decision
among them; an event's way from its append to a follower on another node; and how soon another node runs the job of
one that was killed with -9. On SQLite, which belongs to one process, "another node" is another engine in it, and a
killed process is restarted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import signal
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.store import some_postgres
from toolyard.core.ids import new_id
from toolyard.core.json import JsonValue
from toolyard.durable import jobs, log
from toolyard.durable.engine import Engine
from toolyard.durable.jobs import NewJob
from toolyard.durable.running import RunningJob
from toolyard.store import Connection, Store, open_store

STEPS, DECISIONS, EVENTS, KILLS = 500, 300, 300, 3
SIDE_BY_SIDE = 32
PARKED = 100_000
TTL = 1.5


async def nothing() -> JsonValue:
    return None


def summary(milliseconds: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(milliseconds, n=100)
    return {"p50_ms": cuts[49], "p99_ms": cuts[98], "n": len(milliseconds)}


@asynccontextmanager
async def running(store: Store, **handlers: Any) -> AsyncGenerator[Engine, None]:
    engine = Engine(store)
    for kind, handler in handlers.items():
        engine.handle(kind, handler)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


@asynccontextmanager
async def opened(location: str) -> AsyncGenerator[Store, None]:
    store = open_store(location)
    await store.start()
    try:
        yield store
    finally:
        await store.close()


async def steps(store: Store) -> dict[str, float]:
    """Milliseconds of a step, alone; and steps a second of 32 jobs."""

    async def work(job: RunningJob) -> JsonValue:
        began = time.perf_counter()
        for n in range(STEPS):
            await job.step(f"step {n}", nothing)
        return (time.perf_counter() - began) / STEPS * 1000

    async with running(store, work=work) as engine:
        alone = new_id("job")
        await engine.submit(NewJob(alone, "work"))
        one = (await engine.wait(alone)).result
        names = [new_id("job") for _ in range(SIDE_BY_SIDE)]
        began = time.perf_counter()
        for name in names:
            await engine.submit(NewJob(name, "work"))
        await asyncio.gather(*(engine.wait(name) for name in names))
        rate = STEPS * SIDE_BY_SIDE / (time.perf_counter() - began)
    return {"step_ms": float(str(one)), "steps_per_second_of_32_jobs": rate}


def wake(c: Connection, job_id: str) -> bool:
    jobs.lock(c, job_id)
    return jobs.wake(c, job_id, "decision")


async def decisions(runner: Store, decider: Store, *, same_node: bool) -> dict[str, Any]:
    """From the call that writes a decision, and from its commit, to the handler that runs again."""
    resumed: dict[str, asyncio.Future[float]] = {}

    async def work(job: RunningJob) -> JsonValue:
        if job.epoch == 1:
            await job.park("decision", time.time() + 3600)
        resumed[job.id].set_result(time.perf_counter())
        return None

    from_call: list[float] = []
    from_commit: list[float] = []
    async with running(runner, work=work) as engine, running(decider) as other:
        for _ in range(DECISIONS):
            name = new_id("job")
            resumed[name] = asyncio.get_running_loop().create_future()
            await engine.submit(NewJob(name, "work"))
            async with engine.watch(f"job:{name}") as waiter:
                while (await runner.read(lambda c, name=name: jobs.get(c, name))).state != "waiting":  # type: ignore[union-attr,misc]
                    await waiter.wait(0.05)
            await asyncio.sleep(0.003)  # a decision does not come at the moment of parking
            called = time.perf_counter()
            if not await decider.tx(lambda c, name=name: wake(c, name)):  # type: ignore[misc]
                raise RuntimeError("a decision woke nothing")
            committed = time.perf_counter()
            (engine if same_node else other).hint(f"job:{name}")
            at = await resumed[name]
            from_call.append((at - called) * 1000)
            from_commit.append((at - committed) * 1000)
    return {"from_call": summary(from_call), "from_commit": summary(from_commit)}


async def parked(store: Store) -> dict[str, Any]:
    """Memory and threads of this process with 100,000 jobs that wait for decisions."""
    process = psutil.Process()
    deadline = time.time() + 36_000

    def some(first: int) -> Any:
        def insert(c: Connection) -> None:
            for n in range(first, first + 500):
                job = NewJob(
                    f"parked_{n}", "work", {"n": n}, state="waiting", wake_at=deadline + n, wake_key="decision"
                )
                jobs.insert(c, job)

        return insert

    async with running(store, work=lambda _: nothing()) as engine:
        await asyncio.sleep(1.5)
        before, threads = process.memory_info().rss, threading.active_count()
        for first in range(0, PARKED, 500):
            await store.tx(some(first))
        engine.hint("job:parked_0")
        cpu = process.cpu_times()
        await asyncio.sleep(5)
        spent = sum(process.cpu_times()[:2]) - sum(cpu[:2])
        after = process.memory_info().rss
        more_threads = threading.active_count() - threads
    return {
        "jobs": PARKED,
        "more_megabytes": (after - before) / 2**20,
        "more_threads": more_threads,
        "idle_cpu_percent": spent / 5 * 100,
    }


async def followed(writer: Store, reader: Store) -> dict[str, float]:
    """From the append's call to the follower that has read the event."""
    session = new_id("ses")

    def create(c: Connection) -> None:
        c.execute("INSERT INTO sessions (id, principal, created) VALUES (?, 'bench', ?)", session, c.now())

    await writer.tx(create)
    arrived: dict[int, asyncio.Future[float]] = {
        n: asyncio.get_running_loop().create_future() for n in range(1, EVENTS + 1)
    }
    times: list[float] = []
    async with running(writer) as here, running(reader) as there:
        await asyncio.sleep(0.5)

        async def follow() -> None:
            after = 0
            async with there.watch(f"session:{session}") as waiter:
                while after < EVENTS:
                    news = await reader.read(lambda c, after=after: log.page(c, session, after, 100))  # type: ignore[misc]
                    for event in news:
                        arrived[event.seq].set_result(time.perf_counter())
                        after = event.seq
                    if not news:
                        await waiter.wait()

        following = asyncio.create_task(follow())
        for n in range(1, EVENTS + 1):
            await asyncio.sleep(0.02 * (n % 3) / 2)
            began = time.perf_counter()
            await writer.tx(lambda c: log.append(c, session, "message", "message", {"text": "hello"}))
            here.hint(f"session:{session}")
            times.append((await arrived[n] - began) * 1000)
        await following
    return summary(times)


async def takeovers(location: str, store: Store | None) -> dict[str, Any]:
    """Seconds from kill -9 of the process that runs a job until another one runs it."""
    seconds: list[float] = []
    for _ in range(KILLS):
        name = new_id("job")
        victim = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.durable", "--victim", location, "--job", name,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        if victim.stdout is None:
            raise RuntimeError("no pipe")
        await victim.stdout.readline()
        if store is not None:
            seconds.append(await _taken(store, victim, name))
        else:
            victim.send_signal(signal.SIGKILL)
            killed = time.perf_counter()
            await victim.wait()
            async with opened(location) as again:
                seconds.append(await _taken(again, None, name, killed))
    return {"ttl": TTL, "seconds": seconds, "worst_beyond_lease": max(seconds) - (TTL if store else 0)}


async def _taken(store: Store, victim: asyncio.subprocess.Process | None, name: str, killed: float = 0.0) -> float:
    ran: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def work(job: RunningJob) -> JsonValue:
        if job.id == name:
            ran.set_result(time.perf_counter())
        return None

    engine = Engine(store, ttl=TTL)
    engine.handle("victim", work)
    await engine.start()
    if victim is not None:
        await asyncio.sleep(0.2)
        victim.send_signal(signal.SIGKILL)
        killed = time.perf_counter()
        await victim.wait()
    at = await ran
    await engine.stop()
    return at - killed


async def victim(location: str, name: str) -> None:
    """Runs one job for ever, in a process that will be killed."""

    async def work(_: RunningJob) -> JsonValue:
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        await asyncio.Event().wait()
        return None

    async with opened(location) as store:
        engine = Engine(store, ttl=TTL)
        engine.handle("victim", work)
        await engine.start()
        await engine.submit(NewJob(name, "victim"))
        await asyncio.Event().wait()


async def on_sqlite(location: str) -> dict[str, Any]:
    taken = await takeovers(location, None)
    async with opened(location) as store:
        figures = await both(store, store)
    return {**figures, "restart_after_kill": taken}


async def on_postgres(location: str) -> dict[str, Any]:
    async with opened(location) as store, opened(location) as other:
        taken = await takeovers(location, store)
        return {**await both(store, other), "takeover_after_kill": taken}


async def both(store: Store, other: Store) -> dict[str, Any]:
    figures: dict[str, Any] = {"steps": await steps(store), "event_to_follower": await followed(store, other)}
    figures["decision_on_the_node"] = await decisions(store, store, same_node=True)
    figures["decision_elsewhere"] = await decisions(store, other, same_node=False)
    figures["parked"] = await parked(store)
    figures["decision_among_parked"] = await decisions(store, store, same_node=True)
    return figures


def measure(postgresql: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="toolyard-bench-", dir=Path.cwd()) as folder:
        sqlite = asyncio.run(on_sqlite(os.path.join(folder, "toolyard.db")))
    with some_postgres(postgresql) as url:
        postgres = asyncio.run(on_postgres(url))
    return {
        "benchmark": "durable",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "machine": f"{platform.system()} {platform.machine()}",
        "engines": {"sqlite": sqlite, "postgres": postgres},
    }


def table(report: dict[str, Any]) -> str:
    lines: list[str] = []
    for name, figures in report["engines"].items():
        step, event, parked = figures["steps"], figures["event_to_follower"], figures["parked"]
        killed = figures.get("takeover_after_kill") or figures["restart_after_kill"]
        lines.append(name)
        lines.append(f"  a step {step['step_ms']:.2f} ms; {step['steps_per_second_of_32_jobs']:,.0f}/s of 32 jobs")
        for key in ("decision_on_the_node", "decision_elsewhere", "decision_among_parked"):
            row, commit = figures[key]["from_call"], figures[key]["from_commit"]
            lines.append(
                f"  {key.replace('_', ' ')} to resumed handler: p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms"
                f" (from its commit p50 {commit['p50_ms']:.1f} ms)"
            )
        lines.append(f"  event to a follower elsewhere: p50 {event['p50_ms']:.1f} ms, p99 {event['p99_ms']:.1f} ms")
        lines.append(
            f"  {parked['jobs']:,} parked jobs: {parked['more_megabytes']:.1f} MB and {parked['more_threads']} threads"
            f" more, {parked['idle_cpu_percent']:.1f} % CPU"
        )
        seconds = ", ".join(f"{one:.2f}" for one in killed["seconds"])
        lines.append(f"  after kill -9 another process runs the job in {seconds} s (lease {killed['ttl']} s)")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--postgresql", help="URL of an empty database, instead of one that is started")
    parser.add_argument("--victim", help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.victim:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(victim(options.victim, options.job))
        return
    report = measure(options.postgresql)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    sys.stdout.write(table(report) + "\n")


if __name__ == "__main__":
    main()
