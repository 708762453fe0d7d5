"""One SQLite connection as our `Connection`, and SQLite's errors in our tree."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from toolyard.core.errors import Conflict, StoreCorrupt, StoreError, StoreUnavailable
from toolyard.store.base import SqlValue

_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
    sqlite3.SQLITE_BUSY: "another process holds it locked",
    sqlite3.SQLITE_LOCKED: "another process holds it locked",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_PERM: "access is not permitted",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
}
_UNIQUE = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID}


class SqliteConnection:
    """`Connection` over one `sqlite3` connection; its cursors are `Rows` as they are."""

    dialect = "sqlite"
    __slots__ = ("_execute", "_location", "raw")

    def __init__(self, raw: sqlite3.Connection, location: str) -> None:
        self.raw = raw
        self._execute = raw.execute
        self._location = location

    def execute(self, sql: str, *parameters: SqlValue) -> sqlite3.Cursor:
        try:
            return self._execute(sql, parameters)
        except sqlite3.Error as error:
            raise translated(error, self._location) from error

    def executemany(self, sql: str, rows: Sequence[Sequence[SqlValue]]) -> None:
        try:
            self.raw.executemany(sql, rows)
        except sqlite3.Error as error:
            raise translated(error, self._location) from error

    def now(self) -> float:
        return time.time()


def of_our_tree(error: BaseException) -> BaseException:
    """A fetch, unlike an `execute`, raises SQLite's own."""
    return translated(error, "the database") if isinstance(error, sqlite3.Error) else error


def run_script(raw: sqlite3.Connection, script: str) -> None:
    """Statement by statement: `executescript` would commit the open transaction first."""
    statement = ""
    *pieces, rest = script.split(";")
    for piece in pieces:
        statement += f"{piece};"
        if sqlite3.complete_statement(statement):
            raw.execute(statement)
            statement = ""
    if (statement + rest).strip():
        raw.execute(statement + rest)


def translated(error: sqlite3.Error, location: str) -> Exception:
    """The error of our tree for one of SQLite's, with what to do."""
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(code, int):
        return StoreError(f"The statement was refused: {error}.")
    primary = code & 0xFF
    if primary in _CORRUPT:
        return corrupt(location, str(error))
    if code in _UNIQUE:
        return Conflict(f"A row with the same key is already there: {error}.")
    reason = _UNAVAILABLE.get(primary)
    if reason is None:
        return StoreError(f"The statement was refused: {error}.")
    return StoreUnavailable(
        f"The database {location} is not available: {reason} ({error}).",
        suggestion="Nothing of this change was written. Free the disk or the file, then try again.",
    )


def corrupt(location: str, detail: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"The database {location} is damaged or no SQLite database: {detail}.",
        suggestion="Put back a backup, or move the file away to begin with an empty database.",
    )
