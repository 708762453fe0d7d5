"""Counting a node's commits, and ending the process just before or just after one of them.

Only commits that changed something count, and not those of a node's own lease: they come by the clock, not by what the
node is asked to do.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

_NOT_COUNTED = ("nodes", "call_leases", "schedules", "keys")
STATUS = 86
"""How a process ends that ended itself here."""


_begun = threading.Event()


def begin() -> None:
    """Count from here: the node has started."""
    _begun.set()


class _Watch:
    def __init__(self, crash_at: int | None, *, after: bool, count_to: Path | None) -> None:
        self._crash_at = crash_at
        self._after = after
        self._count_to = count_to
        self._count = 0
        self._guard = threading.Lock()

    def before(self) -> int:
        """The number of the commit that comes now; 0 before the node has begun."""
        if not _begun.is_set():
            return 0
        with self._guard:
            self._count += 1
            number = self._count
            if self._count_to is not None:
                with self._count_to.open("ab") as file:
                    file.write(b".")
        if number == self._crash_at and not self._after:
            os._exit(STATUS)
        return number

    def after(self, number: int) -> None:
        if number and number == self._crash_at and self._after:
            os._exit(STATUS)


def watch(crash_at: int | None, *, after: bool, count_to: str | None) -> None:
    """In this process, on both engines, once it has begun."""
    watched = _Watch(crash_at, after=after, count_to=Path(count_to) if count_to else None)
    _watch_sqlite(watched)
    _watch_postgres(watched)


def _counts(sql: str) -> bool:
    words = sql.lstrip().split(None, 3)
    if not words or words[0].upper() not in ("INSERT", "UPDATE", "DELETE"):
        return False
    table = words[1] if words[0].upper() == "UPDATE" else words[2] if len(words) > 2 else ""
    return table.split("(")[0].lower() not in _NOT_COUNTED


def _watch_sqlite(watched: _Watch) -> None:
    from toolyard.store import sqlite as engine

    class Connection(sqlite3.Connection):
        changed = False

        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql == "COMMIT" and self.changed:
                self.changed = False
                number = watched.before()
                cursor = super().execute(sql, *parameters)
                watched.after(number)
                return cursor
            cursor = super().execute(sql, *parameters)
            if sql in ("COMMIT", "ROLLBACK"):
                self.changed = False
            elif _counts(sql) and cursor.rowcount != 0:
                self.changed = True
            return cursor

    class Module:
        def __getattr__(self, name: str) -> Any:
            return getattr(sqlite3, name)

        def connect(self, *arguments: Any, **named: Any) -> sqlite3.Connection:
            return sqlite3.connect(*arguments, factory=Connection, **named)

    engine.sqlite3 = Module()  # type: ignore[assignment]


def _watch_postgres(watched: _Watch) -> None:
    from toolyard.store.postgres_connection import PostgresConnection

    changed: set[int] = set()
    execute, commit, rollback = PostgresConnection.execute, PostgresConnection.commit, PostgresConnection.rollback

    def watched_execute(self: PostgresConnection, sql: str, *parameters: Any) -> Any:
        rows = execute(self, sql, *parameters)
        if _counts(sql) and rows.rowcount != 0:
            changed.add(id(self.raw))
        return rows

    def watched_commit(self: PostgresConnection) -> None:
        if id(self.raw) not in changed:
            commit(self)
            return
        changed.discard(id(self.raw))
        number = watched.before()
        commit(self)
        watched.after(number)

    def watched_rollback(self: PostgresConnection) -> None:
        changed.discard(id(self.raw))
        rollback(self)

    PostgresConnection.execute = watched_execute  # type: ignore[method-assign]
    PostgresConnection.commit = watched_commit  # type: ignore[method-assign]
    PostgresConnection.rollback = watched_rollback  # type: ignore[method-assign]
