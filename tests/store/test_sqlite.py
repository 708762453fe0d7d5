"""What only SQLite has: group commit, one process per file, and files that are full, damaged or not ours."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.store.rows import Refused, names, put
from toolyard.core.errors import Conflict, StoreCorrupt, StoreError, StoreTooNew, StoreUnavailable
from toolyard.store import Connection, Store
from toolyard.store.migrate import Migration
from toolyard.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def running(store: Store) -> AsyncIterator[Store]:
    await store.start()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "toolyard.db"


async def test_what_waits_is_committed_together_and_acknowledged_only_then(sqlite_store: Store) -> None:
    """The second function of a group is held; the first has run by then, and is neither visible nor acknowledged."""
    first_runs, held, go_on = threading.Event(), threading.Event(), threading.Event()

    def hold(event: threading.Event) -> None:
        event.set()
        assert go_on.wait(10)

    def hold_the_writer(_: Connection) -> None:
        first_runs.set()
        assert held.wait(10)

    async with asyncio.timeout(10):
        before = asyncio.create_task(sqlite_store.tx(hold_the_writer))
        await asyncio.to_thread(first_runs.wait, 10)
        group = [asyncio.create_task(sqlite_store.tx(put(f"{n:03}"))) for n in range(100)]
        inside = threading.Event()
        last = asyncio.create_task(sqlite_store.tx(lambda _: hold(inside)))
        await asyncio.sleep(0)  # they are queued
        held.set()
        await before
        await asyncio.to_thread(inside.wait, 10)
        seen, acknowledged = await sqlite_store.read(names), [task.done() for task in group]
        go_on.set()
        await asyncio.gather(*group)
        await last
    assert (seen, set(acknowledged)) == ([], {False})
    assert len(await sqlite_store.read(names)) == 100


async def test_a_commit_that_fails_for_one_function_is_repeated_for_the_others(sqlite_store: Store) -> None:
    """A deferred foreign key is only looked at by COMMIT, so the whole group's COMMIT fails."""
    await sqlite_store.tx(lambda c: c.execute("CREATE TABLE parents (id TEXT PRIMARY KEY)"))
    await sqlite_store.tx(
        lambda c: c.execute("CREATE TABLE children (id TEXT REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)")
    )

    def orphan(c: Connection) -> None:
        c.execute("INSERT INTO children (id) VALUES ('nobody')")

    outcomes = await asyncio.gather(
        *(sqlite_store.tx(orphan if n == 5 else put(f"{n}")) for n in range(10)), return_exceptions=True
    )
    assert [str(n) for n in range(10) if n != 5] == [o for o in outcomes if isinstance(o, str)]
    assert isinstance(outcomes[5], StoreError)
    assert "FOREIGN KEY" in str(outcomes[5])
    assert await sqlite_store.read(names) == [str(n) for n in range(10) if n != 5]
    assert await sqlite_store.read(lambda c: c.execute("SELECT * FROM children").fetchall()) == []


async def test_a_function_that_fails_alone_ran_once_and_one_in_a_group_twice(sqlite_store: Store) -> None:
    """Groups run without savepoints at first; this is what `safe to run again` is for."""
    runs: list[str] = []
    started, go_on = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        started.set()
        assert go_on.wait(10)

    def fail(name: str) -> Callable[[Connection], None]:
        def work(_: Connection) -> None:
            runs.append(name)
            raise Refused(name)

        return work

    with pytest.raises(Refused):
        await sqlite_store.tx(fail("alone"))
    holding = asyncio.create_task(sqlite_store.tx(hold))
    await asyncio.to_thread(started.wait, 10)
    group = [asyncio.create_task(sqlite_store.tx(work)) for work in (put("a"), fail("in a group"), put("b"))]
    await asyncio.sleep(0)
    go_on.set()
    await holding
    await asyncio.gather(*group, return_exceptions=True)
    assert runs == ["alone", "in a group", "in a group"]
    assert await sqlite_store.read(names) == ["a", "b"]


async def test_an_error_that_a_function_catches_leaves_its_other_rows(sqlite_store: Store) -> None:
    def insert_twice(c: Connection) -> str:
        insert = "INSERT INTO values_kept (name, value) VALUES ('a', '1')"
        c.execute(insert)
        try:
            c.execute(insert)
        except Conflict:
            return "caught"
        return "not refused"

    assert await sqlite_store.tx(insert_twice) == "caught"
    assert await sqlite_store.read(names) == ["a"]


async def test_the_file_is_written_for_safety_and_for_its_owner_alone(path: Path) -> None:
    async with running(SqliteStore(path)) as store:

        def settings(c: Connection) -> list[object]:
            rows = [c.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous", "foreign_keys")]
            return [row[0] for row in rows if row]

        assert await store.tx(settings) == ["wal", 2, 1]
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    assert sorted(file.name for file in path.parent.iterdir()) == ["toolyard.db", "toolyard.db.lock"]


async def test_folders_on_the_way_to_a_new_file_are_made(tmp_path: Path) -> None:
    async with running(SqliteStore(tmp_path / "a" / "b" / "toolyard.db")) as store:
        assert await store.read(names) == []


async def test_a_path_that_cannot_be_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match=r"file/toolyard\.db cannot be opened: its folder is a file"):
        await SqliteStore(tmp_path / "file" / "toolyard.db").start()
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreUnavailable, match="folder"):
        await SqliteStore(tmp_path / "folder").start()


