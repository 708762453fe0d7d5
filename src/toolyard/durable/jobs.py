"""Jobs: rows that are run until they end. Functions for use inside others' transactions.

Whoever may wake a job calls `lock` on it before it looks or writes (`toolyard.durable` says why).

A statement about one job tests its state with `IS TRUE`, so that PostgreSQL finds the row by its id: a plan that was
made while few jobs waited might look through all that wait, by the index on states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

import orjson

from toolyard.core.errors import ToolyardError
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.store.base import Connection, Row

JobState: TypeAlias = Literal["ready", "running", "waiting", "done", "error", "cancelled"]
EndState: TypeAlias = Literal["done", "error", "cancelled"]

CLOCK = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgres": "CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
}
"""The database's clock within a statement, as `Connection.now` gives it: saves a round trip. Not for conditions: no
index helps to compare with a clock that moves on during the statement."""
FOR_UPDATE = {"sqlite": "", "postgres": " FOR UPDATE"}
"""SQLite has one writer at a time: every row is locked."""
COLUMNS = (
    "id, session_id, kind, input, state, owner, epoch, takeovers, wake_at, wake_key, result, error, created, finished"
)


class Fenced(ToolyardError):
    """This run no longer owns its job: it was cancelled, taken over, or this node's lease has ended."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """`waiting` with `wake_at` or `wake_key` begins parked; `running` with `owner` begins on that node, unqueued."""

    id: str
    kind: str
    input: JsonObject = field(default_factory=dict[str, JsonValue])
    session_id: str | None = None
    state: Literal["ready", "waiting", "running"] = "ready"
    wake_at: float | None = None
    wake_key: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class JobRow:
    """Times are epoch seconds by the database's clock. `owner` is the id of the node that runs it. `wake_at` of a job
    that waits is when it stops waiting; of one that is ready, since when it is, so that the oldest is run first."""

    id: str
    session_id: str | None
    kind: str
    input: JsonObject
    state: JobState
    owner: str | None
    epoch: int
    takeovers: int
    wake_at: float | None
    wake_key: str | None
    result: JsonValue
    error: str | None
    created: float
    finished: float | None

    @property
    def ended(self) -> bool:
        return self.state in ("done", "error", "cancelled")


def insert(c: Connection, job: NewJob) -> bool:
    """Put a job in the queue; False when there is one with its id. Afterwards: `engine.hint(f"job:{job.id}")`.

    Raises:
        ValueError: a running job without an owner, or another one with.
    """
    if (job.state == "running") != (job.owner is not None):
        raise ValueError(f"job {job.id}: a job begins with an owner when it begins running, and only then")
    wake_at = CLOCK[c.dialect] if job.state == "ready" else "?"
    inserted = c.execute(
        "INSERT INTO jobs (id, session_id, kind, input, state, owner, epoch, wake_at, wake_key, created)"
        f" VALUES (?, ?, ?, ?, ?, ?, ?, {wake_at}, ?, {CLOCK[c.dialect]}) ON CONFLICT DO NOTHING",
        job.id,
        job.session_id,
        job.kind,
        dumps(job.input).decode(),
        job.state,
        job.owner,
        1 if job.state == "running" else 0,
        *([] if job.state == "ready" else [job.wake_at]),
        job.wake_key,
    )
    return inserted.rowcount == 1


def get(c: Connection, job_id: str) -> JobRow | None:
    return _one(c, job_id, "")


def lock(c: Connection, job_id: str) -> JobRow | None:
    """The job, held until the transaction ends: nobody parks, wakes, claims or ends it meanwhile."""
    return _one(c, job_id, FOR_UPDATE[c.dialect])


def wake(c: Connection, job_id: str, key: str) -> bool:
    """Make a job that waits for `key` ready. The caller holds its lock. Afterwards: `engine.hint(f"job:{job_id}")`."""
    woken = c.execute(
        f"UPDATE jobs SET state = 'ready', wake_key = NULL, wake_at = {CLOCK[c.dialect]}"
        " WHERE id = ? AND (state = 'waiting') IS TRUE AND wake_key = ?",
        job_id,
        key,
    )
    return woken.rowcount == 1


