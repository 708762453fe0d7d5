"""Delivers notices in the background, with patience that ends where the decision's deadline does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

import structlog

from toolyard.core.clock import Clock, SystemClock
from toolyard.notify.channels import Channel, NotDelivered
from toolyard.notify.notice import Notice

_log = structlog.get_logger("toolyard.notify")

MOST_ATTEMPTS = 8
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
MOST_AT_ONCE = 8
MOST_WAITING = 1000


class Notifier:
    """`tell` returns at once. A flood beyond 1,000 undelivered notices is dropped and logged, never waited for."""

    def __init__(
        self,
        channels: Sequence[Channel],
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._channels = tuple(channels)
        self._clock: Clock = clock or SystemClock()
        self._sleep = sleep
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        """Whether anybody is told at all."""
        return bool(self._channels)

    def tell(self, notice: Notice) -> None:
        for channel in self._channels:
            if len(self._tasks) >= MOST_WAITING:
                _log.error("too many notifications wait; one is dropped", channel=channel.name, approval=notice.id)
                continue
            task = asyncio.create_task(self._deliver(channel, notice), name=f"notify {notice.id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def delivered(self) -> None:
        """Wait until everything told so far is delivered or given up."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _deliver(self, channel: Channel, notice: Notice) -> None:
        for attempt in range(1, MOST_ATTEMPTS + 1):
            try:
                async with self._places:
                    await channel.send(notice)
            except NotDelivered as failure:
                pause = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE) * random.uniform(0.8, 1.2)  # noqa: S311
                too_late = self._clock.now() + pause >= notice.deadline
                if failure.final or too_late or attempt == MOST_ATTEMPTS:
                    self._give_up(channel, notice, attempt, str(failure))
                    return
                await self._sleep(pause)
            else:
                return

    def _give_up(self, channel: Channel, notice: Notice, attempts: int, cause: str) -> None:
        _log.error(
            "a notification was not delivered; the request still waits in the console",
            channel=channel.name,
            approval=notice.id,
            attempts=attempts,
            cause=cause,
        )
