"""Defects put into a node on purpose, to see that the checker notices. None of them is in `src`.

Each replaces one guard by what somebody might have written instead. Names that no longer exist in `src` raise here, so
a mutant cannot quietly turn into the original.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

MUTANTS: dict[str, Callable[[], None]] = {}


def apply(name: str) -> None:
    """Into this process, for good."""
    MUTANTS[name]()


def _mutant(function: Callable[[], None]) -> Callable[[], None]:
    MUTANTS[function.__name__.strip("_")] = function
    return function


def replace(owner: Any, name: str, replacement: Any) -> Any:
    """The original."""
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    return original


@_mutant
def fence_removed() -> None:
    """A node that was taken for dead goes on as if nothing had happened."""
    from toolyard.durable import jobs
    from toolyard.durable.nodes import Lease
    from toolyard.durable.runs import Runs

    def finish(c: Any, job_id: str, epoch: int, state: str, *_: Any) -> None:
        c.execute("UPDATE jobs SET state = ?, owner = NULL, finished = ? WHERE id = ?", state, c.now(), job_id)

    def park(c: Any, job_id: str, epoch: int, key: str | None, wake_at: float | None) -> None:
        c.execute(
            "UPDATE jobs SET state = 'waiting', owner = NULL, wake_key = ?, wake_at = ? WHERE id = ?",
            key, wake_at, job_id,
        )  # fmt: skip

    replace(jobs, "fence", lambda c, job_id, epoch: None)
    replace(jobs, "finish", finish)
    replace(jobs, "park", park)
    replace(Lease, "check", lambda self: None)
    replace(Runs, "cancel_lost", lambda self, mine: None)


@_mutant
def memo_ignored() -> None:
    """Whoever takes a job over does all of its steps again."""
    from toolyard.durable import claims

    replace(claims, "_steps", lambda c, job_id: {})


@_mutant
def cancel_without_epoch() -> None:
    """A cancelled run may go on writing."""
    from toolyard.durable import jobs

    def cancel(c: Any, job_id: str) -> bool:
        return bool(
            c.execute(
                "UPDATE jobs SET state = 'cancelled', owner = NULL, wake_key = NULL, wake_at = NULL, finished = ? "
                "WHERE id = ? AND state IN ('ready', 'running', 'waiting')",
                c.now(), job_id,
            ).rowcount == 1
        )  # fmt: skip

    replace(jobs, "cancel", cancel)


@_mutant
def plain_counter() -> None:
    """Each node counts the events of a session for itself."""
    from toolyard.durable import log

    counters: dict[str, itertools.count[int]] = {}

    def append(c: Any, session_id: str, kind: str, type: str, data: Any, turn: str | None = None) -> int:  # noqa: A002, PLR0917
        from toolyard.core.json import dumps

        if session_id not in counters:
            row = c.execute("SELECT coalesce(max(seq), 0) FROM events WHERE session_id = ?", session_id).fetchone()
            counters[session_id] = itertools.count(row[0] + 1)
        number = next(counters[session_id])
        c.execute(
            "INSERT INTO events (session_id, seq, kind, type, data, turn, at) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            session_id, number, kind, type, dumps(data).decode(), turn, c.now(),
        )  # fmt: skip
        c.execute("UPDATE sessions SET seq = ? WHERE id = ? AND seq < ?", number, session_id, number)
        return number

    replace(log, "append", append)


@_mutant
def acknowledged_before_commit() -> None:
    """A write that nothing is returned from is said to be done, and done a moment later."""
    from toolyard.store.base import Mergeable
    from toolyard.store.postgres import PostgresStore
    from toolyard.store.sqlite import SqliteStore

    for store in (SqliteStore, PostgresStore):
        original = store.tx

        async def tx(self: Any, fn: Any, original: Any = original) -> Any:
            if not isinstance(fn, Mergeable):
                return await original(self, fn)
            asyncio.get_running_loop().call_later(1.0, self.submit, fn)
            return None

        replace(store, "tx", tx)


@_mutant
def decision_check_removed() -> None:
    """Whoever decides last wins."""
    from toolyard.store import approvals

    def decide(c: Any, approval_id: str, decision: Any, *, by: str | None, at: float, **more: Any) -> bool:
        scope = more.get("scope")
        c.execute(
            "UPDATE approvals SET decision = ?, decided_by = ?, decided_at = ?, reason = ?, edited_arguments = ?, "
            "scope = ? WHERE id = ?",
            decision.value, by, at, more.get("reason"), more.get("edited_arguments"), scope and scope.value,
            approval_id,
        )  # fmt: skip
        return True

    replace(approvals, "decide", decide)
    _ask_although_decided()


def _ask_although_decided() -> None:
    """The look before the transaction only spares it; it is no guard, and must not hide that the guard is missing."""
    from toolyard.core.approval import ApprovalRecord

    replace(ApprovalRecord, "is_decided", property(lambda self: False))


@_mutant
def processing_run_again() -> None:
    """A call whose node died is run again, whatever it does."""
    from toolyard.calls import waiting

    replace(waiting, "may_run_again", lambda entry: True)


@_mutant
def beats_not_flushed() -> None:
    """Signs of life stay in the memory of the node that got them."""
    from toolyard.calls.heartbeats import Heartbeats

    async def flush(self: Any) -> None:
        return None

    replace(Heartbeats, "flush", flush)
