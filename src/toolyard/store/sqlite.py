"""The SQLite engine: one writer thread with group commit, and a few readers beside it.

The writer takes one function, then whatever else is queued (at most 256), and commits them together: one fsync pays
for all. When one of them fails they run again, each in its own savepoint, so that it takes only its own changes back.
Waiters are woken after COMMIT, never before. Promised for one process on a local disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar, cast

from toolyard.core.errors import StoreError, StoreUnavailable
from toolyard.store.base import Connection
from toolyard.store.jobs import Job, JobQueue, Outcome, Waiter, closed, refuse_the_rest, resolve, telling_waiters
from toolyard.store.lock import ProcessLock
from toolyard.store.migrate import Migration, migrate, packaged_migrations
from toolyard.store.sqlite_connection import SqliteConnection, corrupt, run_script, translated
from toolyard.store.sqlite_group import in_savepoint, until_one_fails

T = TypeVar("T")

LARGEST_BATCH = 256
READERS = 2
CHECKPOINT_PAGES = 4000
"""16 MB of log between checkpoints: four times SQLite's own, for fewer pauses."""
CHECKED_AT_START = 64 * 2**20
"""Files up to this size are checked whole at start; a larger one would make the start slow."""


class SqliteStore:
    """`Store` over one file. `max_bytes` limits its size (for tests of a full disk)."""

    dialect = "sqlite"

    def __init__(
        self, path: Path, *, migrations: Sequence[Migration] | None = None, max_bytes: int | None = None
    ) -> None:
        self._path = path
        self._migrations = packaged_migrations("sqlite") if migrations is None else migrations
        self._max_bytes = max_bytes
        self._lock = ProcessLock(path)
        self._open = False
        self._writes: JobQueue = SimpleQueue()
        self._reads: JobQueue = SimpleQueue()
        self._writer: threading.Thread | None = None
        self._readers: list[threading.Thread] = []

    @property
    def location(self) -> str:
        return str(self._path)

    async def start(self) -> None:
        """
        Raises:
            StoreUnavailable: another process has the file, or it cannot be opened.
            StoreCorrupt: it is damaged, or no database.
            StoreTooNew: a newer Toolyard wrote it.
        """
        writer, *readers = await asyncio.to_thread(self._open_file)
        self._writer = threading.Thread(target=self._write_loop, args=(writer,), name="store-writer", daemon=True)
        self._readers = [
            threading.Thread(target=self._read_loop, args=(reader,), name=f"store-reader-{number}", daemon=True)
            for number, reader in enumerate(readers)
        ]
        self._open = True
        for thread in (self._writer, *self._readers):
            thread.start()

    async def tx(self, fn: Callable[[Connection], T]) -> T:
        """Carried out even when the caller is cancelled while it waits."""
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if not self._open:
            raise closed(self.location)
        self._writes.put((fn, cast("Waiter", waiter)))
        return await waiter

    def submit(self, fn: Callable[[Connection], object]) -> None:
        if not self._open:
            raise closed(self.location)
        self._writes.put((fn, None))

    async def flush(self) -> None:
        await self.tx(_nothing)  # the queue is in order

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """All statements of `fn` see the same state of the database."""
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if not self._open:
            raise closed(self.location)
        self._reads.put((fn, cast("Waiter", waiter)))
        return await waiter

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        for _ in self._readers:
            self._reads.put(None)
        for reader in self._readers:
            reader.join()
        self._writes.put(None)
        if self._writer is not None:
            self._writer.join()  # last, so that its closing folds the log into the file
        refuse_the_rest(self._reads, self.location)
        refuse_the_rest(self._writes, self.location)
        self._lock.release()

    # -- opening ------------------------------------------------------------------------------------------------------

    def _open_file(self) -> list[sqlite3.Connection]:
        """The writer's connection, and the readers'."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except OSError as error:
            reason = "its folder is a file" if isinstance(error, FileExistsError) else error.strerror
            raise StoreUnavailable(
                f"The database {self._path} cannot be opened: {reason}.",
                suggestion="Give --database a path in a folder that this account may write to.",
            ) from error
        try:
            with contextlib.suppress(OSError):  # SQLite names the reason better
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            return [self._checked_and_migrated(), *(self._connect(read_only=True) for _ in range(READERS))]
        except sqlite3.Error as error:
            self._lock.release()
            raise translated(error, self.location) from error
        except BaseException:
            self._lock.release()
            raise

    def _checked_and_migrated(self) -> sqlite3.Connection:
        raw = self._connect()
        try:
            if self._path.stat().st_size <= CHECKED_AT_START:
                verdict = raw.execute("PRAGMA quick_check(1)").fetchone()[0]
                if verdict != "ok":
                    raise corrupt(self.location, str(verdict))
            self._refuse_a_foreign_file(raw)
            self._turn_wal_on(raw)
            if self._max_bytes is not None:
                page_size = int(raw.execute("PRAGMA page_size").fetchone()[0])
                raw.execute(f"PRAGMA max_page_count = {self._max_bytes // page_size}")
            raw.execute("BEGIN IMMEDIATE")
            migrate(
                SqliteConnection(raw, self.location),
                self._migrations,
                run=lambda script: run_script(raw, script),
                location=self.location,
            )
            raw.execute("COMMIT")
        except BaseException:
            raw.close()
            raise
        return raw

    def _refuse_a_foreign_file(self, raw: sqlite3.Connection) -> None:
        tables = {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "schema_versions" not in tables:
            raise StoreError(
                f"The file {self._path} is another program's SQLite database.",
                suggestion="Give --database a new path.",
            )

    def _turn_wal_on(self, raw: sqlite3.Connection) -> None:
        """The file remembers it."""
        mode = raw.execute("PRAGMA journal_mode = wal").fetchone()[0]
        if mode != "wal":
            raise StoreError(
                f"The file system of {self._path} cannot keep a write-ahead log (SQLite stays in mode {mode}).",
                suggestion="Use a local disk, or PostgreSQL.",
            )

    def _connect(self, *, read_only: bool = False) -> sqlite3.Connection:
        raw = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, cached_statements=512, timeout=5.0
        )
        try:
            raw.execute("PRAGMA synchronous = full")
            raw.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            raw.execute("PRAGMA journal_size_limit = 67108864")
            raw.execute("PRAGMA foreign_keys = on")
            if read_only:
                raw.execute("PRAGMA query_only = on")
            if sys.platform == "darwin":
                raw.execute("PRAGMA fullfsync = on")
                raw.execute("PRAGMA checkpoint_fullfsync = on")
        except BaseException:
            raw.close()
            raise
        return raw

    # -- the writer thread --------------------------------------------------------------------------------------------

    def _write_loop(self, raw: sqlite3.Connection) -> None:
        connection = SqliteConnection(raw, self.location)
        running = True
        while running:
            job = self._writes.get()
            if job is None:
                break
            batch, running = self._with_whatever_waits(job)
            with telling_waiters(batch):
                self._commit_together(connection, batch)
        raw.close()

    def _with_whatever_waits(self, first: Job) -> tuple[list[Job], bool]:
        batch = [first]
        take = self._writes.get_nowait
        while len(batch) < LARGEST_BATCH:
            try:
                job = take()
            except Empty:
                break
            if job is None:
                return batch, False
            batch.append(job)
        return batch, True

    def _commit_together(self, connection: SqliteConnection, batch: list[Job]) -> None:
        """When the transaction as a whole fails, each function gets its own: one of them may be too large for what is
        left of the disk, and all are safe to run again."""
        try:
            outcomes = self._attempt(connection, batch)
        except sqlite3.Error as error:
            if len(batch) > 1:
                for job in batch:
                    self._commit_together(connection, [job])
                return
            outcomes = [(batch[0], None, translated(error, self.location))]
        resolve(outcomes)

    def _attempt(self, connection: SqliteConnection, batch: list[Job]) -> list[Outcome]:
        """
        Raises:
            sqlite3.Error: BEGIN or COMMIT failed, or SQLite gave up the whole transaction on the way.
        """
        raw = connection.raw
        try:
            raw.execute("BEGIN IMMEDIATE")
            outcomes = until_one_fails(connection, batch)
            if outcomes[-1][2] is not None:
                raw.execute("ROLLBACK")
                if len(batch) == 1:
                    return outcomes
                raw.execute("BEGIN IMMEDIATE")
                outcomes = [in_savepoint(connection, job) for job in batch]
            raw.execute("COMMIT")
        except sqlite3.Error:
            if raw.in_transaction:
                raw.rollback()
            raise
        return outcomes

    # -- the reader threads -------------------------------------------------------------------------------------------

    def _read_loop(self, raw: sqlite3.Connection) -> None:
        connection = SqliteConnection(raw, self.location)
        while (job := self._reads.get()) is not None:
            with telling_waiters([job]):
                resolve([self._read_one(connection, job)])
        raw.close()

    def _read_one(self, connection: SqliteConnection, job: Job) -> Outcome:
        try:
            connection.raw.execute("BEGIN")
            return job, job[0](connection), None
        except sqlite3.Error as error:
            return job, None, translated(error, self.location)
        except BaseException as error:  # noqa: BLE001 - whatever it raised is the caller's
            return job, None, error
        finally:
            if connection.raw.in_transaction:
                connection.raw.rollback()


def _nothing(_: Connection) -> None:
    return None
