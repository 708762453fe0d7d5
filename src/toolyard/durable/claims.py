"""Claiming: one look of a node at the table of jobs, in one transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import orjson

from toolyard.core.errors import NotFound
from toolyard.core.json import JsonValue
from toolyard.durable import log, nodes
from toolyard.durable.jobs import CLOCK, COLUMNS, JobRow, get, job_of, lock
from toolyard.store.base import Connection, Row, SqlValue

MOST_TAKEOVERS = 5
"""A job whose nodes died this often ends in `error`: it may be what kills them."""
AHEAD = 5.0
"""Seconds that a look sees ahead; more than there are between two looks."""
_OPEN = "state IN ('ready', 'running', 'waiting')"
"""As in the index: SQLite uses a partial index only where its condition is repeated."""

Ended: TypeAlias = Callable[[Connection, JobRow, str], None]
"""Told, within the transaction, of a job that ends in `error` without its handler's doing, and why."""


@dataclass(frozen=True, slots=True)
class Memo:
    """A step that was done before."""

    name: str
    digest: str | None
    output: JsonValue


@dataclass(frozen=True, slots=True)
class Claimed:
    job: JobRow
    steps: Mapping[int, Memo]


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found. `mine` are all (job, epoch) that this node runs, those just claimed among them."""

    claimed: Sequence[Claimed]
    doomed: Sequence[JobRow]
    """Jobs of dead nodes that were taken over too often: `give_up` ends them."""
    mine: frozenset[tuple[str, int]]
    sleep: float
    """Seconds until the next job is due or the next lease of another node ends; infinite when there is none."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """`running`: what this process runs already. `room`: how many more it takes. `kinds` have handlers here."""

    node_id: str
    kinds: Sequence[str]
    room: int
    running: frozenset[tuple[str, int]]


def look(c: Connection, wanted: Wanted) -> Look:
    """Take over from dead nodes, claim what is ready or due, and say what this node owns."""
    doomed: list[JobRow] = []
    now = c.now()
    if wanted.kinds and wanted.room > 0:
        taken, doomed = _take_over(c, wanted)
        taken += _claim(c, wanted, "state = 'waiting' AND wake_at <= ?", wanted.room - taken, now)
        _claim(c, wanted, "state = 'ready'", wanted.room - taken)
    mine = owned(c, wanted.node_id)
    fresh = [get(c, job_id) for job_id, _ in sorted(mine - wanted.running)]
    claimed = [Claimed(job, _steps(c, job.id)) for job in fresh if job is not None and job.kind in wanted.kinds]
    return Look(claimed, doomed, mine, _sleep(c, wanted, now))


def owned(c: Connection, node_id: str) -> frozenset[tuple[str, int]]:
    """(job, epoch) of what a node runs."""
    rows = c.execute("SELECT id, epoch FROM jobs WHERE owner = ? AND state = 'running'", node_id).fetchall()
    return frozenset((str(job_id), cast("int", epoch)) for job_id, epoch in rows)


def give_up(c: Connection, job: JobRow, reason: str, ended: Ended | None, parent: str | None) -> bool:
    """End a job in `error`, together with what hangs on it; False when it went on, or ended, meanwhile."""
    if parent is not None:
        lock(c, parent)
    current = lock(c, job.id)
    if current is None or current.state != "running" or current.epoch != job.epoch:
        return False
    c.execute(
        "UPDATE jobs SET state = 'error', error = ?, epoch = epoch + 1, owner = NULL,"
        f" finished = {CLOCK[c.dialect]} WHERE id = ?",
        reason,
        job.id,
    )
    if ended is not None:
        ended(c, job, reason)
    return True


def _claim(c: Connection, wanted: Wanted, which: str, room: int, *parameters: SqlValue) -> int:
    """Own up to `room` of the jobs that `which` describes, those first that could run first; how many they were.

    The candidates are a materialised list: PostgreSQL might otherwise run a LIMIT with SKIP LOCKED more than once.
    """
    if room <= 0:
        return 0
    skipping = " FOR UPDATE SKIP LOCKED" if c.dialect == "postgres" else ""
    claimed = c.execute(
        f"WITH claimable AS MATERIALIZED (SELECT id FROM jobs WHERE {_OPEN} AND {which}"
        f" AND kind IN ({_marks(wanted.kinds)}) ORDER BY wake_at LIMIT ?{skipping})"
        " UPDATE jobs SET state = 'running', owner = ?, epoch = epoch + 1, wake_key = NULL, wake_at = NULL"
        " WHERE id IN (SELECT id FROM claimable) RETURNING id",
        *parameters,
        *wanted.kinds,
        room,
        wanted.node_id,
    )
    return len(claimed.fetchall())


def _take_over(c: Connection, wanted: Wanted) -> tuple[int, list[JobRow]]:
    """Own the jobs of nodes that are no more; how many, and those that had this happen too often."""
    nodes.remove_dead(c, wanted.node_id)
    skipping = " FOR UPDATE SKIP LOCKED" if c.dialect == "postgres" else ""
    rows = c.execute(
        f"SELECT {COLUMNS} FROM jobs WHERE state = 'running' AND kind IN ({_marks(wanted.kinds)})"
        f" AND NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = jobs.owner) AND owner <> ?"
        f" ORDER BY coalesce(session_id, ''), id LIMIT ?{skipping}",
        *wanted.kinds,
        wanted.node_id,
        wanted.room,
    ).fetchall()
    orphans = [job_of(row) for row in rows]
    taken = [job for job in orphans if job.takeovers < MOST_TAKEOVERS]
    for job in taken:
        _own(c, job, wanted.node_id)
    return len(taken), [job for job in orphans if job.takeovers >= MOST_TAKEOVERS]


def _own(c: Connection, job: JobRow, node_id: str) -> None:
    c.execute("UPDATE jobs SET owner = ?, epoch = epoch + 1, takeovers = takeovers + 1 WHERE id = ?", node_id, job.id)
    if job.session_id is not None:
        data = {"job_id": job.id, "job_kind": job.kind, "node": node_id, "epoch": job.epoch + 1}
        with contextlib.suppress(NotFound):  # a session that was deleted needs no news
            log.append(c, job.session_id, "status", "resumed", data)


def _steps(c: Connection, job_id: str) -> Mapping[int, Memo]:
    rows = c.execute("SELECT n, name, digest, output FROM steps WHERE job_id = ?", job_id).fetchall()
    return {cast("int", row[0]): _memo(row) for row in rows}


def _memo(row: Row) -> Memo:
    _, name, digest, output = row
    return Memo(str(name), None if digest is None else str(digest), orjson.loads(cast("str", output)))


def _sleep(c: Connection, wanted: Wanted, now: float) -> float:
    """Of the jobs that wait, only the next moments: the engine looks again before those are over."""
    if not wanted.kinds:
        return float("inf")
    due = (
        f"SELECT min(wake_at) FROM jobs WHERE {_OPEN} AND state = 'waiting' AND wake_at > ? AND wake_at <= ?"
        f" AND kind IN ({_marks(wanted.kinds)})"
    )
    rows = (
        c.execute("SELECT min(lease) FROM nodes WHERE id <> ?", wanted.node_id).fetchone(),
        c.execute(due, now, now + AHEAD, *wanted.kinds).fetchone(),
    )
    found = [cast("float", row[0]) for row in rows if row is not None and row[0] is not None]
    return max(0.001, min(found, default=float("inf")) - now)


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
