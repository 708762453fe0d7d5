"""The engine of a node: one task that sleeps until there is something to do. `toolyard.durable` has the protocol."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import cast

from toolyard.core.clock import Clock
from toolyard.core.errors import NotFound, StoreUnavailable
from toolyard.core.ids import new_id
from toolyard.durable import claims, jobs, nodes, schedules
from toolyard.durable.claims import Ended, Look, Wanted
from toolyard.durable.events import Bus
from toolyard.durable.hints import EVERYTHING, Neighbours, Remote, Waiter, Watchers
from toolyard.durable.jobs import JobRow, NewJob
from toolyard.durable.nodes import Lease, SuspendAwareClock
from toolyard.durable.running import RunningJob
from toolyard.durable.runs import Handler, Kind, Parent, Runs
from toolyard.durable.sweeps import Sweep, Sweeps
from toolyard.store.base import Connection, Store

log = logging.getLogger("toolyard.durable")

TTL = 5.0
"""Seconds that a lease lasts: so long a dead node's jobs wait for another one."""
TTL_ALONE = 30.0
"""On SQLite, where no other process can take over and each renewal is a write to the disk."""
LOOK_EVERY = 1.0
"""Seconds between looks at the jobs when no hint comes: the polling fallback."""
GRACE = 5.0
"""Seconds that a stopping node lets its runs go on."""
CAPACITY = 256
"""Runs at the same time on one node. A job that waits is not a run."""
LARGEST_CLAIM = 64
CLAIMABLE = "jobs"
"""The topic that makes other nodes look for jobs."""


