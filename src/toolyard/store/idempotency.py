"""Rows of `idempotency`: the first answer to each write that carried an Idempotency-Key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from toolyard.store.base import Connection


@dataclass(frozen=True, slots=True)
class Claim:
    """Who answers a key. `status` None: not answered yet. `body` None beside a status: answered, and not kept."""

    request_hash: str
    owner: str
    status: int | None
    headers: str | None
    body: str | None


def claim(
    connection: Connection, principal: str, key: str, *, request_hash: str, owner: str, now: float, expires: float
) -> Claim:
    """Take the key for `owner` (`<node>/<claim>`), or return who has it. Claims and answers that expired are gone, and
    so are the claims of nodes that died before they answered."""
    connection.execute("DELETE FROM idempotency WHERE expires <= ?", now)
    taken = _take(connection, principal, key, request_hash=request_hash, owner=owner, expires=expires)
    if taken.status is None and taken.owner != owner and not _lives(connection, taken.owner.partition("/")[0]):
        release(connection, principal, key, owner=taken.owner)
        return _take(connection, principal, key, request_hash=request_hash, owner=owner, expires=expires)
    return taken


def _lives(connection: Connection, node: str) -> bool:
    found = connection.execute("SELECT 1 FROM nodes WHERE id = ? AND lease >= ?", node, connection.now())
    return found.fetchone() is not None


def _take(connection: Connection, principal: str, key: str, *, request_hash: str, owner: str, expires: float) -> Claim:
    connection.execute(
        "INSERT INTO idempotency (principal, key, request_hash, owner, expires) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        principal,
        key,
        request_hash,
        owner,
        expires,
    )
    row = connection.execute(
        "SELECT request_hash, owner, status, headers, body FROM idempotency WHERE principal = ? AND key = ?",
        principal,
        key,
    ).fetchone()
    if row is None:  # taken and given back by another transaction in between: nobody has it
        return Claim(request_hash, owner="", status=None, headers=None, body=None)
    return Claim(*cast("tuple[str, str, int | None, str | None, str | None]", row))


def answer(
    connection: Connection,
    principal: str,
    key: str,
    *,
    owner: str,
    status: int,
    headers: str,
    body: str | None,
    expires: float,
) -> None:
    """Keep the answer, if the key is still ours."""
    connection.execute(
        "UPDATE idempotency SET status = ?, headers = ?, body = ?, expires = ?"
        " WHERE principal = ? AND key = ? AND owner = ?",
        status,
        headers,
        body,
        expires,
        principal,
        key,
        owner,
    )


def release(connection: Connection, principal: str, key: str, *, owner: str) -> None:
    """Give the key back unanswered: nothing was done, so a retry may do it."""
    connection.execute(
        "DELETE FROM idempotency WHERE principal = ? AND key = ? AND owner = ? AND status IS NULL",
        principal,
        key,
        owner,
    )
