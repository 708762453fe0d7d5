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
from toolyard.skills import from_text
from toolyard.store import providers


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

        await one.skills.save(from_text("---\nname: walk-dogs\ndescription: How to walk dogs.\n---\n"), "local:tests")
        await becomes(lambda: two.skills.find("walk-dogs"))
        await one.skills.remove("walk-dogs")
        await becomes(lambda: not two.skills.entries)

        await one.save_server(Server("vets", tools=("kennel:*",)))
        await becomes(lambda: two.servers.get("vets") == one.servers["vets"])
        await one.delete_server("vets")
        await becomes(lambda: "vets" not in two.servers)
        assert told
        assert "default" in two.servers


DOORS = b"""{"openapi": "3.1.0", "info": {"title": "Doors", "version": "1"}, "servers": [{"url": "http://127.0.0.1:9"}],
"paths": {"/doors": {"get": {"operationId": "listDoors", "responses": {"200": {"description": "All."}}}}}}"""
WINDOWS = DOORS.replace(b"Doors", b"Windows").replace(b"doors", b"windows")


@pytest.mark.postgres
async def test_providers_added_changed_and_removed_on_one_node_are_so_on_another(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    database = postgres_server.new_database()

    def node(name: str) -> Settings:
        return Settings(data_dir=tmp_path / name, blobs=str(tmp_path / "blobs"), database=database)

    def tools(app: App) -> set[str]:
        return {entry.id for entry in app.catalog.snapshot.entries if entry.tool.namespace != "toolyard"}

    async with App.running(node("one")) as one, App.running(node("two")) as two:
        await one.import_openapi(document=DOORS, cluster="House")
        await becomes(lambda: tools(two) == {"house:listDoors"})
        await two.import_openapi(document=WINDOWS, cluster="House")
        await becomes(lambda: tools(one) == {"house:listWindows"})
        assert (await one.import_openapi(document=DOORS, cluster="Other")).title == "Doors"
        await becomes(lambda: tools(two) == {"house:listWindows", "other:listDoors"})
        await two.remove_provider("house")
        await one.delete_cluster("Other")
        await becomes(lambda: not tools(one) and not tools(two))
        assert one.provider_config("house") is None


async def test_a_kept_provider_that_can_no_longer_be_read_is_listed_with_the_reason_and_the_rest_starts(
    tmp_path: Path,
) -> None:
    settings = Settings(data_dir=tmp_path)
    async with App.running(settings) as app:
        await app.import_openapi(document=DOORS, cluster="House")
        broken = providers.ProviderRow("old", {"kind": "mcp", "sideways": True}, None)
        await app.store.tx(lambda c: providers.save_provider(c, broken))
    async with App.running(settings) as app:
        assert app.catalog.snapshot.get("house:listDoors") is not None
        status = app.supervisor.status("old")
        assert status.state != "up"
        await becomes(lambda: "sideways" in (app.supervisor.status("old").last_error or ""))
        await app.remove_provider("old")
        assert app.supervisor.provider("old") is None
    async with App.running(settings) as app:
        assert app.supervisor.provider("old") is None


async def test_a_look_at_what_others_changed_meets_a_change_of_its_own_and_goes_on(tmp_path: Path) -> None:
    async with App.running(Settings(data_dir=tmp_path)) as app:
        looks = [app.follow_providers() for _ in range(5)]
        await asyncio.gather(app.import_openapi(document=DOORS, cluster="House"), *looks)
        assert app.catalog.snapshot.get("house:listDoors") is not None
        await asyncio.gather(app.remove_provider("house"), *(app.follow_providers() for _ in range(5)))
        assert app.supervisor.provider("house") is None
        taken = providers.ProviderRow("toolyard", {"kind": "openapi", "url": "http://127.0.0.1:9/x"}, None)
        await app.store.tx(lambda c: providers.save_provider(c, taken))
        await app.follow_providers()
        assert app.supervisor.provider("toolyard") is not None
