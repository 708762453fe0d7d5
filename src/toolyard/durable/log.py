"""The event log of a session: append-only, numbered 1, 2, 3, ... without gaps, in the order of the commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import orjson

from toolyard.core.errors import NotFound
from toolyard.core.json import JsonObject, dumps
from toolyard.durable.jobs import CLOCK
from toolyard.store.base import Connection


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """`seq` is the offset that readers go on after. `at` is epoch seconds by the database's clock."""

    session_id: str
    seq: int
    kind: str
    type: str
    data: JsonObject
    turn: str | None
    at: float


def append(  # noqa: PLR0917 - a row's columns, in their order
    c: Connection,
    session_id: str,
    kind: str,
    type: str,  # noqa: A002 - the wire's word
    data: JsonObject,
    turn: str | None = None,
) -> int:
    """Add an event; its number. Comes last in its transaction: it locks the session until the end.

    It is not safe to repeat by itself: it belongs behind a conditional update that a second run would not pass.
    Afterwards: `engine.hint(f"session:{session_id}")`.

    Raises:
        NotFound: there is no such session.
    """
    counted = c.execute(
        f"UPDATE sessions SET seq = seq + 1 WHERE id = ? RETURNING seq, {CLOCK[c.dialect]}", session_id
    ).fetchall()
    if not counted:
        raise NotFound(f"There is no session {session_id!r}.")
    seq, at = counted[0]
    c.execute(
        "INSERT INTO events (session_id, seq, kind, type, data, turn, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        session_id,
        seq,
        kind,
        type,
        dumps(data).decode(),
        turn,
        at,
    )
    return cast("int", seq)


def page(c: Connection, session_id: str, after: int, limit: int) -> list[SessionEvent]:
    """Up to `limit` events behind number `after`, oldest first."""
    rows = c.execute(
        "SELECT seq, kind, type, data, turn, at FROM events WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        session_id,
        after,
        limit,
    ).fetchall()
    return [
        SessionEvent(
            session_id,
            cast("int", seq),
            str(kind),
            str(type_),
            orjson.loads(cast("str", data)),
            None if turn is None else str(turn),
            cast("float", at),
        )
        for seq, kind, type_, data, turn, at in rows
    ]
