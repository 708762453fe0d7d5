"""kill -9 in the middle of writing, again and again: what was acknowledged is there, and nothing is there by half."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from itertools import count
from pathlib import Path

import pytest

from tests.store.postgres import PostgresServer, running_postgres
from tests.store.rows import names, put
from toolyard.store import open_store

ROOT = Path(__file__).parents[2]
ACKNOWLEDGED_BEFORE_THE_KILL = (1, 40, 800)
"""Different moments: the first write, between checkpoints, after some. The killer is another process."""
LAST_WORDS = (1, 7, 100, 300)
"""The writer kills itself right after this acknowledgement, so that hardly any time is left to make it true."""


async def write_until_killed(location: str, first: int, acknowledgements: int, last_words: int = -1) -> set[int]:
    """What a writer acknowledged before it was killed, also what was still in the pipe."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.store.writer_process", location, str(first), str(last_words),
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"ready\n"
        acknowledged = {int(await process.stdout.readline()) for _ in range(acknowledgements)}
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        rest = await process.stdout.read()
        assert await process.wait() == -signal.SIGKILL
    complete_lines = rest[: rest.rfind(b"\n") + 1]
    return acknowledged | {int(line) for line in complete_lines.split()}


async def test_a_killed_writer_loses_nothing_it_acknowledged(database: str) -> None:
    acknowledged: set[int] = set()
    firsts = count(0, 1_000_000)
    async with asyncio.timeout(60):
        for moment in ACKNOWLEDGED_BEFORE_THE_KILL:
            acknowledged |= await write_until_killed(database, next(firsts), moment)
        for last_words in LAST_WORDS:
            acknowledged |= await write_until_killed(database, next(firsts), last_words, last_words)

    store = open_store(database)
    await store.start()
    found = await store.read(names)
    if store.dialect == "sqlite":
        assert await store.read(lambda c: c.execute("PRAGMA integrity_check").fetchall()) == [("ok",)]
    await store.close()

    pairs = {(int(name[:8]), name[9:]) for name in found}
    numbers = {number for number, _ in pairs}
    assert len(acknowledged) >= sum(ACKNOWLEDGED_BEFORE_THE_KILL) + sum(LAST_WORDS)
    assert acknowledged - numbers == set()
    assert pairs == {(number, half) for number in numbers for half in "ab"}


@pytest.mark.postgres
async def test_a_crashed_server_loses_nothing_that_was_acknowledged() -> None:
    """The whole PostgreSQL server ends without a checkpoint while eight callers write, and comes back.

    A server of its own: one that holds every other test's database takes a minute to recover.
    """
    with running_postgres() as server:
        acknowledged, found = await _written_across_a_crash(server)
    assert sorted(acknowledged) == found


async def _written_across_a_crash(server: PostgresServer) -> tuple[list[str], list[str]]:
    store = open_store(server.new_database())
    await store.start()
    acknowledged: list[str] = []
    stop = asyncio.Event()

    async def caller(number: int) -> None:
        written = 0
        while not stop.is_set():
            acknowledged.append(await store.tx(put(f"{number}-{written:06}")))
            written += 1

    async with asyncio.timeout(60):
        callers = asyncio.gather(*(caller(number) for number in range(8)))
        while len(acknowledged) < 200:
            await store.tx(names)
        await asyncio.to_thread(server.crash_and_restart)
        enough = len(acknowledged) + 200
        while len(acknowledged) < enough:
            await store.tx(names)
        stop.set()
        await callers
    found = await store.read(names)
    await store.close()
    return acknowledged, found
