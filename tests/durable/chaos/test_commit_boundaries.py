"""One call, one approval, one client's call and one job survive a crash at every commit boundary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.durable.chaos.cluster import Nursery
from tests.durable.chaos.sweep import STORIES, Sweep
from tests.durable.chaos.yard import Access, make_ready
from tests.requirements import requirement
from tests.store.postgres import PostgresServer

NewDatabase = Callable[[Path], Awaitable[tuple[str, Access]]]


@pytest.fixture
async def sqlite_databases() -> NewDatabase:
    async def new(folder: Path) -> tuple[str, Access]:
        database = str(folder / "toolyard.db")
        return database, await make_ready(database)

    return new


@pytest.fixture
async def postgres_databases(postgres_server: PostgresServer) -> NewDatabase:
    async def new(_: Path) -> tuple[str, Access]:
        database = postgres_server.new_database()
        return database, await make_ready(database)

    return new


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def new_database(request: pytest.FixtureRequest) -> NewDatabase:
    return request.getfixturevalue(f"{request.param}_databases")


@requirement("durable.crash")
@requirement("approval.survives")
@pytest.mark.parametrize("name", STORIES)
async def test_a_crash_at_any_commit_loses_and_repeats_nothing(
    name: str, new_database: NewDatabase, nodes: Nursery, tmp_path: Path
) -> None:
    told = await Sweep(nodes, tmp_path, new_database).every_boundary(STORIES[name])
    assert {str(one.boundary): one.violations for one in told if one.violations} == {}
    assert told[0].commits >= 2
    crashed = [one for one in told if one.crashed]
    assert len(crashed) >= told[0].commits, "hardly any of the nodes ended where it was told to"
