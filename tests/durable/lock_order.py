"""Records, for each transaction on PostgreSQL, in which order it locks rows, and says where that breaks the rule:
job, then call or approval, then session (its event last)."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from toolyard.store.postgres_connection import PostgresConnection

_RANKS = {"jobs": 1, "calls": 2, "approvals": 2, "sessions": 3}
_LOCKS = re.compile(
    r"\bUPDATE (?P<updated>jobs|calls|approvals|sessions)\b"
    r"|\bFROM (?P<locked>jobs|calls|approvals|sessions)\b.*\bFOR UPDATE\b",
    re.DOTALL,
)


class LockOrder:
    def __init__(self) -> None:
        self.violations: list[str] = []
        self.transactions = 0
        self.longest: tuple[str, ...] = ()
        self._held: dict[int, list[tuple[str, str, str]]] = {}

    def began(self, connection: PostgresConnection) -> None:
        self._held[id(connection.raw)] = []

    def ran(self, connection: PostgresConnection, sql: str, parameters: tuple[Any, ...]) -> None:
        match = _LOCKS.search(sql)
        if match is None or "SKIP LOCKED" in sql:  # which waits for nobody
            return
        table = match["updated"] or match["locked"]
        held = self._held.setdefault(id(connection.raw), [])
        rows = {row for _, row, _ in held}
        highest = max((_RANKS[one] for one, _, _ in held), default=0)
        if _RANKS[table] < highest and rows.isdisjoint(str(value) for value in parameters):
            order = " -> ".join(f"{one} [{text}]" for one, _, text in held)
            self.violations.append(f"{order} -> {table} [{' '.join(sql.split())[:80]}]")
        held.extend((table, str(value), " ".join(sql.split())[:60]) for value in parameters if isinstance(value, str))

    def ended(self, connection: PostgresConnection) -> None:
        held = self._held.pop(id(connection.raw), [])
        tables = tuple(dict.fromkeys(table for table, _, _ in held))
        self.transactions += bool(tables)
        self.longest = max(self.longest, tables, key=len)


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch) -> Generator[LockOrder]:
    order = LockOrder()
    execute, begin, commit = PostgresConnection.execute, PostgresConnection.begin, PostgresConnection.commit

    def recording_execute(self: PostgresConnection, sql: str, *parameters: Any) -> Any:
        order.ran(self, sql, parameters)
        return execute(self, sql, *parameters)

    def recording_begin(self: PostgresConnection, *, read_only: bool = False) -> None:
        order.began(self)
        begin(self, read_only=read_only)

    def recording_commit(self: PostgresConnection) -> None:
        order.ended(self)
        commit(self)

    monkeypatch.setattr(PostgresConnection, "execute", recording_execute)
    monkeypatch.setattr(PostgresConnection, "begin", recording_begin)
    monkeypatch.setattr(PostgresConnection, "commit", recording_commit)
    yield order
