"""Calls that wait for a person: held with progress, answered with a handle, cancelled or not by a disconnect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.faces.mcp.yard import Scripted, Wire, echo
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.catalog import ToolSettings
from toolyard.core.approval import ApprovalRecord, Waiting
from toolyard.core.call import Progress
from toolyard.core.principal import Principal, PrincipalKind, Scope
from toolyard.faces.mcp import build, waiting

REVIEWER = Principal(PrincipalKind.KEY, "reviewer", "reviewer", frozenset({Scope.APPROVE}))
CALL = {"name": "shop_pay_action", "arguments": {"text": "10"}}
GET_RESULT = "toolyard_get_call_result_action"


@pytest.fixture
def shop() -> Scripted:
    shop = Scripted("shop")
    shop.add("pay", echo)
    shop.add("strict", echo, output_schema={"type": "object", "properties": {"text": {"type": "string"}}})
    return shop


@pytest.fixture
async def app(tmp_path: Path, shop: Scripted) -> AsyncIterator[App]:
    settings = Settings(data_dir=tmp_path / "data", demo=True, hold_seconds=30)
    async with App.running(settings) as app:
        await app.supervisor.add_and_start(shop)
        for name in ("pay", "strict"):
            await app.set_tool_settings(f"shop:{name}", ToolSettings(approval="ask"))
        yield app


@pytest.fixture
def wire(app: App) -> Wire:
    return Wire(build(app))


async def pending(app: App) -> ApprovalRecord:
    """The first approval that waits."""
    async with asyncio.timeout(10):
        while not (items := (await app.approvals.page("pending", limit=1, cursor=None)).items):
            pass
    return items[0]


async def decide(app: App, decision: Literal["approve", "reject"] = "approve", **more: Any) -> ApprovalRecord:
    return await app.approvals.decide((await pending(app)).id, decision=decision, principal=REVIEWER, **more)


@requirement("approval.gate")
async def test_a_held_call_reports_progress_and_is_answered_once_it_is_approved(
    app: App, wire: Wire, shop: Scripted
) -> None:
    request = wire.modern_open("tools/call", CALL, meta={"progressToken": "t"})
    [report] = await request.frames(1)
    approval = await pending(app)
    assert report["method"] == "notifications/progress"
    assert report["params"]["progressToken"] == "t"
    assert f"/approvals/{approval.id}" in report["params"]["message"]
    assert shop.invocations == []
    await decide(app)
    result = (await request.done()).frames[-1]["result"]
    assert (result["isError"], result["structuredContent"]) == (False, {"text": "10"})
    assert len(shop.invocations) == 1


async def test_progress_is_repeated_while_a_call_waits_and_always_grows(
    app: App, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "REPORT_EVERY", 0.01)
    request = wire.modern_open("tools/call", CALL, meta={"progressToken": 7})
    frames = await request.frames(4)
    numbers = [frame["params"]["progress"] for frame in frames]
    assert numbers == sorted(set(numbers))
    await decide(app, "reject", reason="Too much.")
    result = (await request.done()).frames[-1]["result"]
    assert result["isError"]
    assert result["_meta"]["toolyard/error"]["code"] == "rejected"
    assert "Too much." in result["content"][0]["text"]


async def test_a_tools_own_progress_passes_unchanged_from_zero_on() -> None:
    told: list[Progress] = []
    patience = waiting.Patience(told.append)
    reports = [Progress(done, 100, f"{done} of 100") for done in (0, 50, 100)]
    for report in reports:
        patience.progress(report)
    assert told == reports


async def test_a_call_that_asked_is_not_said_to_wait_for_its_execution() -> None:
    told: list[Progress] = []
    patience = waiting.Patience(told.append)
    patience.waits(Waiting("question", "call_1", None))
    patience.progress(Progress(0))
    said = "This call has asked its client something and waits for the answer."
    assert told == [Progress(0.001, message=said), Progress(0.002)]


@pytest.mark.parametrize("legacy", [False, True])
async def test_at_the_end_of_its_patience_the_client_gets_a_handle_that_it_can_ask_with(
    app: App, wire: Wire, shop: Scripted, legacy: bool
) -> None:
    session = await wire.initialize() if legacy else None
    meta = {"toolyard/hold-seconds": 0.05}

    async def call(params: dict[str, Any]) -> dict[str, Any]:
        if session is not None:
            answer = await session.send("tools/call", {**params, "_meta": meta})
        else:
            answer = await wire.modern("tools/call", params, meta=meta)
        found: dict[str, Any] = answer.json["result"]
        return found

    result = await call(CALL)
    approval = await pending(app)
    handle = result["structuredContent"]
    assert not result["isError"]
    assert (handle["state"], handle["call_id"]) == ("PENDING", approval.call_id)
    assert (handle["waiting"]["kind"], handle["waiting"]["id"]) == ("approval", approval.id)
    assert result["_meta"]["toolyard/call-id"] == approval.call_id
    assert GET_RESULT in result["content"][0]["text"]
    ask = {"name": GET_RESULT, "arguments": {"call_id": approval.call_id}}
    early = await call(ask)
    assert "PENDING" in early["content"][0]["text"]
    await decide(app)
    await app.calls.wait(approval.call_id, 10)
    late = await call(ask)
    assert '"text":"10"' in late["content"][0]["text"].replace(" ", "")
    assert len(shop.invocations) == 1


async def test_a_tool_with_an_output_schema_gives_its_handle_in_words(app: App, wire: Wire) -> None:
    answer = await wire.modern("tools/call", {**CALL, "name": "shop_strict_action"}, meta={"toolyard/hold-seconds": 0})
    result = answer.json["result"]
    approval = await pending(app)
    assert result["isError"]
    assert "structuredContent" not in result
    assert approval.call_id in result["content"][0]["text"]
    assert result["_meta"]["toolyard/waiting"]["id"] == approval.id


async def test_the_hold_is_a_number_of_seconds_or_none(app: App, wire: Wire) -> None:
    for wrong in ("soon", -1, True, [5]):
        answer = await wire.modern("tools/call", CALL, meta={"toolyard/hold-seconds": wrong})
        assert answer.error == (400, -32602)
    request = wire.modern_open("tools/call", CALL, meta={"toolyard/hold-seconds": "none"})
    await decide(app)
    result = (await request.done()).json["result"]
    assert not result["isError"]


async def test_a_modern_client_that_leaves_takes_its_waiting_call_along(app: App, wire: Wire, shop: Scripted) -> None:
    request = wire.modern_open("tools/call", CALL)
    approval = await pending(app)
    request.disconnect()
    await request.done()
    outcome = await app.calls.wait(approval.call_id, 10)
    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.code == "cancelled"
    assert shop.invocations == []
    decided = await app.approvals.get(approval.id)
    assert decided.is_decided


@requirement("client.disconnect")
async def test_a_legacy_client_that_leaves_changes_nothing(app: App, wire: Wire, shop: Scripted) -> None:
    session = await wire.initialize()
    request = session.open("tools/call", CALL)
    approval = await pending(app)
    request.disconnect()
    await decide(app)
    outcome = await app.calls.wait(approval.call_id, 10)
    assert outcome is not None
    assert outcome.state == "COMPLETE"
    assert len(shop.invocations) == 1
    await request.done()
