"""Daemon threads for sync functions: one that never returns must not keep the process from ending.

`ThreadPoolExecutor` joins its threads when the interpreter exits, so a stuck tool would hang the shutdown.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

_T = TypeVar("_T")
_Work = Callable[[], None]


class Threads:
    """At most `limit` threads, made when needed; further work waits in a queue. Used from one event loop."""

    def __init__(self, name: str, *, limit: int = 32) -> None:
        self._name = name
        self._limit = limit
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._started = 0
        self._busy = 0
        self._closed = False

    async def run(self, function: Callable[[], _T]) -> _T:
        """The function's value or exception. When the waiting is cancelled, work that has begun goes on unheard."""
        if self._closed:
            raise RuntimeError("the provider is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_T] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            if future.cancelled():
                _tell(loop, self._left)
                return
            try:
                value = context.run(function)
            except BaseException as error:  # noqa: BLE001  handed to the caller, whatever it is
                _tell(loop, self._settle, future, None, error)
            else:
                _tell(loop, self._settle, future, value, None)

        self._busy += 1
        self._queue.put(work)
        if self._busy > self._started and self._started < self._limit:
            self._started += 1
            threading.Thread(target=self._work_on, name=f"{self._name}-{self._started}", daemon=True).start()
        return await future

    def close(self) -> None:
        """Idle threads end now, busy ones after their present work; nobody waits for them."""
        self._closed = True
        for _ in range(self._started):
            self._queue.put(None)

    def _work_on(self) -> None:
        while (work := self._queue.get()) is not None:
            work()

    def _left(self) -> None:
        self._busy -= 1

    def _settle(self, future: asyncio.Future[_T], value: _T, error: BaseException | None) -> None:
        self._left()
        if future.done():
            return
        if error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration):
            future.set_exception(RuntimeError("StopIteration"))
        else:
            future.set_exception(error)


def _tell(loop: asyncio.AbstractEventLoop, act: Callable[..., None], *arguments: object) -> None:
    try:
        loop.call_soon_threadsafe(act, *arguments)
    except RuntimeError:
        return  # the loop ended while the function was still at work
