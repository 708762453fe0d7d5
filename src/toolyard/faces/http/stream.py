"""Server-sent events: what every stream does, and the operator's stream of the bus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolyard.core.clock import rfc3339
from toolyard.core.json import dumps
from toolyard.durable.events import Bus, Event, Subscription

T = TypeVar("T")

KEEP_ALIVE_EVERY = 15.0
SLOWEST_READ = 30.0
"""Seconds one write may take before the reader counts as gone."""
RETRY = b"retry: 2000\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

StillAllowed = Callable[[], Awaitable[bool]]
"""Asked with each keep-alive, so that a stream does not outlive its key."""


class EventStream(Response):
    """Events of the bus as they happen, from the number after `after` on, with a comment each 15 s.

    `event: missed` says that events before the next one are lost to this reader, so it should look again at what it
    shows. A reader that is too slow is disconnected and comes back with `Last-Event-ID`.
    """

    def __init__(
        self,
        bus: Bus,
        topics: Iterable[str],
        *,
        after: int | None,
        still_allowed: StillAllowed,
        keep_alive_every: float = KEEP_ALIVE_EVERY,
    ) -> None:
        super().__init__(media_type="text/event-stream")
        self._bus = bus
        self._topics = topics
        self._after = after
        self._still_allowed = still_allowed
        self._keep_alive_every = keep_alive_every

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._bus.subscribe(self._topics, after=self._after) as events:
            await send_live(self._chunks(events), receive, send)

    async def _chunks(self, events: Subscription) -> AsyncGenerator[bytes, None]:
        yield RETRY
        if events.missed:
            yield b"event: missed\ndata: {}\n\n"
        async with aclosing(with_pauses(events, self._keep_alive_every)) as upcoming:
            async for event in upcoming:
                if event is not None:
                    yield _line(event)
                elif await self._still_allowed():
                    yield KEEP_ALIVE
                else:
                    return


async def send_live(chunks: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> None:
    """Send chunks as they come, until there are no more, the reader goes, or it is too slow for one of them."""
    writing = asyncio.create_task(_write(chunks, send))
    listening = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait((writing, listening), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (writing, listening):
            task.cancel()
        await asyncio.gather(writing, listening, return_exceptions=True)
        await chunks.aclose()
    if not writing.cancelled():
        _raise_unless_gone(writing.exception())


async def with_pauses(items: AsyncIterator[T], longest: float) -> AsyncGenerator[T | None, None]:
    """The items, and None whenever there was none for `longest` seconds."""
    upcoming: asyncio.Task[T] | None = None
    try:
        while True:
            if upcoming is None:
                upcoming = asyncio.create_task(_next(items))
            done, _ = await asyncio.wait((upcoming,), timeout=longest)
            if not done:
                yield None
                continue
            try:
                item = upcoming.result()
            except StopAsyncIteration:
                return
            finally:
                upcoming = None
            yield item
    finally:
        if upcoming is not None:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _write(chunks: AsyncIterator[bytes], send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    async for chunk in chunks:
        async with asyncio.timeout(SLOWEST_READ):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _line(event: Event) -> bytes:
    data = dumps({**event.data, "topic": event.topic, "at": rfc3339(event.at)})
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.id, event.topic.encode(), data)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _raise_unless_gone(error: BaseException | None) -> None:
    """A reader that went away or stalled is no error of ours."""
    if error is not None and not isinstance(error, TimeoutError | OSError):
        raise error
