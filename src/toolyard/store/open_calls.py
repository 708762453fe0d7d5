"""Rows of `calls` that have not ended: parked, begun, handed to a client, or left behind by a node that died.

Every statement that moves a call names the states it may move from, so no interleaving can make another move.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolyard.core.call import CallFailure
from toolyard.core.errors import ErrorCode
from toolyard.core.json import dumps
from toolyard.core.record import CallRecord
from toolyard.store.base import Connection
from toolyard.store.calls import SELECTED, get, record_of

INTERRUPTED = CallFailure(
    ErrorCode.INTERRUPTED,
    "Toolyard stopped while this call was running; whether it took effect is not known.",
    "Check its effect before calling again.",
)
_FAIL = (
    "UPDATE calls SET state = 'ERROR', error_code = ?, error = ?, suggestion = ?, finished = ?, waiting = NULL "
    "WHERE id = ? AND state IN ('PENDING', 'PROCESSING')"
)


def insert(c: Connection, record: CallRecord) -> bool:
    """Put a call that has to wait on record; False when its id or its idempotency key is there already."""
    return (
        c.execute(
            "INSERT INTO calls (id, tool, namespace, principal, origin, server, state, arguments, arguments_ref, "
            "idempotency_key, request_hash, created, input_bytes, session_id, job_id, run_job, execution, deadline, "
            "waiting, details) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            record.id,
            record.tool,
            record.namespace,
            record.principal,
            record.origin.value,
            record.server,
            record.state.value,
            record.arguments,
            record.arguments_ref,
            record.idempotency_key,
            record.request_hash,
            record.created,
            record.input_bytes,
            record.session_id,
            record.job_id,
            record.run_job,
            record.execution,
            record.deadline,
            record.waiting,
            dumps(record.details).decode() if record.details else None,
        ).rowcount
        == 1
    )


def lock(c: Connection, call_id: str) -> CallRecord | None:
    """The call, held until the transaction ends. The caller holds the locks of its jobs already."""
    if c.dialect == "sqlite":
        return get(c, call_id)
    row = c.execute(f"SELECT {SELECTED} FROM calls WHERE id = ? FOR UPDATE", call_id).fetchone()  # noqa: S608
    return record_of(row) if row else None


def replace_arguments(c: Connection, call_id: str, arguments: str) -> None:
    """What will be run, where a reviewer edited it. The approval keeps both versions."""
    c.execute(
        "UPDATE calls SET arguments = ?, arguments_ref = NULL, input_bytes = ? WHERE id = ? AND state = 'PENDING'",
        arguments,
        len(arguments.encode()),
        call_id,
    )


def begin(c: Connection, call_id: str, *, started: float, owner: str, epoch: int) -> bool:
    """PENDING -> PROCESSING on a node, before its effect. True also when this very run has begun it already: then the
    answer to the first COMMIT was lost, and the transaction runs again."""
    begun = c.execute(
        "UPDATE calls SET state = 'PROCESSING', started = ?, owner = ?, epoch = ?, waiting = NULL, deadline = NULL "
        "WHERE id = ? AND state = 'PENDING' AND execution = 'node'",
        started,
        owner,
        epoch,
        call_id,
    )
    return begun.rowcount == 1 or _is_run_by(c, call_id, owner=owner, epoch=epoch, started=started)


def begin_again(c: Connection, call_id: str, *, owner: str, epoch: int) -> bool:
    """A call that an earlier run of its job left PROCESSING now belongs to this run. The epoch is the same when this
    node lost the database, and began the run anew."""
    return (
        c.execute(
            "UPDATE calls SET owner = ?, epoch = ? WHERE id = ? AND state = 'PROCESSING' AND epoch <= ?",
            owner,
            epoch,
            call_id,
            epoch,
        ).rowcount
        == 1
    )


def _is_run_by(c: Connection, call_id: str, *, owner: str, epoch: int, started: float) -> bool:
    found = c.execute(
        "SELECT 1 FROM calls WHERE id = ? AND state = 'PROCESSING' AND owner = ? AND epoch = ? AND started = ?",
        call_id,
        owner,
        epoch,
        started,
    )
    return found.fetchone() is not None


def hand_to_client(c: Connection, call_id: str, *, deadline: float) -> bool:
    """Its approvals are given: from now on it waits for its client."""
    return (
        c.execute(
            "UPDATE calls SET waiting = 'client', deadline = ? "
            "WHERE id = ? AND state = 'PENDING' AND execution = 'client' AND (waiting IS NULL OR waiting = 'approval')",
            deadline,
            call_id,
        ).rowcount
        == 1
    )


def pick_up(c: Connection, call_id: str, *, started: float) -> bool:
    """PENDING -> PROCESSING by its client."""
    return (
        c.execute(
            "UPDATE calls SET state = 'PROCESSING', started = ?, deadline = NULL "
            "WHERE id = ? AND state = 'PENDING' AND execution = 'client' AND waiting = 'client'",
            started,
            call_id,
        ).rowcount
        == 1
    )


def fail(c: Connection, call_id: str, failure: CallFailure, *, finished: float, epoch: int | None = None) -> bool:
    """An open call -> ERROR, with `epoch` only for the run that has it; False when it had ended already."""
    values = (failure.code.value, failure.message, failure.suggestion, finished, call_id)
    if epoch is None:
        return c.execute(_FAIL, *values).rowcount == 1
    return c.execute(f"{_FAIL} AND epoch = ?", *values, epoch).rowcount == 1


def of_client(c: Connection, session_id: str) -> list[CallRecord]:
    """What a session's client has to do, oldest first."""
    rows = c.execute(
        f"SELECT {SELECTED} FROM calls WHERE session_id = ? AND execution = 'client' AND waiting = 'client' "  # noqa: S608
        "AND state IN ('PENDING', 'PROCESSING') ORDER BY created, rid",
        session_id,
    ).fetchall()
    return [record_of(row) for row in rows]


