"""The in-process event bus: what happens now, for those who watch. Nothing here is the record of anything."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from toolyard.core.clock import Clock, SystemClock
from toolyard.core.json import JsonObject

REMEMBERED = 1024
"""Events kept for watchers that reconnect."""


@dataclass(frozen=True, slots=True)
class Event:
    """`id` grows by one with each event; it starts at the process's start in microseconds, so restarts keep order."""

    id: int
    topic: str
    data: JsonObject
    at: float


class Subscription(AsyncIterator[Event]):
    """Iterate it for the events of its topics. It ends when the bus closes, or when it fell behind (`dropped`)."""

    def __init__(self, topics: frozenset[str], size: int) -> None:
        self.dropped = False
        self.missed = False
        """True when events between the number asked for and the first one given are no longer remembered."""
        self._topics = topics
        self._size = size
        self._waiting: deque[Event] = deque()
        self._something = asyncio.Event()
        self._ended = False

    def wants(self, topic: str) -> bool:
        return topic in self._topics

    def offer(self, event: Event) -> bool:
        """Queue an event; False when the reader is too slow and has been dropped."""
        if len(self._waiting) >= self._size:
            self.dropped = True
            self.end()
            return False
        self._waiting.append(event)
        self._something.set()
        return True

    def end(self) -> None:
        self._ended = True
        self._waiting.clear()
        self._something.set()

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._something.clear()
            await self._something.wait()
        return self._waiting.popleft()


class Bus:
    """Publish and subscribe within one process, on one event loop's thread."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._next = int(self._clock.now() * 1_000_000)
        self._recent: deque[Event] = deque(maxlen=REMEMBERED)
        self._forgotten = self._next - 1
        """The newest event that is no longer remembered."""
        self._subscriptions: set[Subscription] = set()
        self._listeners: dict[str, list[Callable[[Event], None]]] = {}
        self._closed = False

    def publish(self, topic: str, data: JsonObject) -> None:
        """Tell everybody who watches `topic`. Never waits."""
        event = Event(self._next, topic, data, self._clock.now())
        self._next += 1
        if len(self._recent) == REMEMBERED:
            self._forgotten = self._recent[0].id
        self._recent.append(event)
        for listener in self._listeners.get(topic, ()):
            listener(event)
        if self._subscriptions:
            slow = [s for s in self._subscriptions if s.wants(topic) and not s.offer(event)]
            self._subscriptions.difference_update(slow)

    def is_watched(self, topic: str) -> bool:
        """Whether anybody would see an event of this topic right now (listeners apart)."""
        return any(subscription.wants(topic) for subscription in self._subscriptions)

    def listen(self, topic: str, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call `listener` within `publish`: for counters. It must be quick and must not raise. Returns its undoing."""
        listeners = self._listeners.setdefault(topic, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    @asynccontextmanager
    async def subscribe(
        self, topics: Iterable[str], *, size: int = 256, after: int | None = None
    ) -> AsyncGenerator[Subscription, None]:
        """Watch topics from now on, or from the event after number `after` as far as it is remembered.

        A subscriber with `size` events waiting is dropped: its iteration ends.
        """
        subscription = Subscription(frozenset(topics), size)
        if after is not None:
            subscription.missed = after < self._forgotten or after >= self._next
            wanted = [event for event in self._recent if event.id > after and subscription.wants(event.topic)]
            for event in wanted[-size:]:
                subscription.offer(event)
            subscription.missed = subscription.missed or len(wanted) > size
        if self._closed:
            subscription.end()
        else:
            self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def close(self) -> None:
        """End every subscription, so that a server with open event streams can stop."""
        self._closed = True
        for subscription in self._subscriptions:
            subscription.end()
        self._subscriptions.clear()
