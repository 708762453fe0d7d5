"""Ending an open call from any node, whoever runs it."""

from __future__ import annotations

from functools import partial

from toolyard.calls.sessions import cancel_row
from toolyard.core.call import CallFailure
from toolyard.core.errors import ErrorCode
from toolyard.core.principal import Principal, Scope
from toolyard.core.record import CallRecord
from toolyard.durable import jobs
from toolyard.durable.engine import Engine
from toolyard.store.base import Connection, Store


def must_be_theirs(owner: str, principal: Principal) -> None:
    """
    Raises:
        Forbidden: it is somebody else's call, and the principal may not manage.
    """
    if owner != principal.label:
        principal.require(Scope.MANAGE)


async def cancel_on_record(store: Store, engine: Engine, record: CallRecord) -> bool:
    """Settle a call as cancelled and end its job, in one transaction. False when it had ended already.

    Its run, if there is one, can write nothing more: its job's epoch has moved on. The node learns by the hint.
    """
    cancelled = await store.tx(partial(_cancel, record))
    engine.hint(f"call:{record.id}", "approvals", *_others(record))
    return cancelled


def _cancel(record: CallRecord, c: Connection) -> bool:
    if record.run_job is not None and jobs.lock(c, record.run_job) is not None:
        jobs.cancel(c, record.run_job)
    failure = CallFailure(ErrorCode.CANCELLED, f"The call of {record.tool} was cancelled.")
    return cancel_row(c, record.id, failure, now=c.now())


def _others(record: CallRecord) -> list[str]:
    topics: list[str] = []
    if record.run_job is not None:
        topics.append(f"job:{record.run_job}")
    elif record.owner is not None:
        topics.append(f"node:{record.owner}")
    if record.session_id is not None:
        topics.append(f"session:{record.session_id}")
    return topics
