"""Each of the demo's tools, called through the whole call path."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.core.call import CallOutcome, CallRequest, CallState, Origin, Progress
from toolyard.core.errors import ErrorCode
from toolyard.core.principal import LOCAL_OPERATOR
from toolyard.demo.petshop import DOCUMENT
from toolyard.demo.yard import demo_manifest, petshop_running


@pytest.fixture(scope="module")
async def yard(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    folder = tmp_path_factory.mktemp("demo")
    async with petshop_running() as url:
        manifest = demo_manifest(petshop_url=url, data_dir=folder)
        async with App.running(Settings(data_dir=folder, demo=True), manifest) as app:
            yield app


async def call(app: App, tool: str, /, **arguments: Any) -> CallOutcome:
    with anyio.fail_after(10):
        return await app.calls.invoke(
            CallRequest(tool=tool, arguments=arguments, principal=LOCAL_OPERATOR, origin=Origin.CLI)
        )


async def value(app: App, tool: str, /, **arguments: Any) -> Any:
    outcome = await call(app, tool, **arguments)
    assert outcome.failure is None, outcome.failure
    assert outcome.result is not None
    return outcome.result.structured


@requirement("setup.two-commands")
async def test_every_operation_of_the_document_is_a_tool_and_all_providers_are_up(yard: App) -> None:
    operations = [
        operation["operationId"]
        for path in orjson.loads(DOCUMENT.read_bytes())["paths"].values()
        for method, operation in path.items()
        if method != "parameters"
    ]

    tools = {entry.id for entry in yard.catalog.snapshot.entries}

    assert len(operations) == 8
    assert {f"petshop:{operation}" for operation in operations} <= tools
    assert {"notes:add", "notes:list", "notes:search"} <= tools
    assert {"functions:text_statistics", "functions:add_working_days", "functions:countdown"} <= tools
    assert {status.state for status in yard.supervisor.statuses()} == {"up"}


async def test_pets_are_listed_with_filters_and_pages(yard: App) -> None:
    first = await value(yard, "petshop:listPets", tags=["quiet"], limit=2)
    second = await value(yard, "petshop:listPets", tags=["quiet"], limit=2, offset=first["next_offset"])
    cheap = await value(yard, "petshop:listPets", max_price=9.5, status="available")

    assert [pet["name"] for pet in first["pets"] + second["pets"]] == ["Miso", "Bubbles", "Flash", "Neon"]
    assert second["next_offset"] is None
    assert {pet["name"] for pet in cheap["pets"]} == {"Bubbles", "Neon"}


async def test_a_pet_is_created_changed_and_removed(yard: App) -> None:
    made = await value(
        yard, "petshop:createPet", name="Pip", kind="parrot", price=12.5, tags=["new"],
        origin={"breeder": "Hill Farm", "country": "PT", "born": "2025-03-09"}, home={"type": "cage", "width_cm": 80},
    )  # fmt: skip
    changed = await value(yard, "petshop:updatePet", petId=made["id"], status="sold")
    removed = await call(yard, "petshop:deletePet", petId=made["id"])
    gone = await call(yard, "petshop:getPet", petId=made["id"])

    assert changed == {**made, "status": "sold"}
    assert removed.state is CallState.COMPLETE
    assert gone.failure is not None
    assert gone.failure.code is ErrorCode.UPSTREAM
    assert f"There is no pet number {made['id']}." in gone.failure.message


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "cow"},
        {"home": {"type": "tank"}},
        {"home": {"type": "tank", "litres": 5, "width_cm": 5}},
        {"origin": {"country": "PT"}},
        {"tags": [1]},
        {"price": -1},
        {"colour": "red"},
    ],
)
async def test_what_the_schema_refuses_never_reaches_the_shop(yard: App, wrong: dict[str, Any]) -> None:
    before = await value(yard, "petshop:listPets")

    refused = await call(yard, "petshop:createPet", **{"name": "Pip", "kind": "cat", **wrong})

    assert refused.failure is not None
    assert refused.failure.code is ErrorCode.INVALID_ARGUMENTS
    assert await value(yard, "petshop:listPets") == before


async def test_a_picture_is_a_png_that_is_kept_as_a_blob(yard: App) -> None:
    outcome = await call(yard, "petshop:getPetPicture", petId=1)
    whole = orjson.loads(await yard.calls.full_result(outcome.call_id))

    assert outcome.state is CallState.COMPLETE, outcome.failure
    images = [block for block in whole["content"] if block["type"] == "image"]
    assert images[0]["mimeType"] == "image/png"
    assert base64.b64decode(images[0]["data"]).startswith(b"\x89PNG\r\n\x1a\n")


async def test_the_slow_operation_takes_its_time_and_the_failing_one_fails(yard: App) -> None:
    slow = await value(yard, "petshop:visitTheVet", seconds=0.05)
    failed = await call(yard, "petshop:openTheTill")

    assert slow == {"verdict": "perfectly healthy", "waited_seconds": 0.05}
    assert failed.failure is not None
    assert failed.failure.code is ErrorCode.UPSTREAM
    assert "The till is jammed" in failed.failure.message


async def test_notes_are_added_listed_and_found(yard: App) -> None:
    first = await value(yard, "notes:add", text="Buy fish food", tags=["shop"])
    await value(yard, "notes:add", text="Call the vet")

    listed = await value(yard, "notes:list", limit=2)
    found = await value(yard, "notes:search", query="SHOP food")

    assert [note["text"] for note in listed["notes"]] == ["Call the vet", "Buy fish food"]
    assert found == {"notes": [first]}


async def test_functions_count_words_days_and_seconds(yard: App) -> None:
    text = await value(yard, "functions:text_statistics", text="One two. Don't stop!")
    empty = await value(yard, "functions:text_statistics", text="")
    days = await value(yard, "functions:add_working_days", start="2026-11-20", days=-5)
    refused = await call(yard, "functions:add_working_days", start="9999-12-31", days=1)

    assert text == {
        "characters": 20, "words": 4, "distinct_words": 4, "sentences": 2, "longest_word": "Don't",
        "reading_minutes": 0.02,
    }  # fmt: skip
    assert (empty["words"], empty["sentences"], empty["longest_word"]) == (0, 0, "")
    assert days == {"day": "2026-11-13", "weekday": "Friday", "calendar_days": -7}
    assert refused.failure is not None
    assert refused.failure.message == "That is beyond the years 1 to 9999."


async def test_the_countdown_reports_its_progress(yard: App) -> None:
    reports: list[Progress] = []
    request = CallRequest(
        tool="functions:countdown",
        arguments={"seconds": 0.5},
        principal=LOCAL_OPERATOR,
        origin=Origin.CLI,
        progress=reports.append,
    )
    outcome = await yard.calls.invoke(request)

    assert outcome.result is not None
    assert outcome.result.text == "Lift-off after 0.5 s."
    assert [(report.progress, report.total) for report in reports] == [(0, 2), (1, 2), (2, 2)]


async def test_the_readonly_server_shows_nothing_that_changes_anything(yard: App) -> None:
    view = yard.catalog.snapshot.view(yard.servers["readonly"])

    assert len(view.entries) == 8
    assert {entry.tool.action_class for entry in view.entries} == {"read"}


async def test_the_notes_outlive_a_restart(tmp_path: Path) -> None:
    for count in (1, 2):
        async with petshop_running() as url:
            manifest = demo_manifest(petshop_url=url, data_dir=tmp_path)
            async with App.running(Settings(data_dir=tmp_path, demo=True), manifest) as app:
                await value(app, "notes:add", text=f"start {count}")
                assert len((await value(app, "notes:list"))["notes"]) == count
