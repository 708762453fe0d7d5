"""Legacy MCP sessions that their client ended before they ran out; every other session needs no row."""

from __future__ import annotations

from typing import cast

from toolyard.store.base import Connection


def end(connection: Connection, digest: str, expires: float) -> None:
    """`digest` stands for the session id; `expires` is when the id runs out by itself (epoch seconds)."""
    now = connection.now()
    connection.execute("DELETE FROM ended_sessions WHERE expires < ?", now)
    connection.execute(
        "INSERT INTO ended_sessions (digest, ended, expires) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        digest,
        now,
        expires,
    )


def ended_since(connection: Connection, since: float) -> tuple[float, list[tuple[str, float]]]:
    """The database's time, and `(digest, expires)` of every session that was ended at `since` or later."""
    now = connection.now()
    rows = connection.execute(
        "SELECT digest, expires FROM ended_sessions WHERE ended >= ? AND expires >= ?", since, now
    ).fetchall()
    return now, [(str(digest), cast("float", expires)) for digest, expires in rows]
