"""Connecting to PostgreSQL, one connection as our `Connection`, and its errors in our tree."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import LiteralString, cast

import psycopg
from psycopg import errors as pg
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import ExecStatus
from psycopg.rows import TupleRow

from toolyard.core.errors import BadInput, Conflict, StoreCorrupt, StoreError, StoreUnavailable
from toolyard.store.base import Row, Rows, SqlValue

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between attempts to connect again; doubled each time."""
_DEFAULTS = {
    "application_name": "toolyard",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
_GONE = (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow, pg.IdleInTransactionSessionTimeout)
_STANDBY = pg.ReadOnlySqlTransaction
_FULL = (pg.DiskFull, pg.OutOfMemory, pg.TooManyConnections, pg.ConfigurationLimitExceeded)
_CORRUPT = (pg.DataCorrupted, pg.IndexCorrupted)


class Address:
    """Where the database is, and how to get a connection that keeps our promises."""

    def __init__(self, url: str) -> None:
        try:
            given = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise BadInput(
                f"The database URL cannot be read: {str(error).strip()}.",
                where="database",
                suggestion="Write it as postgresql://user:password@host:5432/database.",
            ) from error
        self._conninfo = make_conninfo("", **{**_DEFAULTS, **given})
        self.shown = _without_password({key: str(value) for key, value in given.items()})

    def connect(self) -> psycopg.Connection:
        """In autocommit mode: transactions are `PostgresConnection.begin` and `commit`.

        Raises:
            psycopg.Error: no connection.
        """
        raw = psycopg.connect(self._conninfo, autocommit=True)
        try:
            raw.adapters.register_loader("numeric", _NumberLoader)
            raw.adapters.register_dumper(bool, _FlagDumper)
            waits = raw.execute("SHOW synchronous_commit").fetchone()
            if waits == ("off",):  # acknowledged must mean durable
                raw.execute("SET synchronous_commit = on")
        except BaseException:
            raw.close()
            raise
        return raw

    async def connect_async(self) -> psycopg.AsyncConnection:
        """In autocommit mode, for LISTEN and NOTIFY.

        Raises:
            psycopg.Error: no connection.
        """
        return await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)

    def connect_at_start(self, patience: float) -> psycopg.Connection:
        """Wait only for a server that says it is starting.

        Raises:
            StoreUnavailable: with the server's reason.
        """
        until = time.monotonic() + patience
        pause = threading.Event()
        while True:
            try:
                return self.connect()
            except psycopg.OperationalError as error:
                if time.monotonic() > until or "starting up" not in str(error):
                    raise self.unreachable(error) from error
            pause.wait(FIRST_PAUSE)

    def unreachable(self, error: BaseException) -> StoreUnavailable:
        return StoreUnavailable(
            f"The database {self.shown} cannot be reached: {' '.join(str(error).split())}.",
            suggestion="Check that the server runs, and the address, user and password in --database.",
        )


class PostgresConnection:
    """`Connection` over one psycopg connection. `failure` is the first error of the transaction."""

    dialect = "postgres"
    __slots__ = ("_location", "failure", "raw")

    def __init__(self, raw: psycopg.Connection, location: str) -> None:
        self.raw = raw
        self.failure: psycopg.Error | None = None
        self._location = location

    def execute(self, sql: str, *parameters: SqlValue) -> Rows:
        try:
            return _PostgresRows(self.raw.execute(in_postgres_style(sql), parameters))
        except psycopg.Error as error:
            raise self._failed(error) from error

    def executemany(self, sql: str, rows: Sequence[Sequence[SqlValue]]) -> None:
        try:
            with self.raw.cursor() as cursor:
                cursor.executemany(in_postgres_style(sql), rows)
        except psycopg.Error as error:
            raise self._failed(error) from error

    def now(self) -> float:
        row = self.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)").fetchone()
        return float(cast("float", row[0])) if row else 0.0

    def begin(self, *, read_only: bool = False) -> None:
        """A reader's statements all see one state; a writer's see what others have committed meanwhile."""
        self._command(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if read_only else b"BEGIN", b"BEGIN")

    def commit(self) -> None:
        """
        Raises:
            psycopg.Error: also for a transaction that had failed, whose COMMIT PostgreSQL answers with ROLLBACK.
        """
        self._command(b"COMMIT", b"COMMIT")

    def rollback(self) -> None:
        self._command(b"ROLLBACK", b"ROLLBACK")

    def _command(self, command: bytes, expected: bytes) -> None:
        """Straight through libpq: half the time of psycopg's own BEGIN and COMMIT, which are every call's overhead."""
        result = self.raw.pgconn.exec_(command)
        if result.status != ExecStatus.COMMAND_OK:
            raise pg.error_from_result(result, self.raw.info.encoding)
        if result.command_status != expected:
            raise pg.InFailedSqlTransaction(f"{command.decode()} was answered with {result.command_status!r}")

    def _failed(self, error: psycopg.Error) -> Exception:
        if self.failure is None:
            self.failure = error
        return translated(error, self._location)