class Engine:
    """Runs the jobs of a store on this node. All methods belong on the event loop's thread.

    `ttl` is the lease in seconds (5 on PostgreSQL, 30 on SQLite). Of `clock` only `monotonic` is used, which must count
    suspend. A run that ends publishes `{id, kind}` on the bus as topic `job`.
    """

    def __init__(
        self,
        store: Store,
        *,
        node_id: str | None = None,
        ttl: float | None = None,
        clock: Clock | None = None,
        bus: Bus | None = None,
        url: str | None = None,
        capacity: int = CAPACITY,
        grace: float = GRACE,
    ) -> None:
        self.store = store
        self.node_id = node_id or new_id("node")
        self.ttl = ttl or (TTL if store.dialect == "postgres" else TTL_ALONE)
        self.lease = Lease(self.node_id, self.ttl, clock or SuspendAwareClock())
        self._bus = bus
        self._url = url
        self._capacity = capacity
        self._grace = grace
        self._runs = Runs(store, self.lease, self._left)
        self._sweeps = Sweeps()
        self._watchers = Watchers()
        self._remote: Remote | None = None
        self._woken = asyncio.Event()
        self._fire_at = 0.0
        self._more = False
        self._draining = False
        self._stopped = False
        self._task: asyncio.Task[None] | None = None

    # -- what others register and ask ---------------------------------------------------------------------------------

    def handle(self, kind: str, handler: Handler, *, ended: Ended | None = None, parent: Parent | None = None) -> None:
        """Run jobs of `kind` with `handler`; its value is the job's result.

        A handler may be run again from its start, on any node. It lets the job wait by `job.park` or `Park`. What it
        raises ends the job in `error`, and so does dying with its node too often: `ended(c, job, reason)` is then
        called in the transaction that ends it, to settle what hangs on the job. `parent(job)` names a job that `ended`
        may wake, which must be locked first.
        """
        self._runs.kinds[kind] = Kind(handler, ended, parent)
        self._woken.set()

    def sweep(self, fn: Sweep, *, every: float) -> None:
        """Await `fn()` every so many seconds, on every node: it must be safe on several at once.

        Never twice at once on one node. What it raises is logged.
        """
        self._sweeps.add(fn, every)
        self._woken.set()

    def hint(self, *topics: str) -> None:
        """Say, after a commit, what it touched: watchers here look at once, those of other nodes some 10 ms later.

        `job:<id>` also makes the nodes look for what became ready or was cancelled.
        """
        self._watchers.wake(topics)
        beyond = topics
        if any(topic.startswith("job:") for topic in topics):
            self._woken.set()
            beyond = (*topics, CLAIMABLE)
        if self._remote is not None:
            self._remote.send(beyond)

    def watch(self, *topics: str) -> AbstractAsyncContextManager[Waiter]:
        """`async with engine.watch("job:1") as waiter`: read, `await waiter.wait(timeout)`, read again, and so on."""
        return self._watchers.watch(*topics)

    async def submit(self, job: NewJob) -> bool:
        """Insert a job in a transaction of its own; False when there is one with its id."""
        inserted = await self.store.tx(lambda c: jobs.insert(c, job))
        self.hint(f"job:{job.id}")
        return inserted

    async def cancel(self, job_id: str) -> bool:
        """End an open job, wherever it runs; False when it had ended."""
        cancelled = await self.store.tx(lambda c: jobs.cancel(c, job_id))
        self.hint(f"job:{job_id}")
        return cancelled

    async def wait(self, job_id: str, seconds: float = math.inf) -> JobRow:
        """The job once it has ended, or as it is after `seconds`.

        Raises:
            NotFound: there is no such job.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        async with self.watch(f"job:{job_id}") as waiter:
            while True:
                job = await self.store.read(lambda c: jobs.get(c, job_id))
                if job is None:
                    raise NotFound(f"There is no job {job_id!r}.")
                if job.ended or loop.time() >= until:
                    return job
                await waiter.wait(until - loop.time())

    @property
    def running(self) -> frozenset[str]:
        """Ids of the jobs that run here."""
        return frozenset(job_id for job_id, _ in self._runs.keys)

    # -- start and stop -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take a lease and begin to run jobs.

        Raises:
            StoreUnavailable: the database cannot be reached.
        """
        try:
            self._remote = await self._start_hints()
            await self._renew()
        except BaseException:
            await self._end_tasks()
            raise
        self._task = asyncio.create_task(self._loop(), name="durable engine")

    async def stop(self) -> None:
        """Claim nothing more, let runs go on for `grace` seconds, cancel what is left and give its jobs back."""
        if self._task is None:
            return
        self._draining = True
        self._woken.set()
        stuck = await self._runs.drain(self._grace)
        self._stopped = True
        self._woken.set()
        await asyncio.wait([self._task])  # its round may be claiming
        try:
            await self.store.tx(lambda c: self._leave(c, frozenset(stuck)))
            self.hint("job:")
        except StoreUnavailable as error:
            log.warning("The node's jobs could not be given back; they are taken over: %s", error)
        await self._end_tasks()

    async def abandon(self) -> None:
        """Stop as a crash would: nothing is given back, the lease stays until it ends."""
        self._draining = True
        await self._runs.drop()
        await self._end_tasks()

    async def _start_hints(self) -> Remote:
        if self.store.dialect == "postgres":
            from toolyard.durable.postgres_hints import HintConnections, PostgresHints

            remote = PostgresHints(cast("HintConnections", self.store), self.node_id, self._hinted)
            await remote.start()
            return remote
        neighbours = Neighbours(self.store.location, self.node_id, self._hinted)
        await neighbours.start()
        living = neighbours.living
        await self.store.tx(lambda c: nodes.remove_others(c, living))
        return neighbours

    async def _end_tasks(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._sweeps.stop()
        remote, self._remote = self._remote, None
        if remote is not None:
            await remote.close()

    def _leave(self, c: Connection, stuck: frozenset[str]) -> None:
        """Runs that would not stop keep their jobs, and the node its row, until the lease ends."""
        owned = [job_id for job_id, _ in claims.owned(c, self.node_id)]
        jobs.give_back(c, self.node_id, [job_id for job_id in owned if job_id not in stuck])
        if not stuck:
            nodes.remove(c, self.node_id)

    # -- the one task -------------------------------------------------------------------------------------------------

    async def _loop(self) -> None:
        while not self._stopped:
            self._woken.clear()
            try:
                sleep = await self._round()
            except StoreUnavailable as error:
                log.warning("The durable engine could not reach the database: %s", error)
                sleep = LOOK_EVERY
            except Exception:
                log.exception("The durable engine failed; it goes on.")
                sleep = LOOK_EVERY
            try:
                async with asyncio.timeout(sleep):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _round(self) -> float:
        """Do what is due; seconds until something else is."""
        now = asyncio.get_running_loop().time()
        sweep_in = self._sweeps.begin_due(now)
        if self.lease.age >= self.ttl / 5:
            await self._renew()
        if now >= self._fire_at and not self._draining:
            fired = await self.store.tx(schedules.fire_due)
            self._fire_at = now + min(fired.sleep, LOOK_EVERY)
            if fired.job_ids:
                self.hint(*(f"job:{job_id}" for job_id in fired.job_ids))
        room = self._room()
        wanted = Wanted(self.node_id, tuple(self._runs.kinds), room, self._runs.keys)
        look = await self.store.tx(lambda c: claims.look(c, wanted))
        await self._act_on(look)
        self._more = not self._draining and len(look.claimed) >= room
        if self._more and self._room():
            return 0.0
        job_in = look.sleep if room else math.inf
        renewal_in = max(self.ttl / 5 - self.lease.age, 0.0)
        return min(sweep_in, job_in, renewal_in, max(self._fire_at - now, 0.0), LOOK_EVERY)

    def _room(self) -> int:
        if self._draining or not self.lease.fresh:
            return 0
        return max(0, min(self._capacity - len(self._runs), LARGEST_CLAIM))

    async def _act_on(self, look: Look) -> None:
        self._runs.cancel_lost(look.mine)
        if not self._draining:
            for claimed in look.claimed:
                self._runs.begin(claimed)
        for job in look.doomed:
            await self._give_up(job)

    async def _give_up(self, job: JobRow) -> None:
        kind = self._runs.kinds[job.kind]
        reason = f"{job.takeovers + 1} nodes died while they ran this job; it is not tried again."
        log.error("Job %s: %s", job.id, reason)
        parent = kind.parent(job) if kind.parent else None
        try:
            await self.store.tx(lambda c: claims.give_up(c, job, reason, kind.ended, parent))
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("What hangs on job %s could not be settled; the job ends without it.", job.id)
            await self.store.tx(lambda c: claims.give_up(c, job, reason, None, None))
        self.hint(f"job:{job.id}")

    async def _renew(self) -> None:
        sent = self.lease.sending()
        await self.store.tx(lambda c: nodes.renew(c, self.node_id, self.ttl, self._url))
        self.lease.renewed(sent)

    def _left(self, job: RunningJob) -> None:
        """A run ended: tell who waits for its job. The one task need not know, unless there is more to claim, or the
        job waits until a time that may come before the next look."""
        if self._more or job.waits_until is not None:
            self._woken.set()
        topic = f"job:{job.id}"
        self._watchers.wake((topic,))
        if self._remote is not None:
            self._remote.send((topic,))
        if self._bus is not None:
            self._bus.publish("job", {"id": job.id, "kind": job.kind})

    def _hinted(self, topics: Iterable[str]) -> None:
        """By another node."""
        told = frozenset(topics)
        self._watchers.wake(told)
        if CLAIMABLE in told or EVERYTHING in told:
            self._woken.set()
