"""The runs of this process: a task for each, from the claim to the write that ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolyard.core.errors import StoreUnavailable, ToolyardError
from toolyard.core.json import JsonValue
from toolyard.durable.claims import Claimed, Ended
from toolyard.durable.jobs import Fenced, JobRow
from toolyard.durable.nodes import Lease
from toolyard.durable.running import Park, RunEnded, RunningJob
from toolyard.store.base import Connection, Store

log = logging.getLogger("toolyard.durable")

Handler: TypeAlias = Callable[[RunningJob], Awaitable[JsonValue]]
Parent: TypeAlias = Callable[[JobRow], str | None]
RunKey: TypeAlias = tuple[str, int]

_LONGEST_ERROR = 2000
_PATIENCE_WITH_CANCELLED = 2.0
"""Seconds for cancelled runs to clean up."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How jobs of a kind are run, and told of an end that is not the handler's doing."""

    handler: Handler
    ended: Ended | None = None
    parent: Parent | None = None


class Runs:
    """`left(job)` is called whenever a run has left its task, whatever way."""

    def __init__(self, store: Store, lease: Lease, left: Callable[[RunningJob], None]) -> None:
        self.kinds: dict[str, Kind] = {}
        self._store = store
        self._lease = lease
        self._left = left
        self._tasks: dict[RunKey, tuple[RunningJob, asyncio.Task[None]]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def keys(self) -> frozenset[RunKey]:
        return frozenset(self._tasks)

    def begin(self, claimed: Claimed) -> None:
        job = RunningJob(claimed.job, claimed.steps, self._store, self._lease)
        task = asyncio.create_task(self._run(job), name=f"job {job.kind} {job.id}")
        self._tasks[job.id, job.epoch] = job, task

    def cancel_lost(self, mine: frozenset[RunKey]) -> None:
        """Stop what was cancelled or taken over. A run that is writing its end is left to it."""
        for key, (job, task) in self._tasks.items():
            if key not in mine and not job.ending:
                log.info("Job %s was cancelled or taken over: its run %d stops.", *key)
                task.cancel()

    async def drain(self, grace: float) -> Sequence[str]:
        """Let runs go on for `grace` seconds, then cancel them; the jobs whose runs would not stop."""
        if self._tasks:
            await asyncio.wait(self._all(), timeout=grace)
        for task in self._all():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._all(), timeout=_PATIENCE_WITH_CANCELLED)
        return [job_id for job_id, _ in self._tasks]

    async def drop(self) -> None:
        """Cancel every run and write nothing."""
        tasks = self._all()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _all(self) -> list[asyncio.Task[None]]:
        return [task for _, task in self._tasks.values()]

    async def _run(self, job: RunningJob) -> None:
        try:
            await self._until_ended(job)
        except Fenced as error:
            log.info("Run %d of job %s was fenced: %s", job.epoch, job.id, error)
        except StoreUnavailable as error:
            log.warning("Run %d of job %s lost the database; it is begun again: %s", job.epoch, job.id, error)
        except Exception as error:  # noqa: BLE001 - the top of a run: the job says what went wrong
            await self._end_in_error(job, error)
        finally:
            del self._tasks[job.id, job.epoch]
            self._left(job)

    async def _until_ended(self, job: RunningJob) -> None:
        try:
            while True:
                try:
                    await job.finish(await self.kinds[job.kind].handler(job))
                except Park as park:
                    await job.park(park.key, park.wake_at, park.still_waiting)
                    job.begin_again()
        except RunEnded:
            return

    async def _end_in_error(self, job: RunningJob, error: Exception) -> None:
        if isinstance(error, ToolyardError):
            reason = str(error)
            log.info("Job %s ends in error: %s", job.id, reason)
        else:
            reason = f"{type(error).__name__}: {error}"
            log.error("The handler of job %s failed.", job.id, exc_info=error)
        kind = self.kinds[job.kind]
        try:
            await self._finish_in_error(job, reason[:_LONGEST_ERROR], kind.ended)
        except Fenced:
            log.info("Run %d of job %s was fenced while it ended in error.", job.epoch, job.id)
        except StoreUnavailable as unavailable:
            log.warning("Job %s could not be ended; it is begun again: %s", job.id, unavailable)
        except Exception:
            log.exception("What hangs on job %s could not be settled; the job ends without it.", job.id)
            await self._finish_in_error(job, reason[:_LONGEST_ERROR], None)

    async def _finish_in_error(self, job: RunningJob, reason: str, ended: Ended | None) -> None:
        def within(c: Connection) -> None:
            if ended is not None:
                ended(c, job.row, reason)

        parent = self.kinds[job.kind].parent
        try:
            await job.finish(error=reason, within=within, parent=parent(job.row) if parent else None)
        except RunEnded:
            return
