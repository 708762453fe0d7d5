"""The HTTP answer to one request: plain JSON when it comes soon, an event stream once it has to be more.

It becomes a stream when something must be said before the answer (progress), or when the answer takes long, so that
keep-alive comments can hold the connection open. Nothing here costs a quick request more than one timer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from toolyard.faces.mcp.face import Running
from toolyard.faces.mcp.wire import KEEP_ALIVE, REQUEST_CANCELLED, RequestId, RpcError, event

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
HeaderList = list[tuple[bytes, bytes]]

ATTEND_AFTER = 0.05
"""Seconds before anybody looks whether the client is still there."""
STREAM_AFTER = 2.0
"""Seconds before a silent answer becomes a stream, where the client accepts one."""
KEEP_ALIVE_EVERY = 15.0
MOST_WAITING = 1000
"""Frames that wait for a client that reads slowly; further ones (progress) are dropped."""

_STREAM_HEADERS: HeaderList = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
_JSON = (b"content-type", b"application/json")


class Exchange:
    __slots__ = (
        "_closing",
        "_frames",
        "_may_stream",
        "_news",
        "_receive",
        "_running",
        "_send",
        "_timer",
        "_watch_disconnect",
        "_watcher",
        "_writer",
        "json",
    )

    def __init__(
        self,
        receive: Receive,
        send: Send,
        running: Running,
        *,
        json: bool,
        may_stream: bool,
        disconnect_cancels: bool,
    ) -> None:
        """`json`: the client accepts plain JSON. `disconnect_cancels`: in the modern era, and for standing streams."""
        self._receive = receive
        self._send = send
        self._running = running
        self.json = json
        self._may_stream = may_stream
        self._watch_disconnect = disconnect_cancels
        self._frames: deque[bytes] = deque()
        self._closing = False
        self._news: asyncio.Event | None = None
        self._writer: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(ATTEND_AFTER, self._attend)

    def push(self, frame: bytes) -> None:
        """Send one frame before the answer, where the client can take it."""
        if self._may_stream and not self._running.cancelled and len(self._frames) < MOST_WAITING:
            self._frames.append(event(frame))
            self.open()

    def open(self) -> None:
        """Become a stream now."""
        if self._closing:
            return
        if self._news is None:
            self._news = asyncio.Event()
            self._writer = asyncio.create_task(self._write(self._news))
        self._news.set()

    async def finish(self, status: int, frame: bytes | None, headers: HeaderList, request_id: RequestId | None) -> None:
        """Send the answer; None when its client has cancelled the request and is owed none."""
        self._timer.cancel()
        self._closing = True
        if self._writer is not None and self._news is not None:
            if frame is not None:
                self._frames.append(event(frame))
            self._news.set()
            await self._writer
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        elif frame is None and self._may_stream:
            await reply(self._send, 200, b"", [*_STREAM_HEADERS, *headers])
        elif frame is None:
            cancelled = RpcError(REQUEST_CANCELLED, "The request was cancelled.")
            await reply(self._send, 200, cancelled.to_bytes(request_id), [_JSON, *headers])
        elif self.json or status != 200:
            await reply(self._send, status, frame, [_JSON, *headers])
        else:
            await reply(self._send, status, event(frame), [*_STREAM_HEADERS, *headers])

    def close(self) -> None:
        """Leave nothing behind, however the request ended."""
        self._timer.cancel()
        for task in (self._watcher, self._writer):
            if task is not None:
                task.cancel()

    def _attend(self) -> None:
        if self._watch_disconnect:
            self._watcher = asyncio.create_task(self._watch())
        if self._may_stream:
            self._timer = asyncio.get_running_loop().call_later(STREAM_AFTER - ATTEND_AFTER, self.open)

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        await self._running.end()

    async def _write(self, news: asyncio.Event) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": list(_STREAM_HEADERS)})
        while True:
            news.clear()
            while self._frames:
                await self._body(self._frames.popleft())
            if self._closing:
                return
            try:
                async with asyncio.timeout(KEEP_ALIVE_EVERY):
                    await news.wait()
            except TimeoutError:
                await self._body(KEEP_ALIVE)

    async def _body(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})


async def reply(send: Send, status: int, body: bytes, headers: HeaderList) -> None:
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def reply_json(send: Send, status: int, body: bytes, headers: HeaderList | None = None) -> None:
    await reply(send, status, body, [_JSON, *(headers or [])])