class _PostgresRows:
    """A cursor whose fetches answer as SQLite's do: nothing, where a statement returns no rows."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: psycopg.Cursor[TupleRow]) -> None:
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def fetchone(self) -> Row | None:
        return self._cursor.fetchone() if self._cursor.description else None

    def fetchall(self) -> Sequence[Row]:
        return self._cursor.fetchall() if self._cursor.description else []


class _NumberLoader(Loader):
    """sum() and avg() over bigint are NUMERIC here and plain numbers on SQLite: make them the same."""

    def load(self, data: bytes | bytearray | memoryview) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


class _FlagDumper(Dumper):
    """True and False are 1 and 0 on both engines."""

    oid = psycopg.adapters.types["int8"].oid

    def dump(self, obj: bool) -> bytes:  # noqa: FBT001 - the base class's signature
        return b"1" if obj else b"0"


@lru_cache(maxsize=2048)
def in_postgres_style(sql: str) -> LiteralString:
    """`?` becomes `%s`, outside of quoted text and comments; `%` is doubled everywhere, as psycopg wants it.

    Callers pass SQL of their own, never input: psycopg's LiteralString says so.
    """
    parts: list[str] = []
    position = 0
    while position < len(sql):
        skipped = _end_of_quoted(sql, position)
        if skipped > position:
            parts.append(sql[position:skipped].replace("%", "%%"))
            position = skipped
            continue
        character = sql[position]
        parts.append({"?": "%s", "%": "%%"}.get(character, character))
        position += 1
    return cast("LiteralString", "".join(parts))


def _end_of_quoted(sql: str, start: int) -> int:
    """Where the quoted text or comment that begins at `start` ends; `start` when none does."""
    opening = sql[start]
    if opening in "'\"":
        closing, length = opening, 1
    elif sql.startswith("--", start):
        closing, length = "\n", 1
    elif sql.startswith("/*", start):
        closing, length = "*/", 2
    else:
        return start
    end = sql.find(closing, start + 1)
    return len(sql) if end < 0 else end + length


def is_lost(raw: psycopg.Connection, error: psycopg.Error, *, read_only: bool) -> bool:
    """The connection is of no more use: gone, or a writer's to a server that has become a standby."""
    return raw.closed or raw.broken or isinstance(error, _GONE) or (not read_only and isinstance(error, _STANDBY))


def is_retried(error: psycopg.Error) -> bool:
    """The server took the transaction back so that another could go on."""
    return isinstance(error, pg.SerializationFailure | pg.DeadlockDetected)


def translated(error: psycopg.Error, location: str) -> Exception:
    """The error of our tree for one of psycopg's, with what to do."""
    detail = " ".join(str(error).split())
    if isinstance(error, pg.UniqueViolation):
        return Conflict(f"A row with the same key is already there: {detail}.")
    if isinstance(error, _CORRUPT):
        return StoreCorrupt(f"The database {location} is damaged: {detail}.", suggestion="Put back a backup.")
    if isinstance(error, _FULL):
        return StoreUnavailable(
            f"The database {location} is not available: {detail}.",
            suggestion="Nothing of this change was written. Free the server's disk, memory or connections.",
        )
    if isinstance(error, _GONE) or (isinstance(error, psycopg.OperationalError) and not error.sqlstate):
        return StoreUnavailable(
            f"The connection to the database {location} was lost: {detail}.", suggestion="Try again in a moment."
        )
    return StoreError(f"The statement was refused: {detail}.")


def _without_password(given: dict[str, str]) -> str:
    user = f"{given['user']}@" if given.get("user") else ""
    port = f":{given['port']}" if given.get("port") else ""
    return f"postgresql://{user}{given.get('host') or given.get('hostaddr', '')}{port}/{given.get('dbname', '')}"
