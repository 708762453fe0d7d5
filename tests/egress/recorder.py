"""A real HTTP/1.1 server on loopback that keeps every byte of what arrives, and answers what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Recorded:
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The one value of a header; a header that came twice is an error."""
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(found) <= 1, f"{name} came {len(found)} times"
        return found[0] if found else None


Answer = Callable[[Recorded, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Recorder:
    url: str
    requests: list[Recorded] = field(default_factory=list)
    connections: int = 0
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client ends a connection."""

    @property
    def last(self) -> Recorded:
        return self.requests[-1]


def answering(
    status: int = 200,
    body: bytes = b"{}",
    content_type: str | None = "application/json",
    headers: dict[str, str] | None = None,
) -> Answer:
    async def answer(_: Recorded, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(status, body, content_type, headers))

    return answer


def plain(
    status: int = 200,
    body: bytes = b"{}",
    content_type: str | None = "application/json",
    headers: dict[str, str] | None = None,
) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if status not in (204, 304):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def recording(answer: Answer | None = None) -> AsyncIterator[Recorder]:
    recorder = Recorder("")
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        recorder.connections += 1
        try:
            while (request := await _read(reader)) is not None:
                recorder.requests.append(request)
                await (answer or answering())(request, writer)
                await writer.drain()
            recorder.disconnected.set()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    recorder.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield recorder
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Recorded | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))
    length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
    return Recorded(method, target, headers, await reader.readexactly(length))