def cancel(c: Connection, job_id: str) -> bool:
    """End an open job from any node; its run can write nothing more. Afterwards: `engine.hint(f"job:{job_id}")`."""
    cancelled = c.execute(
        "UPDATE jobs SET state = 'cancelled', epoch = epoch + 1, owner = NULL, wake_key = NULL, wake_at = NULL,"
        f" finished = {CLOCK[c.dialect]} WHERE id = ? AND (state IN ('ready', 'running', 'waiting')) IS TRUE",
        job_id,
    )
    return cancelled.rowcount == 1


def fence(c: Connection, job_id: str, epoch: int) -> None:
    """Lock the job's row for the rest of the transaction.

    Raises:
        Fenced: another run owns it, or nobody.
    """
    mine = c.execute(
        f"SELECT 1 FROM jobs WHERE id = ? AND epoch = ? AND (state = 'running') IS TRUE{FOR_UPDATE[c.dialect]}",
        job_id,
        epoch,
    )
    if mine.fetchone() is None:
        raise fenced(job_id, epoch)


def finish(  # noqa: PLR0917 - a row's columns, in their order
    c: Connection, job_id: str, epoch: int, state: EndState, result: JsonValue = None, error: str | None = None
) -> None:
    """
    Raises:
        Fenced: the run with this epoch does not own the job any more.
    """
    ended = c.execute(
        f"UPDATE jobs SET state = ?, result = ?, error = ?, owner = NULL, finished = {CLOCK[c.dialect]}"
        " WHERE id = ? AND epoch = ? AND (state = 'running') IS TRUE",
        state,
        None if result is None else dumps(result).decode(),
        error,
        job_id,
        epoch,
    )
    if ended.rowcount != 1:
        raise fenced(job_id, epoch)


def park(c: Connection, job_id: str, epoch: int, key: str | None, wake_at: float | None) -> None:
    """Let the job wait for `wake(key)`, or until `wake_at`. The caller has called `fence`, and looked since.

    Raises:
        Fenced: the run with this epoch does not own the job any more.
        ValueError: it would wait for nothing.
    """
    if key is None and wake_at is None:
        raise ValueError(f"job {job_id} would wait for ever: give a key, a time, or both")
    parked = c.execute(
        "UPDATE jobs SET state = 'waiting', owner = NULL, wake_key = ?, wake_at = ?"
        " WHERE id = ? AND epoch = ? AND (state = 'running') IS TRUE",
        key,
        wake_at,
        job_id,
        epoch,
    )
    if parked.rowcount != 1:
        raise fenced(job_id, epoch)


def give_back(c: Connection, owner: str, job_ids: Sequence[str]) -> None:
    """A node that stops hands its running jobs to the others, without counting a takeover."""
    for job_id in sorted(job_ids):
        c.execute(
            f"UPDATE jobs SET state = 'ready', owner = NULL, wake_at = {CLOCK[c.dialect]}"
            " WHERE id = ? AND owner = ? AND state = 'running'",
            job_id,
            owner,
        )


def fenced(job_id: str, epoch: int) -> Fenced:
    return Fenced(f"Run {epoch} of job {job_id} no longer owns it.")


def job_of(row: Row) -> JobRow:
    """The record of a row of `COLUMNS`."""
    decoded = list(row)
    for column in (3, 10):
        text = decoded[column]
        decoded[column] = None if text is None else orjson.loads(cast("str", text))
    return JobRow(*decoded)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # as the table declares


def _one(c: Connection, job_id: str, locking: str) -> JobRow | None:
    row = c.execute(f"SELECT {COLUMNS} FROM jobs WHERE id = ?{locking}", job_id).fetchone()
    return job_of(row) if row else None
