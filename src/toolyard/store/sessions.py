"""Rows of `sessions`. Their numbered events are `toolyard.durable.log`'s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import orjson

from toolyard.core.errors import BadInput
from toolyard.core.json import JsonObject, dumps
from toolyard.store.base import Connection, Row, SqlValue

_COLUMNS = "id, principal, agent_id, seq, active_turn, customizations, meta, created, deleted"
_NEVER = 1e12
"""Epoch seconds: as long as there is a session, its idempotency keys are remembered."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """Times are epoch seconds by the database's clock."""

    id: str
    principal: str
    agent_id: str | None
    seq: int
    active_turn: str | None
    customizations: JsonObject
    meta: JsonObject
    created: float
    deleted: float | None


def insert(
    c: Connection,
    session_id: str,
    *,
    principal: str,
    agent_id: str | None,
    customizations: JsonObject,
    meta: JsonObject,
) -> None:
    c.execute(
        "INSERT INTO sessions (id, principal, agent_id, customizations, meta, created) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        session_id,
        principal,
        agent_id,
        dumps(customizations).decode(),
        dumps(meta).decode(),
        c.now(),
    )


def get(c: Connection, session_id: str) -> SessionRow | None:
    row = c.execute(f"SELECT {_COLUMNS} FROM sessions WHERE id = ?", session_id).fetchone()  # noqa: S608
    return _row(row) if row else None


def page(
    c: Connection, *, principal: str | None, limit: int, cursor: str | None
) -> tuple[list[SessionRow], str | None]:
    """Those that are not deleted, newest first, of one principal or of all; the cursor of the next page is a session.

    Raises:
        BadInput: the cursor is not one of ours.
    """
    where, values = ["deleted IS NULL"], list[SqlValue]()
    if principal is not None:
        where.append("principal = ?")
        values.append(principal)
    if cursor is not None:
        last = get(c, cursor)
        if last is None:
            raise BadInput(
                "This cursor is not one that we gave out.", where="cursor", suggestion="Start again without a cursor."
            )
        where.append("(created < ? OR (created = ? AND id < ?))")
        values += [last.created, last.created, last.id]
    rows = c.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE {' AND '.join(where)} ORDER BY created DESC, id DESC LIMIT ?",  # noqa: S608
        *values,
        limit + 1,
    ).fetchall()
    found = [_row(row) for row in rows[:limit]]
    return found, found[-1].id if len(rows) > limit else None


def _row(row: Row) -> SessionRow:
    return SessionRow(
        id=str(row[0]),
        principal=str(row[1]),
        agent_id=cast("str | None", row[2]),
        seq=cast("int", row[3]),
        active_turn=cast("str | None", row[4]),
        customizations=orjson.loads(str(row[5] or "{}")),
        meta=orjson.loads(str(row[6] or "{}")),
        created=cast("float", row[7]),
        deleted=cast("float | None", row[8]),
    )


def delete(c: Connection, session_id: str) -> bool:
    """Close a session for good; its events stay on record. False when it was closed already."""
    return (
        c.execute("UPDATE sessions SET deleted = ? WHERE id = ? AND deleted IS NULL", c.now(), session_id).rowcount == 1
    )


def open_calls(c: Connection, session_id: str) -> list[tuple[str, str | None]]:
    """The session's calls that have not ended: id and own job, jobs in order."""
    rows = c.execute(
        "SELECT id, run_job FROM calls WHERE session_id = ? AND state IN ('PENDING', 'PROCESSING') "
        "ORDER BY run_job, id",
        session_id,
    ).fetchall()
    return [(str(call_id), cast("str | None", job)) for call_id, job in rows]


def claim_key(
    c: Connection, session_id: str, key: str, request_hash: str, answer: JsonObject
) -> tuple[str, JsonObject]:
    """Take an idempotency key with its answer, or find the first one: the request's hash and the answer on record."""
    holder = f"session:{session_id}"
    c.execute(
        "INSERT INTO idempotency (principal, key, request_hash, owner, body, expires) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        holder,
        key,
        request_hash,
        holder,
        dumps(answer).decode(),
        _NEVER,
    )
    row = c.execute(
        "SELECT request_hash, body FROM idempotency WHERE principal = ? AND key = ?", holder, key
    ).fetchone()
    if row is None:
        return request_hash, answer
    return str(row[0]), cast("JsonObject", orjson.loads(str(row[1])))


def keep_answer(c: Connection, session_id: str, key: str, answer: JsonObject) -> None:
    """What a repeated key is answered from now on."""
    c.execute(
        "UPDATE idempotency SET body = ? WHERE principal = ? AND key = ?",
        dumps(answer).decode(),
        f"session:{session_id}",
        key,
    )
