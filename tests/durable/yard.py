"""Engines for the tests of the durable core: several on one store, or on several stores over one database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from toolyard.durable.engine import Engine
from toolyard.durable.jobs import JobRow, NewJob, get
from toolyard.store import Connection, Store, open_store

T = TypeVar("T")


@asynccontextmanager
async def running(*engines: Engine) -> AsyncGenerator[None, None]:
    """Started, and stopped in order afterwards, except those that were stopped or abandoned. Bounded."""
    async with asyncio.timeout(20):
        for engine in engines:
            await engine.start()
        try:
            yield
        finally:
            for engine in engines:
                await engine.stop()


@asynccontextmanager
async def another_store(database: str, store: Store) -> AsyncGenerator[Store, None]:
    """A second node's store: with connections of its own on PostgreSQL, the same object on SQLite."""
    if store.dialect == "sqlite":
        yield store
        return
    other = open_store(database)
    await other.start()
    try:
        yield other
    finally:
        await other.close()


async def row(store: Store, job_id: str) -> JobRow:
    found = await store.read(lambda c: get(c, job_id))
    assert found is not None
    return found


async def submit(engine: Engine, *job_ids: str, kind: str = "work", session_id: str | None = None) -> None:
    for job_id in job_ids:
        assert await engine.submit(NewJob(job_id, kind, {"job": job_id}, session_id=session_id))


async def until_state(engine: Engine, job_id: str, state: str) -> JobRow:
    """The job once it is in `state`."""
    async with engine.watch(f"job:{job_id}") as waiter:
        while (found := await row(engine.store, job_id)).state != state:
            await waiter.wait(0.02)
    return found


async def add_session(store: Store, session_id: str) -> None:
    def insert(c: Connection) -> None:
        c.execute("INSERT INTO sessions (id, principal, created) VALUES (?, 'key:test', ?)", session_id, c.now())

    await store.tx(insert)


class CutOff:
    """A store whose database this node cannot reach while `away` is set: its transactions wait, as in a network that
    has been cut or a process that has been stopped."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.dialect = store.dialect
        self.location = store.location
        self._reachable = asyncio.Event()
        self._reachable.set()

    def cut(self) -> None:
        self._reachable.clear()

    def mend(self) -> None:
        self._reachable.set()

    async def start(self) -> None: ...

    async def tx(self, fn: Callable[[Connection], T]) -> T:
        await self._reachable.wait()
        return await self._store.tx(fn)

    def submit(self, fn: Callable[[Connection], object]) -> None:
        self._store.submit(fn)

    async def flush(self) -> None:
        await self._store.flush()

    async def read(self, fn: Callable[[Connection], T]) -> T:
        await self._reachable.wait()
        return await self._store.read(fn)

    async def hint_connection(self) -> object:
        return await self._store.hint_connection()  # type: ignore[attr-defined]

    async def close(self) -> None: ...
