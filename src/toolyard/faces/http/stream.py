"""Server-sent events of the bus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolyard.core.clock import rfc3339
from toolyard.core.json import dumps
from toolyard.durable.events import Bus, Event, Subscription

KEEP_ALIVE_EVERY = 15.0
SLOWEST_READ = 30.0
"""Seconds one write may take before the reader counts as gone."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class EventStream(Response):
    """Events as they happen, from the number after `after` on, with a comment each 15 s.

    `event: missed` says that events before the next one are lost to this reader, so it should look again at what it
    shows. A reader that is too slow is disconnected and comes back with `Last-Event-ID`. `still_allowed` is asked with
    each keep-alive, so that a stream does not outlive its key.
    """

    def __init__(
        self,
        bus: Bus,
        topics: Iterable[str],
        *,
        after: int | None,
        still_allowed: Callable[[], Awaitable[bool]],
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
            writing = asyncio.create_task(self._write(events, send))
            listening = asyncio.create_task(_gone(receive))
            try:
                await asyncio.wait((writing, listening), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (writing, listening):
                    task.cancel()
                await asyncio.gather(writing, listening, return_exceptions=True)
            if writing.done() and not writing.cancelled():
                _raise_unless_gone(writing.exception())

    async def _write(self, events: Subscription, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        async for chunk in self._chunks(events):
            async with asyncio.timeout(SLOWEST_READ):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self, events: Subscription) -> AsyncGenerator[bytes, None]:
        yield b"retry: 2000\n\n"
        if events.missed:
            yield b"event: missed\ndata: {}\n\n"
        while True:
            try:
                async with asyncio.timeout(self._keep_alive_every):
                    event = await anext(events)
            except TimeoutError:
                if not await self._still_allowed():
                    return
                yield b": keep-alive\n\n"
            except StopAsyncIteration:
                return
            else:
                yield _line(event)


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
