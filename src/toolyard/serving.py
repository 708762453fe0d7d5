"""Uvicorn inside a running loop: started and stopped by us, with no signal handlers of its own."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from toolyard.core.errors import BadInput

if TYPE_CHECKING:
    from starlette.types import ASGIApp

GRACE_SECONDS = 2
"""How long open requests may take to end once we stop."""


KEEP_ALIVE_SECONDS = 75
"""Longer than most clients keep an idle connection: who closes first must not be us, just as a request is under way."""
_MOST_FILES = 65_536
_OWN_FILES = 256
"""Files that are no connection: the database, blobs, modules that are imported late, children's pipes."""


class EmbeddedServer(uvicorn.Server):
    """Signals belong to whoever runs the process; `ready` is set once it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def listening_socket(host: str, port: int) -> socket.socket:
    """A bound socket, which uvicorn will listen on; port 0 takes a free one.

    Raises:
        BadInput: the address cannot be used, and why.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        said = f"The host {host!r} is not known: {error.strerror}."
        raise BadInput(said, where="host", suggestion="Use 127.0.0.1, or 0.0.0.0 for all addresses.") from None
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise BadInput(
            f"Cannot listen on {host}:{port}: {(error.strerror or str(error)).lower()}.",
            where="port",
            suggestion="Stop what runs there, or choose another port with --port.",
        ) from None
    return bound


def settle_memory() -> None:
    """Once everything long-lived is built: keep the collector from walking it again and again.

    A full collection visits every object of the catalog (10,000 tools are a million); calls make few cycles, so it may
    also come less often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)


def raise_file_limit() -> None:
    """Ask for as many open files as this process may have: shells and services grant 1,024 unless they are asked, and
    every call that runs takes one for its client and one for its provider."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # macOS grants less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """Beyond these a client is told 503 at once; without files everybody would fail, whoever came first."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    files = _MOST_FILES if soft == resource.RLIM_INFINITY else soft
    return max(64, (files - _OWN_FILES) // 2)


@asynccontextmanager
async def serving(app: ASGIApp, bound: socket.socket) -> AsyncGenerator[EmbeddedServer]:
    """Serve until the block ends; gives the server once it answers.

    Raises:
        RuntimeError: uvicorn ended before it was ready.
    """
    config = uvicorn.Config(
        cast("Any", app),
        http="httptools",
        lifespan="off",
        proxy_headers=False,  # nobody's word on who a client is; it also costs every request
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
        ws="none",
        limit_concurrency=most_connections(),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    server = EmbeddedServer(config)
    task = asyncio.create_task(server.serve([bound]), name="uvicorn")
    ready = asyncio.create_task(server.ready.wait(), name="uvicorn-ready")
    try:
        await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            raise RuntimeError("the HTTP server ended before it was ready")
        yield server
    finally:
        ready.cancel()
        server.should_exit = True
        await task
