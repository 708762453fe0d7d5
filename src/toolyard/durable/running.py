"""One run of a job: what its handler may do with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import orjson

from toolyard.core.errors import ToolyardError
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.durable import jobs
from toolyard.durable.claims import Memo
from toolyard.durable.jobs import CLOCK, Fenced, JobRow
from toolyard.durable.nodes import Lease
from toolyard.store.base import Connection, Store

T = TypeVar("T")


class Nondeterministic(ToolyardError):
    """A replayed handler did something else than the run before it. The job ends in `error`."""


class Park(Exception):
    """Raised by a handler to let its job wait. With `still_waiting`, only if it says so under the job's lock;
    otherwise the handler runs again at once."""

    def __init__(
        self,
        key: str | None = None,
        wake_at: float | None = None,
        still_waiting: Callable[[Connection], bool] | None = None,
    ) -> None:
        super().__init__(f"waits for {key or 'a time'}")
        self.key = key
        self.wake_at = wake_at
        self.still_waiting = still_waiting


class RunEnded(Exception):
    """Unwinds the handler of a run that has been parked or finished. Do not catch it."""


class RunningJob:
    """Handed to a handler. A handler may be run again from its start at any time: its steps are remembered."""

    def __init__(self, job: JobRow, memo: Mapping[int, Memo], store: Store, lease: Lease) -> None:
        self.row = job
        self.id = job.id
        self.kind = job.kind
        self.input: JsonObject = job.input
        self.session_id = job.session_id
        self.epoch = job.epoch
        self.takeovers = job.takeovers
        self.ending = False
        """A transaction that ends this run is under way, or done."""
        self.waits_until: float | None = None
        """Set when the run ended by parking."""
        self._memo = dict(memo)
        self._store = store
        self._lease = lease
        self._steps = 0

    def begin_again(self) -> None:
        """Begin the handler anew, with what it remembers."""
        self._steps = 0
        self.ending = False

    def check(self) -> None:
        """Call before each side effect.

        Raises:
            Fenced: this node's lease has ended; another node may be running the job.
        """
        self._lease.check()

    def fence(self, c: Connection) -> None:
        """First in each transaction of the run: locks the job.

        Raises:
            Fenced: the job was cancelled or taken over.
        """
        jobs.fence(c, self.id, self.epoch)

    async def tx(self, fn: Callable[[Connection], T], *, parent: str | None = None) -> T:
        """A fenced transaction. `parent` is another job to lock before this one, because `fn` may wake it.

        Raises:
            Fenced: the job was cancelled or taken over; nothing was written.
        """

        def fenced(c: Connection) -> T:
            if parent is not None:
                jobs.lock(c, parent)
            self.fence(c)
            return fn(c)

        return await self._store.tx(fenced)

    async def step(self, name: str, effect: Callable[[], Awaitable[JsonValue]], digest: str | None = None) -> JsonValue:
        """Do `effect` once and remember its output; on a replay return what is remembered.

        Steps are counted in the order in which they begin, so that order must not change between runs. An effect in
        flight at a crash is done again. `digest` stands for what goes into the effect.

        Raises:
            Fenced: before the effect, or after it, when its output was not kept.
            Nondeterministic: the run before this one had another step in this place.
        """
        self._steps += 1
        n = self._steps
        known = self._memo.get(n)
        if known is not None:
            self._compare(n, known, name, digest)
            return known.output
        self.check()
        output = dumps(await effect()).decode()
        kept = await self.tx(lambda c: self._remember(c, n, name, digest, output))
        value: JsonValue = orjson.loads(kept)  # as a replay will see it
        self._memo[n] = Memo(name, digest, value)
        return value

    async def park(
        self, key: str | None, wake_at: float | None, still_waiting: Callable[[Connection], bool] | None = None
    ) -> None:
        """Let the job wait for `wake(key)`, or until `wake_at` (epoch seconds by the database's clock).

        `still_waiting` looks, while the job is locked, whether there is something left to wait for. When there is not,
        this returns and the handler goes on; when there is, it does not return: the handler is left by `RunEnded`.

        Raises:
            Fenced: the job was cancelled or taken over.
        """

        def park(c: Connection) -> bool:
            if still_waiting is not None and not still_waiting(c):
                return False
            jobs.park(c, self.id, self.epoch, key, wake_at)
            return True

        self.ending = True
        if await self.tx(park):
            self.waits_until = wake_at
            raise RunEnded
        self.ending = False

    async def finish(
        self,
        result: JsonValue = None,
        *,
        within: Callable[[Connection], object] | None = None,
        error: str | None = None,
        parent: str | None = None,
    ) -> None:
        """End the job, in one transaction with `within`; the handler is left by `RunEnded`. `error` ends it in error.

        A handler that returns a value needs none of this.

        Raises:
            Fenced: the job was cancelled or taken over; `within` was not done.
        """

        def finish(c: Connection) -> None:
            if within is not None:
                within(c)
            jobs.finish(c, self.id, self.epoch, "done" if error is None else "error", result, error)

        self.ending = True
        await self.tx(finish, parent=parent)
        raise RunEnded

    def _compare(self, n: int, known: Memo, name: str, digest: str | None) -> None:
        if (known.name, known.digest) != (name, digest):
            raise Nondeterministic(
                f"Step {n} of job {self.id} is {name!r} ({digest}) and was {known.name!r} ({known.digest})"
                " in the run before: its code or its data changed while it waited.",
                suggestion="Start the job anew, or bring back the code it began with.",
            )

    def _remember(self, c: Connection, n: int, name: str, digest: str | None, output: str) -> str:
        """What is kept: the output of an attempt whose commit seemed lost, if there was one."""
        inserted = c.execute(
            "INSERT INTO steps (job_id, n, name, digest, output, node, epoch, at)"
            f" VALUES (?, ?, ?, ?, ?, ?, ?, {CLOCK[c.dialect]}) ON CONFLICT DO NOTHING",
            self.id,
            n,
            name,
            digest,
            output,
            self._lease.node_id,
            self.epoch,
        )
        if inserted.rowcount == 1:
            return output
        row = c.execute("SELECT output FROM steps WHERE job_id = ? AND n = ?", self.id, n).fetchone()
        return str(row[0]) if row else output


__all__ = ["Fenced", "Nondeterministic", "Park", "RunEnded", "RunningJob"]
