"""Rows of `api_keys`. A key's secret is never here, only its SHA-256."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from toolyard.store.base import Connection, Row

_COLUMNS = "id, name, secret_hash, scopes, created, expires, last_used, revoked"


@dataclass(frozen=True, slots=True)
class KeyRow:
    """`scopes` are separated by spaces; times are epoch seconds."""

    id: str
    name: str
    secret_hash: str
    scopes: str
    created: float
    expires: float | None = None
    last_used: float | None = None
    revoked: float | None = None


def insert(connection: Connection, row: KeyRow) -> bool:
    """Add a key; False when another live key has its name. An expired one gives its name up."""
    connection.execute(
        "UPDATE api_keys SET revoked = expires WHERE name = ? AND revoked IS NULL AND expires <= ?",
        row.name,
        row.created,
    )
    connection.execute(
        "INSERT INTO api_keys (id, name, secret_hash, scopes, created, expires) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        row.id,
        row.name,
        row.secret_hash,
        row.scopes,
        row.created,
        row.expires,
    )
    return find(connection, row.id) is not None


def find(connection: Connection, key_id: str) -> KeyRow | None:
    found = connection.execute(f"SELECT {_COLUMNS} FROM api_keys WHERE id = ?", key_id).fetchone()  # noqa: S608
    return None if found is None else _row(found)


def all_keys(connection: Connection) -> Sequence[KeyRow]:
    """Newest first, revoked ones included: the audit log names them."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM api_keys ORDER BY created DESC, id").fetchall()  # noqa: S608
    return [_row(row) for row in rows]


def revoke(connection: Connection, key_id: str, at: float) -> None:
    """Revoking twice keeps the first time."""
    connection.execute("UPDATE api_keys SET revoked = ? WHERE id = ? AND revoked IS NULL", at, key_id)


def touch(connection: Connection, key_id: str, at: float, *, at_most_every: float) -> None:
    """Write the last use, unless any node wrote one within `at_most_every` seconds."""
    connection.execute(
        "UPDATE api_keys SET last_used = ? WHERE id = ? AND (last_used IS NULL OR last_used <= ?)",
        at,
        key_id,
        at - at_most_every,
    )


def _row(row: Row) -> KeyRow:
    return KeyRow(*cast("tuple[str, str, str, str, float, float | None, float | None, float | None]", row))
