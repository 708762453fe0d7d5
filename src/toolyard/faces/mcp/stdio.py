"""The same core over stdin and stdout, one JSON-RPC message a line, for `toolyard mcp`.

The era is decided for each request as over HTTP, only that the connection itself is the legacy session: probes with
`server/discover` and with `initialize` are both answered. While this serves, file descriptor 1 leads to stderr, so that
a stray print cannot break the protocol.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import structlog

from toolyard.catalog import Server
from toolyard.core.errors import NotFound
from toolyard.core.principal import LOCAL_OPERATOR
from toolyard.faces.mcp.asking import answered
from toolyard.faces.mcp.classify import NO_META, capabilities_in, check_version, classify, meta_of, params_of
from toolyard.faces.mcp.edge import MOST_BODY_BYTES, answer
from toolyard.faces.mcp.face import DEFAULT_SERVER, Context, Face, FaceApp, Running
from toolyard.faces.mcp.methods import method_for
from toolyard.faces.mcp.sessions import Session
from toolyard.faces.mcp.subscriptions import list_changed, session_followed
from toolyard.faces.mcp.wire import (
    INVALID_REQUEST,
    META_VERSION,
    Era,
    RequestId,
    RpcError,
    parse,
    request_id_of,
)

GRACE = 1.5
"""Seconds that calls under way have to end after stdin has closed."""
MOST_WAITING_LINES = 64
_log = structlog.stdlib.get_logger("toolyard.faces.mcp")

Write = Callable[[bytes], None]


async def serve_stdio(app: FaceApp, server_id: str = DEFAULT_SERVER) -> None:
    """Serve one client on this process's stdin and stdout until stdin closes.

    Raises:
        NotFound: there is no such server.
    """
    if server_id not in app.servers:
        raise NotFound(f"There is no server {server_id!r}.", suggestion="See `toolyard servers`.")
    with _own_stdout() as wire:
        writer = LineWriter(wire)
        try:
            await serve_lines(app, server_id, sys.stdin.buffer, writer.put)
        finally:
            await asyncio.to_thread(writer.close)


async def serve_lines(app: FaceApp, server_id: str, source: BinaryIO, write: Write) -> None:
    """Answer every line of `source` until it ends; requests run side by side."""
    connection = StdioConnection(Face(app), server_id, write)
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING_LINES)
    threading.Thread(
        target=_read_lines, args=(source, lines, asyncio.get_running_loop()), name="mcp-stdin", daemon=True
    ).start()
    try:
        while (line := await lines.get()) is not None:
            if line.strip():
                await connection.received(line)
        await connection.drain()
    finally:
        await connection.close()


class StdioConnection:
    """One client. What it may refer back to, its session and its running requests, lives as long as it does."""

    def __init__(self, face: Face, server_id: str, write: Write) -> None:
        self._face = face
        self._server_id = server_id
        self._write = write
        self._session: Session | None = None
        self._running: dict[RequestId, Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._following: asyncio.Task[None] | None = None

    async def received(self, line: bytes) -> None:
        """Take one line. Whatever is wrong with it is answered, and nothing is raised."""
        request_id: RequestId | None = None
        try:
            if len(line) > MOST_BODY_BYTES:
                raise RpcError(INVALID_REQUEST, f"The message is larger than {MOST_BODY_BYTES} bytes.")
            message = parse(line)
            if "method" not in message:
                await answered(self._face.app, message, LOCAL_OPERATOR)
                return
            if "id" not in message:
                await self._notified(message["method"], params_of(message))
                return
            request_id = request_id_of(message)
            ctx, method, params = self._context(message, request_id)
        except RpcError as error:
            self._write(error.to_bytes(request_id))
            return
        self._running[request_id] = ctx.running
        task = asyncio.create_task(self._answer(ctx, method, params))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Stdin has closed: end standing streams, and give calls a moment to finish."""
        self._face.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=GRACE)

    async def close(self) -> None:
        """Cancel what still runs, and give it a moment to be recorded as cancelled."""
        self._face.close()
        for running in list(self._running.values()):
            await running.end()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=GRACE)
        for task in (*self._tasks, self._following):
            if task is not None:
                task.cancel()

    def _context(self, message: Mapping[str, Any], request_id: RequestId) -> tuple[Context, str, dict[str, Any]]:
        method = message["method"]
        if not isinstance(method, str):
            raise RpcError(INVALID_REQUEST, "method must be a string.")
        params = params_of(message)
        meta = meta_of(params) if params else NO_META
        ctx = Context(
            face=self._face,
            era=Era.LEGACY,
            version="",
            principal=LOCAL_OPERATOR,
            server=self._server(),
            request_id=request_id,
            meta=meta,
            push=self._write,
        )
        if META_VERSION in meta:
            route = classify(method, meta, None, None)
            ctx.era, ctx.capabilities, ctx.version = Era.MODERN, capabilities_in(meta), check_version(route)
        elif method not in ("initialize", "ping"):
            ctx.session = self._session_of(method)
            ctx.version = ctx.session.version
        method_for(method, ctx.era)
        return ctx, method, params

    def _server(self) -> Server:
        server = self._face.app.servers.get(self._server_id)
        if server is None:
            raise RpcError(INVALID_REQUEST, f"The server {self._server_id!r} was removed.")
        return server

    def _session_of(self, method: str) -> Session:
        if self._session is None:
            raise RpcError(
                INVALID_REQUEST,
                f"{method} needs initialize first, or {META_VERSION!r} in params._meta of every request.",
            )
        return self._session

    async def _answer(self, ctx: Context, method: str, params: Mapping[str, Any]) -> None:
        try:
            _, frame = await answer(ctx, method, params)
            if method == "initialize" and ctx.session is not None:
                self._begin(ctx.session)
            if not ctx.running.cancelled:
                self._write(frame)
        finally:
            if self._running.get(ctx.request_id) is ctx.running:
                del self._running[ctx.request_id]

    def _begin(self, session: Session) -> None:
        self._session = session
        if self._following is None:
            self._following = asyncio.create_task(self._follow(session))

    async def _follow(self, session: Session) -> None:
        """Tell a legacy client about each change of its lists, and of the resources it follows."""
        server = self._server()
        subscription = self._face.changes.subscribe(server)
        async with session_followed(self._face, self._face.view(server), session, self._write):
            async for changed in subscription:
                for kind in sorted(changed):
                    self._write(list_changed(kind))

    async def _notified(self, method: object, params: Mapping[str, Any]) -> None:
        if method == "notifications/cancelled":
            request_id = params.get("requestId")
            running = self._running.get(request_id) if isinstance(request_id, str | int) else None
            if running is not None:
                await running.end()


