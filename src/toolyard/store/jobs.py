"""Queued functions, and handing their outcomes back to the event loops that wait for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TypeAlias

from toolyard.core.errors import StoreUnavailable
from toolyard.store.base import Connection

log = logging.getLogger("toolyard.store")

Work: TypeAlias = Callable[[Connection], object]
Waiter: TypeAlias = asyncio.Future[object]
Job: TypeAlias = tuple[Work, Waiter | None]
"""A function and who waits for it; nobody waits for what was given to `submit`."""
JobQueue: TypeAlias = SimpleQueue[Job | None]
"""None tells a thread to end once it has done what was queued before."""
Outcome: TypeAlias = tuple[Job, object, BaseException | None]
"""The job, its value, and its error."""


def resolve(outcomes: Iterable[Outcome]) -> None:
    """Wake every waiter with one call into each event loop: waking a loop is a system call, a future is not."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Waiter, object, BaseException | None]]] = {}
    for (work, waiter), value, error in outcomes:
        if waiter is not None:
            by_loop.setdefault(waiter.get_loop(), []).append((waiter, value, error))
        elif error is not None:
            log.error("A queued write failed: %s", error, extra={"work": repr(work)}, exc_info=error)
    for loop, settled in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, settled)
        except RuntimeError:  # the loop was closed: nobody is left to be told
            log.warning("%d outcomes came after their event loop was closed.", len(settled))


def _settle(settled: list[tuple[Waiter, object, BaseException | None]]) -> None:
    for waiter, value, error in settled:
        if waiter.done():  # cancelled by its caller; the work was done all the same
            continue
        if error is None:
            waiter.set_result(value)
        else:
            waiter.set_exception(error)


@contextmanager
def telling_waiters(batch: Sequence[Job]) -> Generator[None]:
    """The top of a thread: should its own code fail, it goes on, and nobody waits for ever."""
    try:
        yield
    except Exception as error:
        log.exception("The store's thread failed on %d functions.", len(batch))
        resolve([(job, None, error) for job in batch])


def refuse_the_rest(queue: JobQueue, location: str) -> None:
    """Fail what was queued after the end, so that nobody waits for ever."""
    outcomes: list[Outcome] = []
    while True:
        try:
            job = queue.get_nowait()
        except Empty:
            break
        if job is not None:
            outcomes.append((job, None, closed(location)))
    resolve(outcomes)


def closed(location: str) -> StoreUnavailable:
    return StoreUnavailable(f"The store {location} is closed.")
