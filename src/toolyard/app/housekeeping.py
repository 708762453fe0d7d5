"""What a node does on the side: index the audit log's text, delete what is past its retention."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from toolyard.core.clock import Clock
from toolyard.core.errors import StoreError
from toolyard.store import calls as call_rows
from toolyard.store.base import Store
from toolyard.store.blobs import Blobs
from toolyard.store.call_texts import index_some

_log = structlog.get_logger("toolyard.housekeeping")

INDEX_EVERY = 10.0
RETAIN_EVERY = 3600.0
_BATCH = 500
_SETTLED_AFTER = 10.0
"""Seconds after which a row number that was taken has been committed."""
_DAY = 86_400.0


class Housekeeping:
    """Two loops that survive any error of the store: they log it and try again."""

    def __init__(self, store: Store, blobs: Blobs, clock: Clock, retention_days: int | None) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._retention_days = retention_days
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks.append(asyncio.create_task(self._repeat(self.index, INDEX_EVERY), name="index calls"))
        if self._retention_days is not None:
            self._tasks.append(asyncio.create_task(self._repeat(self.retain, RETAIN_EVERY), name="retention"))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def index(self) -> None:
        """Bring the text index up to date, in small transactions."""
        while True:
            older_than = self._clock.now() - _SETTLED_AFTER
            looked_at = await self._store.tx(partial(index_some, at_most=_BATCH, older_than=older_than))
            if looked_at < _BATCH:
                return

    async def retain(self) -> None:
        """Delete calls past their retention, row by row in batches, and the blobs of those days."""
        if self._retention_days is None:
            return
        limit = self._clock.now() - self._retention_days * _DAY
        while await self._store.tx(lambda c: call_rows.delete_before(c, limit, at_most=_BATCH)):
            pass
        oldest_kept = time.strftime("%Y-%m-%d", time.gmtime(limit))
        past = [name for name in await self._blobs.names("calls") if name.split("/")[1] < oldest_kept]
        await self._blobs.delete(past)

    async def _repeat(self, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await work()
            except StoreError as error:
                _log.warning("housekeeping failed and will be tried again", error=str(error))
