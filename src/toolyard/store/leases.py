"""Rows of `call_leases`: until when a call that a client executes counts as alive, by the database's clock."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from toolyard.store.base import Connection

_EXTEND = {
    "sqlite": (
        "UPDATE call_leases SET lease_until = max(lease_until, ? - beats.value) "
        "FROM (SELECT key, value FROM json_each(?)) AS beats WHERE call_id = beats.key RETURNING call_id"
    ),
    "postgres": (
        "UPDATE call_leases SET lease_until = greatest(lease_until, ? - CAST(beats.value AS double precision)) "
        "FROM jsonb_each_text(CAST(? AS jsonb)) AS beats WHERE call_id = beats.key RETURNING call_id"
    ),
}


def start(c: Connection, call_id: str, seconds: float) -> None:
    """A call is alive for `seconds` from now, if no lease says so for longer."""
    until = c.now() + seconds
    c.execute(
        "INSERT INTO call_leases (call_id, lease_until) VALUES (?, ?) ON CONFLICT (call_id) DO UPDATE SET "
        "lease_until = CASE WHEN call_leases.lease_until > excluded.lease_until THEN call_leases.lease_until "
        "ELSE excluded.lease_until END",
        call_id,
        until,
    )


def extend(c: Connection, ages: Mapping[str, float], seconds: float) -> set[str]:
    """Each call is alive for `seconds` from its last beat, `ages` seconds ago. One statement; the calls that have a
    lease: the others ended, or lost their row."""
    rows = c.execute(_EXTEND[c.dialect], c.now() + seconds, orjson.dumps(ages).decode()).fetchall()
    return {str(call_id) for (call_id,) in rows}


def end(c: Connection, call_id: str) -> None:
    c.execute("DELETE FROM call_leases WHERE call_id = ?", call_id)


def silent(c: Connection, *, at_most: int) -> list[str]:
    """Calls whose lease has ended."""
    rows = c.execute(
        "SELECT call_id FROM call_leases WHERE lease_until < ? ORDER BY lease_until LIMIT ?", c.now(), at_most
    ).fetchall()
    return [str(call_id) for (call_id,) in rows]


def is_silent(c: Connection, call_id: str) -> bool:
    """Looked at again under the call's lock, as a beat may have come in between."""
    return (
        c.execute("SELECT 1 FROM call_leases WHERE call_id = ? AND lease_until < ?", call_id, c.now()).fetchone()
        is not None
    )


def start_missing(c: Connection, seconds: float) -> int:
    """A fresh lease for each picked-up call that lost its row: never an abandonment."""
    rows = c.execute(
        "SELECT id FROM calls WHERE execution = 'client' AND state IN ('PENDING', 'PROCESSING') "
        "AND state = 'PROCESSING' AND NOT EXISTS (SELECT 1 FROM call_leases WHERE call_id = calls.id)"
    ).fetchall()
    for (call_id,) in rows:
        start(c, str(call_id), seconds)
    return len(rows)
