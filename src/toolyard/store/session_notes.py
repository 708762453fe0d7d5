"""What legacy MCP sessions set after they began: a log level, and the resources they follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import orjson

from toolyard.store.base import Connection


@dataclass(frozen=True, slots=True)
class SessionNote:
    """Of one session, which its nonce names; `uris` are as its client named them."""

    nonce: str
    log_level: str | None = None
    uris: tuple[str, ...] = ()


def get(c: Connection, nonce: str) -> SessionNote:
    """As it stands; empty for a session that set nothing."""
    row = c.execute("SELECT nonce, log_level, uris FROM session_notes WHERE nonce = ?", nonce).fetchone()
    return SessionNote(nonce) if row is None else _note(row)


def put(c: Connection, note: SessionNote, *, expires: float) -> None:
    """`expires`: when the session runs out by itself (epoch seconds)."""
    now = c.now()
    c.execute("DELETE FROM session_notes WHERE expires < ?", now)
    c.execute(
        "INSERT INTO session_notes (nonce, log_level, uris, changed, expires) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (nonce) DO UPDATE SET log_level = excluded.log_level, uris = excluded.uris, "
        "changed = excluded.changed",
        note.nonce,
        note.log_level,
        orjson.dumps(note.uris).decode(),
        now,
        expires,
    )


def changed_since(c: Connection, since: float) -> list[tuple[SessionNote, float]]:
    """Every note that was written at `since` or later (the database's time), and when it expires."""
    rows = c.execute(
        "SELECT nonce, log_level, uris, expires FROM session_notes WHERE changed >= ? AND expires >= ?", since, c.now()
    ).fetchall()
    return [(_note(row), cast("float", row[3])) for row in rows]


def _note(row: Sequence[object]) -> SessionNote:
    uris = cast("list[str]", orjson.loads(cast("str", row[2])))
    return SessionNote(str(row[0]), cast("str | None", row[1]), tuple(uris))