# -- one process per file ---------------------------------------------------------------------------------------------


@contextmanager
def another_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """It holds the store open until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.writer_process", str(path), "idle"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_a_second_process_on_one_file_is_refused_until_the_first_is_dead(path: Path) -> None:
    with another_process(path) as holder:
        with pytest.raises(StoreUnavailable) as refusal:
            await SqliteStore(path).start()
        assert str(refusal.value) == (
            f"The database {path} is in use by another Toolyard (process {holder.pid})."
            " Stop that one first, or give --database postgresql://... to run several nodes on one database."
        )
    async with running(SqliteStore(path)) as store:  # kill -9 let the lock go
        assert await store.tx(put("a")) == "a"


async def test_a_second_store_of_one_process_is_refused_and_leaves_the_first_its_lock(path: Path) -> None:
    async with running(SqliteStore(path)) as store:
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="in use"):
                await SqliteStore(path).start()
        assert await store.tx(put("a")) == "a"
        attempt = subprocess.run(
            [sys.executable, "-m", "tests.store.writer_process", str(path), "idle"],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        assert attempt.returncode != 0
        assert f"in use by another Toolyard (process {os.getpid()})" in attempt.stderr
    async with running(SqliteStore(path)) as store:
        assert await store.read(names) == ["a"]


async def test_a_symbolic_link_to_a_file_in_use_is_refused_too(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    async with running(SqliteStore(path)):
        with pytest.raises(StoreUnavailable, match=r"link\.db is in use"):
            await SqliteStore(link).start()


# -- files that are not what they should be ---------------------------------------------------------------------------


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_bytes(b"these are my holiday notes\n" * 100)
    with pytest.raises(StoreCorrupt, match=r"toolyard\.db is damaged or no SQLite database"):
        await SqliteStore(path).start()
    assert path.read_bytes() == b"these are my holiday notes\n" * 100


async def test_a_damaged_file_is_refused_at_start(path: Path) -> None:
    async with running(SqliteStore(path)) as store:
        await asyncio.gather(*(store.tx(put(f"{n:04}", "x" * 400)) for n in range(500)))
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 8192] = b"\xff" * 8192
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="damaged") as refusal:
        await SqliteStore(path).start()
    assert "backup" in str(refusal.value)
    with pytest.raises(StoreCorrupt):  # and the refused attempt let its lock go
        await SqliteStore(path).start()


async def test_a_database_of_another_program_is_refused_and_left_as_it_is(path: Path) -> None:
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE bookmarks (url TEXT)")
    foreign.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program's"):
        await SqliteStore(path).start()
    assert path.read_bytes() == before


async def test_a_database_of_a_newer_toolyard_is_refused(path: Path) -> None:
    versions = [Migration(n, f"step_{n}", f"CREATE TABLE t{n} (id TEXT)") for n in (1, 2, 3)]
    async with running(SqliteStore(path, migrations=versions)):
        pass
    with pytest.raises(StoreTooNew, match=r"schema version 3 \(step_3\).* versions up to 2\. Install the newer"):
        await SqliteStore(path, migrations=versions[:2]).start()


# -- a full disk ------------------------------------------------------------------------------------------------------


async def fill(store: Store) -> tuple[list[str], StoreUnavailable]:
    """The rows that were acknowledged until one was refused, and its refusal."""
    kept: list[str] = []
    try:
        for n in range(500):
            kept.append(await store.tx(put(f"{n:04}", "x" * 20_000)))  # noqa: PERF401 - the last one raises
    except StoreUnavailable as refusal:
        return kept, refusal
    raise AssertionError("the disk never was full")


async def test_a_full_database_refuses_what_does_not_fit_and_goes_on_when_there_is_room(path: Path) -> None:
    async with running(SqliteStore(path, max_bytes=512 * 1024)) as store:
        kept, refusal = await fill(store)
        assert re.search("the disk is full .* Nothing of this change was written", str(refusal))
        assert await store.read(names) == kept

        large = [store.tx(put(f"large-{n}", "x" * 600_000)) for n in range(2)]
        small = [store.tx(put(f"small-{n}")) for n in range(4)]
        outcomes = await asyncio.gather(large[0], *small, large[1], return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreUnavailable, str, str, str, str, StoreUnavailable]

        await store.tx(lambda c: c.execute("DELETE FROM values_kept WHERE name = ?", kept.pop()))
        assert await store.tx(put("again", "x" * 15_000)) == "again"
        assert await store.read(names) == [*kept, "again", *(f"small-{n}" for n in range(4))]


async def test_a_disk_that_takes_no_more_bytes_loses_nothing_acknowledged(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with running(SqliteStore(path)) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        try:
            kept, refusal = await fill(store)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert re.search("the disk (is full|reports an error)", str(refusal))
        assert await store.read(names) == kept
        assert await store.tx(put("again", "x" * 20_000)) == "again"
    async with running(SqliteStore(path)) as store:
        assert await store.read(names) == [*kept, "again"]
        assert await store.read(lambda c: c.execute("PRAGMA integrity_check").fetchall()) == [("ok",)]
