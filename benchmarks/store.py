"""How many durable calls a second the store takes: `python -m benchmarks.store --json out.json`.

A durable call is what the call path writes: INSERT PENDING, wait for its commit, UPDATE COMPLETE, wait for its commit,
with rows of about 750 bytes and the real table with its indexes. The baseline, in the same run on the same disk, is
the plain way: one connection with a thread of its own, one commit per write, the callers in turn.
PostgreSQL is started from the binaries of the test dependencies, or given by --postgresql URL (an empty database).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from toolyard.core.ids import new_id
from toolyard.store import Connection, Store, open_store

CALLERS = (1, 32)
ROUNDS = 3
"""Each measured in turn with its baseline; the median is reported."""
ARGUMENTS = json.dumps({"query": "x" * 330})
RESULT = json.dumps({"found": "y" * 200})

INSERT = (
    "INSERT INTO calls (id, tool, namespace, principal, origin, state, arguments, created, started, input_bytes)"
    " VALUES (?, 'crm:search', 'crm', 'key:bench', 'mcp', 'PENDING', ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
SETTLE = (
    "UPDATE calls SET state = 'COMPLETE', result = ?, finished = ?, output_bytes = ? WHERE id = ?"
    " AND state IN ('PENDING', 'PROCESSING')"
)


async def through_the_store(store: Store, callers: int, calls: int) -> list[float]:
    """The seconds of each call."""
    times: list[float] = []

    async def caller() -> None:
        for _ in range(calls // callers):
            began = time.perf_counter()
            await durable_call(store)
            times.append(time.perf_counter() - began)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return times


async def durable_call(store: Store) -> None:
    identifier, now = new_id("call"), time.time()

    def insert(c: Connection) -> bool:
        return c.execute(INSERT, identifier, ARGUMENTS, now, now, len(ARGUMENTS)).rowcount == 1

    def settle(c: Connection) -> bool:
        return c.execute(SETTLE, RESULT, time.time(), len(RESULT), identifier).rowcount == 1

    if not (await store.tx(insert) and await store.tx(settle)):
        raise RuntimeError("a write was not taken")


async def one_commit_per_write(connection: Any, placeholder: str, calls: int) -> float:
    """Calls a second of the plain way. More callers only wait longer, so there is no number of them."""
    loop = asyncio.get_running_loop()
    insert, settle = (sql.replace("?", placeholder) for sql in (INSERT, SETTLE))

    def write(sql: str, *parameters: object) -> None:
        connection.execute(sql, parameters)
        connection.commit()

    with ThreadPoolExecutor(1) as thread:
        began = time.perf_counter()
        for _ in range(calls):
            identifier, now = new_id("call"), time.time()
            await loop.run_in_executor(thread, write, insert, identifier, ARGUMENTS, now, now, len(ARGUMENTS))
            await loop.run_in_executor(thread, write, settle, RESULT, time.time(), len(RESULT), identifier)
        return calls / (time.perf_counter() - began)


def measured(times: list[float], seconds: float, cpu_seconds: float) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    return {
        "calls_per_second": len(times) / seconds,
        "p50_ms": cuts[49] * 1000,
        "p99_ms": cuts[98] * 1000,
        "client_cpu_us_per_call": cpu_seconds / len(times) * 1e6,
    }


async def engine(location: str, plain: Callable[[], Any], placeholder: str, calls: int) -> dict[str, Any]:
    """Rounds of baseline and store in turn."""
    store = open_store(location)
    await store.start()
    rounds: dict[str, list[dict[str, float]]] = {str(callers): [] for callers in CALLERS}
    baselines: list[float] = []
    try:
        for _ in range(ROUNDS):
            connection = plain()
            try:
                baselines.append(await one_commit_per_write(connection, placeholder, calls // 20))
            finally:
                connection.close()
            for callers in CALLERS:
                share = calls if callers > 1 else calls // 10
                began, cpu = time.perf_counter(), time.process_time()
                times = await through_the_store(store, callers, share)
                spent = time.perf_counter() - began
                rounds[str(callers)].append(measured(times, spent, time.process_time() - cpu))
    finally:
        await store.close()
    baseline = statistics.median(baselines)
    by_callers = {
        callers: {key: statistics.median(one[key] for one in several) for key in several[0]}
        for callers, several in rounds.items()
    }
    for figures in by_callers.values():
        figures["ratio_to_baseline"] = figures["calls_per_second"] / baseline
    return {"callers": by_callers, "baseline_calls_per_second": baseline, "calls_per_round": calls}


def plain_sqlite(path: Path) -> Callable[[], sqlite3.Connection]:
    """With the same promises: WAL and synchronous=FULL."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = full")
        return connection

    return connect


@contextmanager
def some_postgres(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    from tests.store.postgres import running_postgres

    with running_postgres() as server:
        yield server.new_database()


def measure(postgresql: str | None, calls: int) -> dict[str, Any]:
    engines: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="toolyard-bench-", dir=Path.cwd()) as folder:
        prepare = open_store(f"{folder}/plain.db")
        asyncio.run(_migrated(prepare))
        location = f"{folder}/toolyard.db"
        engines["sqlite"] = asyncio.run(engine(location, plain_sqlite(Path(folder, "plain.db")), "?", calls))
    with some_postgres(postgresql) as url:
        engines["postgres"] = asyncio.run(engine(url, lambda: psycopg.connect(url), "%s", calls // 3))
    return {
        "benchmark": "store",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "machine": f"{platform.system()} {platform.machine()}",
        "rounds": ROUNDS,
        "engines": engines,
    }


async def _migrated(store: Store) -> None:
    await store.start()
    await store.close()


def table(report: dict[str, Any]) -> str:
    lines = [f"{'engine':<10}{'callers':>8}{'calls/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}{'x plain':>9}"]
    for name, figures in report["engines"].items():
        lines.append(f"{name:<10}{'plain':>8}{figures['baseline_calls_per_second']:>10,.0f}")
        lines.extend(
            f"{name:<10}{callers:>8}{row['calls_per_second']:>10,.0f}{row['p50_ms']:>9.2f}{row['p99_ms']:>9.2f}"
            f"{row['client_cpu_us_per_call']:>9,.0f}{row['ratio_to_baseline']:>9.1f}"
            for callers, row in figures["callers"].items()
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--postgresql", help="URL of an empty database, instead of one that is started")
    parser.add_argument("--calls", type=int, default=12_000, help="per round with 32 callers on SQLite")
    options = parser.parse_args()
    report = measure(options.postgresql, options.calls)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    sys.stdout.write(table(report) + "\n")


if __name__ == "__main__":
    main()
