"""What operators decide on one node comes into force on the others: settings of tools, cluster policies, servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from toolyard.core.clock import Clock
from toolyard.core.errors import ToolyardError
from toolyard.durable.engine import Engine

_log = structlog.get_logger("toolyard.app")

TOPIC = "settings"
READ_AGAIN_AFTER = 30.0
"""Seconds without a hint, as one may be lost."""


class InStep:
    """`tell` after each change. Every node, this one too, reads again: what is read last is what was written last."""

    def __init__(self, engine: Engine, clock: Clock, read_again: Callable[[], Awaitable[None]]) -> None:
        self._engine = engine
        self._clock = clock
        self._read_again = read_again
        self._task: asyncio.Task[None] | None = None

    def tell(self) -> None:
        self._engine.hint(TOPIC)

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch(), name="settings in step")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _watch(self) -> None:
        read_at = self._clock.monotonic()
        async with self._engine.watch(TOPIC) as waiter:
            while True:
                hinted = await waiter.wait()
                if not hinted and self._clock.monotonic() - read_at < READ_AGAIN_AFTER:
                    continue
                read_at = self._clock.monotonic()
                try:
                    await self._read_again()
                except ToolyardError as error:
                    _log.warning("settings could not be read again", cause=str(error))
