"""What an operator decides on one node holds on the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faces.console.asking import CALLER, Kennel
from tests.store.postgres import PostgresServer
from toolyard.app import App, Settings
from toolyard.catalog import Server, ToolSettings
from toolyard.core.approval import Gate
from toolyard.core.call import CallRequest, CallState, Origin


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def becomes(true: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not true():
            await asyncio.sleep(0.01)


@pytest.mark.postgres
async def test_policies_and_servers_changed_on_one_node_come_into_force_on_another(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    database = postgres_server.new_database()

    def node(name: str) -> Settings:
        return Settings(data_dir=tmp_path / name, database=database)

    async with App.running(node("one")) as one, App.running(node("two")) as two:
        kennel = Kennel()
        for app in (one, two):
            await app.supervisor.add_and_start(kennel)
        told: list[int] = []
        two.on_server_change(lambda: told.append(1))

        await one.set_tool_settings("kennel:walk", ToolSettings(approval="ask"))
        await becomes(lambda: two.catalog.settings("kennel:walk").approval == "ask")
        call_id = two.calls.start(CallRequest("kennel:walk", {"name": "Rex"}, CALLER, Origin.HTTP))
        outcome = await two.calls.wait(call_id, 1.0)
        assert outcome is None or outcome.state is CallState.PENDING
        assert [gate.gate for gate in await one.approvals.of_call(call_id)] == [Gate.OPERATOR]
        assert kennel.ran == []

        await one.policies.set_cluster("Kennel", False)
        await becomes(lambda: two.policies.clusters == {"Kennel": False})
        await one.policies.set_cluster("Kennel", None)
        await becomes(lambda: not two.policies.clusters)

        await one.save_server(Server("vets", tools=("kennel:*",)))
        await becomes(lambda: two.servers.get("vets") == one.servers["vets"])
        await one.delete_server("vets")
        await becomes(lambda: "vets" not in two.servers)
        assert told
        assert "default" in two.servers
