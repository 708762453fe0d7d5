"""Pages that keep themselves up to date: one stream of server-sent events per page, each event a part drawn anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress

from starlette.responses import Response, StreamingResponse

from toolyard.durable.events import Bus, Subscription

KEEP_ALIVE = 15.0
LONGEST_STREAM = 600.0
"""Seconds; then the browser connects again, and its login is looked at again."""
_STILL_HERE = b": still here\n\n"

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def frame(html: str) -> bytes:
    """One message: a `data:` line for each line of the markup."""
    return "".join(f"data: {line}\n" for line in html.splitlines()).encode() + b"\n"


def event_stream(parts: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(parts, media_type="text/event-stream", headers=_HEADERS)


def follow(
    bus: Bus,
    topics: Sequence[str],
    draw: Callable[[], Awaitable[str]],
    *,
    at_most_every: float,
    again: float | None = None,
) -> Response:
    """Draw once at the start, so that a reconnect shows what was missed, and again when something happened.

    `again`: seconds after which it is drawn though nothing happened, for pages that show passing time.
    """
    return event_stream(_follow(bus, topics, draw, at_most_every, again))


async def _follow(
    bus: Bus, topics: Sequence[str], draw: Callable[[], Awaitable[str]], at_most_every: float, again: float | None
) -> AsyncIterator[bytes]:
    until = time.monotonic() + LONGEST_STREAM
    async with bus.subscribe(topics) as events:
        changed = asyncio.Event()
        reader = asyncio.create_task(_mark(events, changed))
        try:
            shown = await draw()
            yield frame(shown)
            while time.monotonic() < until and not reader.done():
                try:
                    async with asyncio.timeout(again or KEEP_ALIVE):
                        await changed.wait()
                except TimeoutError:
                    if again is None:
                        yield _STILL_HERE
                        continue
                changed.clear()
                before, shown = shown, await draw()
                yield frame(shown) if shown != before else _STILL_HERE
                await asyncio.sleep(at_most_every)
        finally:
            reader.cancel()
            with suppress(asyncio.CancelledError):
                await reader


async def _mark(events: Subscription, changed: asyncio.Event) -> None:
    async for _ in events:
        changed.set()
    changed.set()  # the bus closed, or we were too slow: wake up and end the stream
