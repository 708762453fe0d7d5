"""`toolyard login-link`: from a running yard, or from its database while none runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.faces.cli.conftest import Command
from tests.faces.cli.yard import RunningYard
from toolyard.identity import Operators
from toolyard.store import open_store


def test_a_running_yard_makes_a_login_link_with_its_own_address(toolyard: Command, demo_yard: RunningYard) -> None:
    ended = toolyard("login-link")
    assert (ended.code, ended.out.startswith(f"{demo_yard.url}/login/")) == (0, True)
    assert ended.err == "It works once, within the hour.\n"


def test_a_login_link_made_in_the_database_logs_an_operator_in(tmp_path: Path) -> None:
    database = str(tmp_path / "toolyard.db")
    ended = Command()("login-link", "--database", database, "--public-url", "https://yard.example.com/", "--json")
    base, _, token = ended.json["url"].rpartition("/login/")
    assert base == "https://yard.example.com"

    async def redeem() -> bool:
        store = open_store(database)
        await store.start()
        try:
            session = await Operators(store).redeem(token)
            return await Operators(store).session(session.cookie) == session
        finally:
            await store.close()

    assert asyncio.run(redeem())
