"""Work that every node does now and then, such as looking for silence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from toolyard.core.errors import StoreUnavailable

log = logging.getLogger("toolyard.durable")

Sweep: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class _Entry:
    fn: Sweep
    every: float
    due: float = 0.0
    task: asyncio.Task[None] | None = None


class Sweeps:
    """No timers of its own: the engine's one task calls `begin_due` and sleeps as long as it says."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def add(self, fn: Sweep, every: float) -> None:
        self._entries.append(_Entry(fn, every))

    def begin_due(self, now: float) -> float:
        """Begin what is due; seconds until the next one is."""
        for entry in self._entries:
            if entry.due <= now and (entry.task is None or entry.task.done()):
                entry.due = now + entry.every
                entry.task = asyncio.create_task(_guarded(entry.fn), name=f"sweep {entry.fn!r}")
        return min((max(entry.due - now, 0.05) for entry in self._entries), default=float("inf"))

    async def stop(self) -> None:
        tasks = [entry.task for entry in self._entries if entry.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _guarded(fn: Sweep) -> None:
    try:
        await fn()
    except StoreUnavailable as error:
        log.warning("A sweep could not reach the database; it comes again: %s", error)
    except Exception:
        log.exception("The sweep %r failed; it comes again.", fn)
