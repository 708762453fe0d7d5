"""What a tool's function may ask for besides its arguments, and how it fails on purpose."""

from __future__ import annotations

import asyncio
import threading

from toolyard.core.call import Progress, ProgressSink
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.principal import Principal


class ToolError(CallError):
    """Raise it in a tool to fail with a message of your own, and a suggestion of what to do instead."""

    def __init__(self, message: str, *, suggestion: str | None = None) -> None:
        super().__init__(ErrorCode.UPSTREAM, message, suggestion=suggestion)


class Context:
    """The call a tool is running in. Ask for it with a parameter annotated `toolyard.Context`.

    `cancelled` is set when the caller gave up or time ran out: a sync function looks at it between pieces of work
    (`context.cancelled.is_set()`, or `.wait(seconds)` in place of a sleep); an async one is cancelled as usual.
    """

    def __init__(
        self, *, call_id: str, principal: Principal, time_limit: float, progress: ProgressSink | None = None
    ) -> None:
        self.call_id = call_id
        self.principal = principal
        self.time_limit = time_limit
        """Seconds the call had when it began."""
        self.cancelled = threading.Event()
        self._sink = progress
        self._loop = asyncio.get_running_loop()

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports how far the work is. May be called from any thread; costs nothing when nobody listens."""
        if self._sink is None or self.cancelled.is_set():
            return
        report = Progress(progress, total, message)
        if _running_loop() is self._loop:
            self._sink(report)
        else:
            self._loop.call_soon_threadsafe(self._sink, report)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
