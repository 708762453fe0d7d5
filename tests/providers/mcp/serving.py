"""Real HTTP servers for tests: uvicorn in a thread, on a port that the system chose."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def served(app: Any, *, port: int = 0) -> Iterator[str]:
    """The base URL, while the app is served. With `port` a stopped server is brought back at its old address."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else Nagle stays on
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    config = uvicorn.Config(app, log_level="error", lifespan="auto", timeout_graceful_shutdown=1, ws="none")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    up = threading.Event()
    ending: list[Callable[[], object]] = []

    async def run() -> None:
        """uvicorn's `serve` without its main loop, which looks whether to end only every 100 ms."""
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        ending.append(lambda: loop.call_soon_threadsafe(over.set))
        await server.startup(sockets=[listener])
        up.set()
        await over.wait()
        server.force_exit = True
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await server.shutdown(sockets=[listener])

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert up.wait(10)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ending[0]()
        thread.join(10)
        listener.close()
