"""Fixtures for every room: the event loop, and a store on each engine."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog

from tests.store.postgres import PostgresServer, running_postgres
from toolyard.store import Store, open_store


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": False}


def pytest_configure() -> None:
    """A shell starts what runs in its background with Ctrl-C ignored, and the processes of tests would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """A command configures the whole process's logs; the next test must not inherit that."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location of an empty database, on each engine in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "toolyard.db")
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_database()


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    """A started store, on each engine in turn."""
    store = open_store(database)
    await store.start()
    yield store
    await store.close()


@pytest.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[Store]:
    """A started store on SQLite, for rooms that only need one."""
    store = open_store(str(tmp_path / "toolyard.db"))
    await store.start()
    yield store
    await store.close()
