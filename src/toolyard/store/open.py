"""From a location to a store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from toolyard.core.errors import BadInput
from toolyard.store.base import Store
from toolyard.store.sqlite import SqliteStore


def open_store(location: str) -> Store:
    """A store that is not started yet.

    `location` is a path, `sqlite:///relative/path`, `sqlite:////absolute/path`, or `postgresql://user@host/database`.

    Raises:
        BadInput: no such engine, or no path.
    """
    scheme, separator, rest = location.partition("://")
    if not separator:
        return SqliteStore(_path(location, location))
    if scheme == "sqlite":
        return SqliteStore(_path(rest.removeprefix("/"), location))
    if scheme in ("postgresql", "postgres"):
        from toolyard.store.postgres import PostgresStore

        _check_url(location)
        return PostgresStore(location)
    raise BadInput(
        f"{scheme!r} is no database that Toolyard can use.",
        where="database",
        suggestion="Give a path for SQLite, or postgresql://user@host/database.",
    )


def _path(text: str, location: str) -> Path:
    if not text or text == ":memory:":
        raise BadInput(
            f"The database {location!r} names no file.",
            where="database",
            suggestion="Give a path such as ./toolyard.db: what is acknowledged must survive a restart.",
        )
    return Path(text).expanduser()


def _check_url(location: str) -> None:
    try:
        _ = urlsplit(location).port
    except ValueError as error:
        raise BadInput(f"The database URL cannot be read: {error}.", where="database") from error