class LineWriter:
    """Writes frames in a thread of its own, so that a client that does not read never blocks the loop."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="mcp-stdout", daemon=True)
        self._thread.start()

    def put(self, frame: bytes) -> None:
        self._frames.put(frame)

    def close(self) -> None:
        """Write what is left, for as long as somebody reads it."""
        self._frames.put(None)
        self._thread.join(GRACE)

    def _run(self) -> None:
        try:
            while (frame := self._frames.get()) is not None:
                self._target.write(frame + b"\n")
                if self._frames.empty():
                    self._target.flush()
        except (OSError, ValueError) as error:
            _log.info("the MCP client stopped reading", error=str(error))


def _read_lines(source: BinaryIO, lines: asyncio.Queue[bytes | None], loop: asyncio.AbstractEventLoop) -> None:
    """Runs in a thread, and waits where the loop is behind: what has not been taken yet stays in the pipe."""
    try:
        while line := source.readline(MOST_BODY_BYTES + 2):
            if not line.endswith(b"\n"):
                _skip_rest_of_line(source)
            asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
        asyncio.run_coroutine_threadsafe(lines.put(None), loop).result()
    except (RuntimeError, asyncio.CancelledError):
        return


def _skip_rest_of_line(source: BinaryIO) -> None:
    """Of a line that is too long, keep only what proves it."""
    while rest := source.readline(MOST_BODY_BYTES):
        if rest.endswith(b"\n"):
            return


@contextmanager
def _own_stdout() -> Generator[BinaryIO]:
    """A private duplicate of stdout; the descriptor itself leads to stderr meanwhile."""
    sys.stdout.flush()
    private = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(private, "wb", closefd=False) as wire:
            yield wire
    finally:
        sys.stdout.flush()
        os.dup2(private, 1)
        os.close(private)
