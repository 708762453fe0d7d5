"""Legacy MCP sessions that their client ended before they ran out; every other session needs no row."""

from __future__ import annotations

from toolyard.store.base import Connection


def end(connection: Connection, digest: str, expires: float) -> None:
    """`digest` stands for the session id; `expires` is when the id runs out by itself (epoch seconds)."""
    connection.execute("DELETE FROM ended_sessions WHERE expires < ?", connection.now())
    connection.execute(
        "INSERT INTO ended_sessions (digest, expires) VALUES (?, ?) ON CONFLICT DO NOTHING", digest, expires
    )


def ended(connection: Connection) -> frozenset[str]:
    """The digests of all sessions that were ended and have not run out yet."""
    rows = connection.execute("SELECT digest FROM ended_sessions WHERE expires >= ?", connection.now()).fetchall()
    return frozenset(str(row[0]) for row in rows)
