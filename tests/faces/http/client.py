"""The face in process: a client for whole answers, and one that reads a stream as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from starlette.types import ASGIApp, Message

BASE = "http://127.0.0.1:8420"


def client_of(face: ASGIApp, *, key: str | None = None, address: str = "127.0.0.1") -> httpx2.AsyncClient:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    transport = httpx2.ASGITransport(face, client=(address, 50000))
    return httpx2.AsyncClient(transport=transport, base_url=BASE, headers=headers)


class Stream:
    """An answer that is still being sent."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.started = asyncio.Event()
        self.ended = asyncio.Event()
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._text = ""

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
            self.started.set()
        else:
            await self._chunks.put(message.get("body", b""))
            if not message.get("more_body", False):
                self.ended.set()

    async def until(self, text: str) -> str:
        """All that came up to and including `text`, taken away."""
        async with asyncio.timeout(5):
            while text not in self._text:
                self._text += (await self._chunks.get()).decode()
        found, _, self._text = self._text.partition(text)
        return found + text


@asynccontextmanager
async def streaming(
    face: ASGIApp, path: str, *, headers: Mapping[str, str] | None = None, query: str = ""
) -> AsyncIterator[Stream]:
    """GET `path`; leaving the block disconnects."""
    stream, gone = Stream(), asyncio.Event()

    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    given = {"host": "127.0.0.1:8420", **(headers or {})}
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8420),
    }
    answering = asyncio.create_task(face(scope, receive, stream.take))  # type: ignore[arg-type]
    try:
        async with asyncio.timeout(10):
            await stream.started.wait()
        yield stream
    finally:
        gone.set()
        async with asyncio.timeout(5):
            await answering
