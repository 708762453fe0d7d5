"""The PostgreSQL engine: worker threads with a connection each, for any number of nodes on one database.

`tx` runs one function per transaction (READ COMMITTED) on one of the writers. What `submit` queued is committed in
groups, in order, by one more. A transaction is run again after a deadlock, a serialization failure or a lost
connection: a COMMIT whose answer never came may have happened, which is why functions must be safe to repeat.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar, cast

import psycopg

from toolyard.core.errors import StoreError
from toolyard.store.base import Connection
from toolyard.store.jobs import Job, JobQueue, Waiter, closed, refuse_the_rest
from toolyard.store.migrate import Migration, migrate, packaged_migrations
from toolyard.store.postgres_connection import Address, PostgresConnection, translated
from toolyard.store.postgres_worker import Worker

T = TypeVar("T")

WRITERS = 10
READERS = 2
LARGEST_GROUP = 128
PATIENCE = 10.0
"""Seconds that a caller waits for a lost database before it gets `StoreUnavailable`."""
PATIENCE_OF_SUBMITTED = 60.0
"""Nobody waits for these, so they may wait longer."""
_MIGRATION_LOCK = 0x746F6F6C79617264  # "toolyard"
_OLDEST_SERVER = 140000


class PostgresStore:
    """`Store` over one database. `url` is a libpq URL or connection string."""

    dialect = "postgres"

    def __init__(
        self,
        url: str,
        *,
        migrations: Sequence[Migration] | None = None,
        writers: int = WRITERS,
        patience: float = PATIENCE,
    ) -> None:
        self._address = Address(url)
        self._migrations = packaged_migrations("postgres") if migrations is None else migrations
        self._open = False
        self._closing = threading.Event()
        self._writes: JobQueue = SimpleQueue()
        self._submitted: JobQueue = SimpleQueue()
        self._reads: JobQueue = SimpleQueue()
        self._workers = [
            *(self._worker(self._writes, f"writer-{n}", patience) for n in range(writers)),
            *(self._worker(self._reads, f"reader-{n}", patience, read_only=True) for n in range(READERS)),
            self._worker(self._submitted, "recorder", PATIENCE_OF_SUBMITTED, group=LARGEST_GROUP),
        ]

    @property
    def location(self) -> str:
        return self._address.shown

    async def start(self) -> None:
        """
        Raises:
            StoreUnavailable: the server cannot be reached, or refuses us.
            StoreTooNew: a newer Toolyard migrated the database.
            StoreError: the server is older than 14, or the database is not UTF-8.
        """
        await asyncio.to_thread(self._check_and_migrate)
        self._open = True
        for worker in self._workers:
            worker.start()

    async def tx(self, fn: Callable[[Connection], T]) -> T:
        """Carried out even when the caller is cancelled while it waits."""
        return await self._queued(self._writes, fn)

    def submit(self, fn: Callable[[Connection], object]) -> None:
        if not self._open:
            raise closed(self.location)
        self._submitted.put((fn, None))

    async def flush(self) -> None:
        await self._queued(self._submitted, _nothing)  # that queue is in order

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """All statements of `fn` see the same state of the database."""
        return await self._queued(self._reads, fn)

    async def hint_connection(self) -> psycopg.AsyncConnection:
        """A direct connection of the caller's own, in autocommit mode, for LISTEN and NOTIFY. Not for rows.

        Raises:
            psycopg.Error: none to be had.
        """
        return await self._address.connect_async()

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        await asyncio.to_thread(self._stop)

    async def _queued(self, queue: JobQueue, fn: Callable[[Connection], T]) -> T:
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if not self._open:
            raise closed(self.location)
        queue.put((fn, cast("Waiter", waiter)))
        return await waiter

    def _worker(
        self, queue: JobQueue, name: str, patience: float, *, group: int = 1, read_only: bool = False
    ) -> Worker:
        def take() -> list[Job] | None:
            return _with_what_waits(queue, group)

        return Worker(self._address, take, name, patience=patience, read_only=read_only, closing=self._closing)

    def _stop(self) -> None:
        self._closing.set()
        for queue, count in ((self._writes, len(self._workers)), (self._reads, READERS), (self._submitted, 1)):
            for _ in range(count):
                queue.put(None)
        for worker in self._workers:
            worker.join()
        for queue in (self._writes, self._reads, self._submitted):
            refuse_the_rest(queue, self.location)

    def _check_and_migrate(self) -> None:
        raw = self._address.connect_at_start(PATIENCE)
        try:
            self._check_server(raw)
            connection = PostgresConnection(raw, self.location)
            connection.begin()
            connection.execute("SELECT pg_advisory_xact_lock(?)", _MIGRATION_LOCK)
            migrate(connection, self._migrations, run=lambda script: _run_script(raw, script), location=self.location)
            connection.commit()
        except psycopg.Error as error:
            raise translated(error, self.location) from error
        finally:
            raw.close()

    def _check_server(self, raw: psycopg.Connection) -> None:
        version = raw.info.server_version
        if version < _OLDEST_SERVER:
            raise StoreError(
                f"The server of {self.location} is PostgreSQL {version // 10000}.",
                suggestion="Toolyard needs PostgreSQL 14 or newer.",
            )
        encoding = raw.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(
                f"The database {self.location} is encoded as {encoding}.",
                suggestion="Create it with ENCODING 'UTF8' TEMPLATE template0.",
            )


def _with_what_waits(queue: JobQueue, largest: int) -> list[Job] | None:
    """One job, and what else is queued up to `largest`; None at the end."""
    first = queue.get()
    if first is None:
        return None
    batch = [first]
    while len(batch) < largest:
        try:
            job = queue.get_nowait()
        except Empty:
            break
        if job is None:
            queue.put(None)  # the end comes after this batch
            break
        batch.append(job)
    return batch


def _run_script(raw: psycopg.Connection, script: str) -> None:
    raw.execute(script.encode())


def _nothing(_: Connection) -> None:
    return None
