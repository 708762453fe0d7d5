"""Rows of `login_links` and `console_sessions`. Both are found by the SHA-256 of what the person holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from toolyard.store.base import Connection


@dataclass(frozen=True, slots=True)
class SessionRow:
    id_hash: str
    csrf: str
    operator: str
    created: float
    expires: float


def any_login_yet(connection: Connection) -> bool:
    """Whether a link was ever used: until then each start prints a new one."""
    return connection.execute("SELECT 1 FROM login_links WHERE used IS NOT NULL LIMIT 1").fetchone() is not None


def insert_link(connection: Connection, token_hash: str, created: float, expires: float) -> None:
    connection.execute(
        "INSERT INTO login_links (token_hash, created, expires) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        token_hash,
        created,
        expires,
    )


def drop_unused_links(connection: Connection, except_hash: str) -> None:
    connection.execute("DELETE FROM login_links WHERE used IS NULL AND token_hash <> ?", except_hash)


def redeem(connection: Connection, token_hash: str, session: SessionRow) -> bool:
    """Use the link up and open its session, both or neither; False when it is unknown, used or expired."""
    if not _is_stored(connection, session.id_hash):
        used = connection.execute(
            "UPDATE login_links SET used = ? WHERE token_hash = ? AND used IS NULL AND expires > ?",
            session.created,
            token_hash,
            session.created,
        )
        if used.rowcount != 1:
            return False
        connection.execute("DELETE FROM console_sessions WHERE expires <= ?", session.created)
        connection.execute(
            "INSERT INTO console_sessions (id_hash, csrf, operator, created, expires) VALUES (?, ?, ?, ?, ?)",
            session.id_hash,
            session.csrf,
            session.operator,
            session.created,
            session.expires,
        )
    return True


def find_session(connection: Connection, id_hash: str) -> SessionRow | None:
    row = connection.execute(
        "SELECT id_hash, csrf, operator, created, expires FROM console_sessions WHERE id_hash = ?", id_hash
    ).fetchone()
    return None if row is None else SessionRow(*cast("tuple[str, str, str, float, float]", row))


def delete_session(connection: Connection, id_hash: str) -> None:
    connection.execute("DELETE FROM console_sessions WHERE id_hash = ?", id_hash)


def _is_stored(connection: Connection, id_hash: str) -> bool:
    """True when this very transaction was committed before and is being repeated."""
    return find_session(connection, id_hash) is not None
