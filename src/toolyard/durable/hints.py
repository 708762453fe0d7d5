"""Hints: "something about this topic was committed, look". Never what is there, and never to be relied upon.

Topics are `job:<id>`, `call:<id>`, `session:<id>`, `approvals`. All on the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager

FALLBACK = 1.0
"""Seconds after which a watcher looks in any case, because a hint may be lost."""
MOST_LOOKS = 500.0
"""Fallback looks per second of all watchers of a node together: with more watchers each looks less often."""
EVERYTHING = "*"
"""The topic that wakes all: hints may have been missed."""


class Waiter:
    """One who watches. Begin to watch, then read, then `wait`: a hint in between is kept."""

    def __init__(self, fallback: Callable[[], float]) -> None:
        self._fallback = fallback
        self._hinted = asyncio.Event()

    async def wait(self, timeout: float | None = None) -> bool:
        """Until a hint came (True), `timeout` seconds passed, or the fallback did (False). Read again in any case."""
        longest = self._fallback()
        try:
            async with asyncio.timeout(longest if timeout is None else min(timeout, longest)):
                await self._hinted.wait()
        except TimeoutError:
            return False
        self._hinted.clear()
        return True

    def wake(self) -> None:
        self._hinted.set()


class Watchers:
    """Who watches what in this process."""

    def __init__(self, fallback: float = FALLBACK) -> None:
        self._fallback = fallback
        self._waiters: dict[str, set[Waiter]] = {}
        self._count = 0

    @asynccontextmanager
    async def watch(self, *topics: str) -> AsyncGenerator[Waiter, None]:
        waiter = Waiter(self._pause)
        for topic in topics:
            self._waiters.setdefault(topic, set()).add(waiter)
        self._count += 1
        try:
            yield waiter
        finally:
            self._count -= 1
            for topic in topics:
                self._leave(topic, waiter)

    def wake(self, topics: Iterable[str]) -> None:
        for topic in topics:
            if topic == EVERYTHING:
                for waiters in self._waiters.values():
                    _wake_all(waiters)
            else:
                _wake_all(self._waiters.get(topic, ()))

    def _pause(self) -> float:
        return max(self._fallback, self._count / MOST_LOOKS)

    def _leave(self, topic: str, waiter: Waiter) -> None:
        waiters = self._waiters.get(topic)
        if waiters is not None:
            waiters.discard(waiter)
            if not waiters:
                del self._waiters[topic]


def _wake_all(waiters: Iterable[Waiter]) -> None:
    for waiter in waiters:
        waiter.wake()
