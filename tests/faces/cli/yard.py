"""A whole yard in a thread of its own, so that commands, which have a loop of their own, can talk to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from toolyard.app import App, Settings
from toolyard.demo.yard import demo_manifest, petshop_running
from toolyard.faces import asgi
from toolyard.serving import listening_socket, serving


@dataclass(frozen=True)
class RunningYard:
    url: str
    data_dir: Path
    petshop_url: str


@contextmanager
def running_yard(data_dir: Path, *, demo: bool) -> Generator[RunningYard]:
    """The demo's providers, without a key (`demo`) or with one."""
    started: Future[RunningYard] = Future()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def run() -> None:
        async with AsyncExitStack() as stack:
            petshop_url = await stack.enter_async_context(petshop_running())
            bound = stack.enter_context(listening_socket("127.0.0.1", 0))
            settings = Settings(data_dir=data_dir, port=bound.getsockname()[1], demo=demo)
            manifest = demo_manifest(petshop_url=petshop_url, data_dir=data_dir)
            app = await stack.enter_async_context(App.running(settings, manifest))
            await stack.enter_async_context(serving(asgi.build(app), bound))
            started.set_result(RunningYard(settings.url, data_dir, petshop_url))
            await stop.wait()

    def target() -> None:
        try:
            loop.run_until_complete(run())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)
        finally:
            loop.close()

    thread = threading.Thread(target=target, name="yard")
    thread.start()
    try:
        yield started.result(timeout=30)
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        thread.join(timeout=20)
        assert not thread.is_alive(), "the yard did not stop"
