"""Engines for the tests of the durable core: several on one store, or on several stores over one database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from toolyard.durable.engine import Engine
from toolyard.durable.jobs import JobRow, NewJob, get
from toolyard.store import Store, open_store

T = TypeVar("T")


@asynccontextmanager
async def running(*engines: Engine) -> AsyncIterator[None]:
    """Started, and stopped in order afterwards; one that was abandoned stays so."""
    for engine in engines:
        await engine.start()
    try:
        yield
    finally:
        for engine in engines:
            await engine.stop()


@asynccontextmanager
async def another_store(database: str, store: Store) -> AsyncIterator[Store]:
    """A second node's store: a connection pool of its own on PostgreSQL, the same object on SQLite."""
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


async def insert(engine: Engine, job_id: str, kind: str = "work", **more: object) -> None:
    assert await engine.submit(NewJob(job_id, kind, **more))  # type: ignore[arg-type]


async def until(condition: Callable[[], object]) -> None:
    """For conditions of this process's memory only. Bounded by the test's own limit."""
    while not condition():
        await asyncio.sleep(0.001)