def states_of(c: Connection, call_ids: Sequence[str]) -> list[CallRecord]:
    """Those of the calls that exist. A few hundred at a time."""
    found: list[CallRecord] = []
    for start in range(0, len(call_ids), 200):
        some = call_ids[start : start + 200]
        marks = ", ".join("?" * len(some))
        rows = c.execute(f"SELECT {SELECTED} FROM calls WHERE id IN ({marks})", *some).fetchall()  # noqa: S608
        found += [record_of(row) for row in rows]
    return found


def unclaimed(c: Connection, *, at_most: int) -> list[CallRecord]:
    """Calls that no client picked up in time, by the database's clock."""
    rows = c.execute(
        f"SELECT {SELECTED} FROM calls WHERE execution = 'client' AND state = 'PENDING' AND waiting = 'client' "  # noqa: S608
        "AND deadline < ? ORDER BY deadline LIMIT ?",
        c.now(),
        at_most,
    ).fetchall()
    return [record_of(row) for row in rows]


def living_nodes(c: Connection) -> frozenset[str]:
    rows = c.execute("SELECT id FROM nodes WHERE lease >= ?", c.now()).fetchall()
    return frozenset(str(node_id) for (node_id,) in rows)


def interrupt_orphans(c: Connection, *, now: float, spared: str = "") -> list[CallRecord]:
    """Settle the direct calls of nodes that have no lease: the outcome of these calls is not known.

    `spared` is the node that asks: it lives, even when it was away too long to renew its lease.

    Calls with a job of their own are not among them: whoever takes over the job decides about those.
    """
    rows = c.execute(
        "UPDATE calls SET state = 'ERROR', error_code = ?, error = ?, suggestion = ?, finished = ? "
        "WHERE state IN ('PENDING', 'PROCESSING') AND execution = 'node' AND run_job IS NULL "
        "AND COALESCE(owner, '') <> ? AND NOT EXISTS "
        "(SELECT 1 FROM nodes WHERE nodes.id = calls.owner AND nodes.lease >= ?) RETURNING id",
        INTERRUPTED.code.value,
        INTERRUPTED.message,
        INTERRUPTED.suggestion,
        now,
        spared or "-",
        c.now(),
    ).fetchall()
    return sorted(states_of(c, [str(call_id) for (call_id,) in rows]), key=_by_session)


def _by_session(record: CallRecord) -> tuple[str, float, str]:
    """Sessions are locked in one order everywhere."""
    return record.session_id or "", record.created, record.id
