"""Hints: "something about this topic was committed, look". Never what is there, and never to be relied upon.

Topics are `job:<id>`, `call:<id>`, `session:<id>`, `approvals`. All on the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import ClassVar, Protocol, TypeAlias

FALLBACK = 1.0
"""Seconds after which a watcher looks in any case, because a hint may be lost."""
MOST_LOOKS = 500.0
"""Fallback looks per second of all watchers of a node together: with more watchers each looks less often."""
EVERYTHING = "*"
"""The topic that wakes all: hints may have been missed."""
Told: TypeAlias = Callable[[Iterable[str]], None]
"""What is called with the topics that another node said."""


class Remote(Protocol):
    """Hints to and from the other engines of a database."""

    async def start(self) -> None: ...
    def send(self, topics: Iterable[str]) -> None: ...
    async def close(self) -> None: ...


class Neighbours:
    """`Remote` for SQLite, whose file belongs to one process: the other engines, if any, are in it too."""

    _told: ClassVar[dict[str, dict[str, Told]]] = {}
    """By the store's location, then by node id."""

    def __init__(self, location: str, node_id: str, told: Told) -> None:
        self._location = location
        self._node_id = node_id
        self._told_here = told

    @property
    def living(self) -> frozenset[str]:
        """Ids of the nodes in this process; any other node in the file is dead."""
        return frozenset(self._told.get(self._location, ()))

    async def start(self) -> None:
        self._told.setdefault(self._location, {})[self._node_id] = self._told_here

    def send(self, topics: Iterable[str]) -> None:
        for node_id, told in self._told.get(self._location, {}).items():
            if node_id != self._node_id:
                told(topics)

    async def close(self) -> None:
        engines = self._told.get(self._location, {})
        engines.pop(self._node_id, None)
        if not engines:
            self._told.pop(self._location, None)


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
