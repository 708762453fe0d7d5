"""A call that has to wait becomes rows, and nothing else: the call, its gates, and the job that will run it.

| it waits for | the call | a job |
|---|---|---|
| approvals | PENDING, `waiting` approval | `waiting` for `approval:<call id>`, at the latest until the first deadline |
| its client | PENDING, `waiting` client | none: the client is its owner |
| a node (an allowed gate, a `post_` tool) | PENDING | `ready` |

A gated call of a client tool is handed to its client by the job, once every gate is passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from toolyard.calls import session_events
from toolyard.calls.ticket import KIND, Ticket
from toolyard.core.approval import ApprovalRecord, Gate
from toolyard.core.ids import new_id
from toolyard.core.record import CallRecord
from toolyard.durable import jobs
from toolyard.durable.jobs import NewJob
from toolyard.store import approvals as approval_rows
from toolyard.store import calls as rows
from toolyard.store import open_calls
from toolyard.store.base import Connection

PICK_UP_TIMEOUT = 300.0
"""Seconds in which a client has to pick up a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCall:
    """A call that is about to be put on record as waiting. The ids are made here, so that it can be inserted twice."""

    record: CallRecord
    """As it will be, apart from what it waits for."""
    ticket: Ticket
    arguments: bytes
    gates: Mapping[Gate, str]
    timeout: float
    """Seconds in which the gates have to be decided."""
    pick_up: float = PICK_UP_TIMEOUT
    job_id: str
    approval_ids: Mapping[Gate, str]

    @property
    def topics(self) -> tuple[str, ...]:
        """What a node hints after the commit."""
        session = (f"session:{self.record.session_id}",) if self.record.session_id else ()
        approvals = ("approvals",) if self.gates else ()
        return (f"job:{self.job_id}", f"call:{self.record.id}", *session, *approvals)


def new_call(
    record: CallRecord, ticket: Ticket, arguments: bytes, *, gates: Mapping[Gate, str], timeout: float, pick_up: float
) -> NewCall:
    return NewCall(
        record=record,
        ticket=ticket,
        arguments=arguments,
        gates=gates,
        timeout=timeout,
        pick_up=pick_up,
        job_id=new_id("job"),
        approval_ids={gate: new_id("appr") for gate in gates},
    )


def wake_key(call_id: str) -> str:
    """What the job of a gated call waits for."""
    return f"approval:{call_id}"


def insert(c: Connection, new: NewCall) -> CallRecord:
    """Put it on record. Returns it, or the earlier call with its idempotency key. Safe to run again."""
    now = c.now()
    closed = [gate for gate in new.gates if not _is_open(c, new, gate)]
    record = replace(new.record, **_waiting(new, closed, now))
    if not open_calls.insert(c, record):
        return _on_record(c, record)
    if record.run_job is not None:
        jobs.insert(
            c,
            NewJob(
                record.run_job,
                KIND,
                new.ticket.to_wire(),
                session_id=record.session_id,
                state="waiting" if closed else "ready",
                wake_at=record.deadline if closed else None,
                wake_key=wake_key(record.id) if closed else None,
            ),
        )
    approvals = [_approval(new, gate, now) for gate in closed]
    for approval in approvals:
        approval_rows.insert(c, approval)
    if record.execution == "node" or record.run_job is None:
        session_events.called(c, record, new.arguments)
    for approval in approvals:
        session_events.requested(c, approval)
    return record


def holder(gate: Gate, session_id: str | None, principal: str) -> str:
    """Whom an allowance covers. One gate's allowance never opens the other."""
    whose = f"session:{session_id}" if session_id is not None else f"principal:{principal}"
    return f"user:{whose}" if gate is Gate.USER else whose


def _is_open(c: Connection, new: NewCall, gate: Gate) -> bool:
    covered = holder(gate, new.record.session_id, new.record.principal)
    return approval_rows.allowed_by(c, covered, new.record.tool, new.ticket.definition_hash) is not None


def _waiting(new: NewCall, closed: list[Gate], now: float) -> dict[str, object]:
    if closed:
        return {"run_job": new.job_id, "waiting": "approval", "deadline": now + new.timeout}
    if new.record.execution == "client" and new.ticket.after is None:
        return {"waiting": "client", "deadline": now + new.pick_up}
    return {"run_job": new.job_id}


def _approval(new: NewCall, gate: Gate, now: float) -> ApprovalRecord:
    return ApprovalRecord(
        id=new.approval_ids[gate],
        call_id=new.record.id,
        gate=gate,
        tool=new.record.tool,
        arguments=new.arguments.decode(),
        principal=new.record.principal,
        server=new.record.server,
        session_id=new.record.session_id,
        why=new.gates[gate],
        created=now,
        deadline=now + new.timeout,
    )


def _on_record(c: Connection, record: CallRecord) -> CallRecord:
    if record.idempotency_key is not None:
        earlier = rows.by_idempotency_key(c, record.principal, record.idempotency_key)
        if earlier is not None:
            return earlier
    return rows.get(c, record.id) or record
