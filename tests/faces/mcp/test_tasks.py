"""Calls answered with a task (SEP-2663): when, what it says, and how it ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.faces.mcp.yard import TEXT, Run, Scripted, Slow, Wire, echo, fail
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.catalog import Server, ToolSettings
from toolyard.core.call import CallRequest, Origin, Progress, ToolResult
from toolyard.core.errors import BadInput, ProtocolError
from toolyard.core.principal import LOCAL_OPERATOR, Principal, PrincipalKind, Scope
from toolyard.core.question import ELICITATION, NeedsInput, Question
from toolyard.core.tool import Annotations
from toolyard.faces.mcp import build
from toolyard.manifest import Manifest, SettingsConfig
from toolyard.providers.base import Invocation

TASKS = "io.modelcontextprotocol/tasks"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
REVIEWER = Principal(PrincipalKind.KEY, "reviewer", "reviewer", frozenset({Scope.APPROVE}))
KNOWS_TASKS = {CAPABILITIES: {"extensions": {TASKS: {}}}}
KNOWS_FORMS = {CAPABILITIES: {"elicitation": {}, "extensions": {TASKS: {}}}}
FORM = {"mode": "form", "message": "Well?", "requestedSchema": {"type": "object", "properties": {}}}
ENDED = {"completed", "failed", "cancelled"}


async def break_protocol(invocation: Invocation) -> ToolResult:
    raise ProtocolError(-32050, "The line is dead.", {"line": 7})


async def crash(invocation: Invocation) -> ToolResult:
    raise RuntimeError("not a CallError, so a fault of ours")


async def confirm(invocation: Invocation) -> ToolResult:
    """Asks two things at once, and holds the questions in memory."""
    if invocation.ask is None:
        return ToolResult.of_text("nobody to ask")
    answers = await invocation.ask([Question("name", ELICITATION, FORM), Question("sure", ELICITATION, FORM)])
    return ToolResult.of_value({key: dict(answer) for key, answer in answers.items()})


async def relay(invocation: Invocation) -> ToolResult:
    """As a modern upstream that asks once."""
    if not invocation.answers:
        raise NeedsInput([Question("name", ELICITATION, FORM)], "its state")
    return ToolResult.of_value({"state": invocation.upstream_state, **invocation.answers})


@pytest.fixture
def slow() -> Slow:
    return Slow(reports=(Progress(1, 3, "one third"),))


@pytest.fixture
def kit(slow: Slow) -> Scripted:
    kit = Scripted("kit")
    kit.add("slow", slow, annotations=Annotations(read_only=True))
    kit.add("echo", echo, annotations=Annotations(read_only=True))
    kit.add("job", echo, input_schema=TEXT, task="always")
    for name, run in {"failing": fail, "broken": break_protocol, "crashing": crash}.items():
        kit.add(name, run, task="always")
    kit.add("plain", slow, task="never")
    kit.add("confirm", confirm, task="always")
    kit.add("relay", relay, task="always", annotations=Annotations(read_only=True))
    return kit


@pytest.fixture
async def app(tmp_path: Path, kit: Scripted) -> AsyncIterator[App]:
    settings = Settings(data_dir=tmp_path / "data", demo=True, hold_seconds=30, task_after_seconds=0.05)
    async with App.running(settings) as app:
        await app.supervisor.add_and_start(kit)
        yield app


@pytest.fixture
def wire(app: App) -> Wire:
    return Wire(build(app))


@pytest.fixture
async def patient(tmp_path: Path, kit: Scripted) -> AsyncIterator[Wire]:
    """A yard that gives out no task before a minute has passed."""
    async with App.running(Settings(data_dir=tmp_path / "patient", demo=True, task_after_seconds=60)) as app:
        await app.supervisor.add_and_start(kit)
        yield Wire(build(app))


async def ask(wire: Wire, method: str, params: Mapping[str, Any], meta: Mapping[str, Any] = KNOWS_TASKS) -> Any:
    """The result of a request that declares the extension."""
    headers = {"Mcp-Name": params["taskId"]} if "taskId" in params else None
    answer = await wire.modern(method, params, meta=meta, headers=headers)
    return answer.json["result"]


async def call(wire: Wire, tool: str, **arguments: Any) -> Any:
    return await ask(wire, "tools/call", {"name": f"kit_{tool}_action", "arguments": arguments})


async def ended(wire: Wire, task: Mapping[str, Any]) -> Any:
    return await once(wire, task, ENDED)


async def once(wire: Wire, task: Mapping[str, Any], statuses: Collection[str]) -> Any:
    """The task when its status is one of these."""
    async with asyncio.timeout(10):
        while (now := await ask(wire, "tasks/get", {"taskId": task["taskId"]}))["status"] not in statuses:
            pass
    return now


async def test_a_quick_call_is_answered_as_it_always_was(patient: Wire) -> None:
    result = await call(patient, "echo", text="hi")
    assert (result["resultType"], result["structuredContent"]) == ("complete", {"text": "hi"})
    assert "taskId" not in result


@requirement("mcp.tasks")
async def test_a_call_that_takes_longer_than_the_soft_limit_becomes_a_task_and_survives_its_request(
    app: App, wire: Wire, slow: Slow
) -> None:
    request = wire.modern_open("tools/call", {"name": "kit_slow_action", "arguments": {}}, meta=KNOWS_TASKS)
    task = (await request.done()).json["result"]
    request.disconnect()
    stamp = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert {key: value for key, value in task.items() if key not in ("createdAt", "lastUpdatedAt", "_meta")} == {
        "resultType": "task",
        "taskId": task["taskId"],
        "status": "working",
        "statusMessage": "one third",
        "ttlMs": None,
        "pollIntervalMs": 500,
    }
    assert re.fullmatch(stamp, task["createdAt"])
    assert re.fullmatch(stamp, task["lastUpdatedAt"])
    record = await app.calls.get(task["taskId"])
    assert record.state == "PROCESSING"
    slow.release.set()
    last = await ended(wire, task)
    assert (last["status"], last["resultType"]) == ("completed", "complete")
    assert last["result"]["content"] == [{"type": "text", "text": "at last"}]
    assert last["createdAt"] == task["createdAt"]
    assert slow.ended == "done"


async def test_a_request_that_does_not_declare_the_extension_waits_for_its_result(wire: Wire, slow: Slow) -> None:
    request = wire.modern_open("tools/call", {"name": "kit_slow_action", "arguments": {}})
    await slow.started.wait()
    slow.release.set()
    result = (await request.done()).json["result"]
    assert result["content"] == [{"type": "text", "text": "at last"}]


async def test_a_tool_that_is_never_a_task_waits_for_its_result(wire: Wire, slow: Slow) -> None:
    request = wire.modern_open("tools/call", {"name": "kit_plain_action", "arguments": {}}, meta=KNOWS_TASKS)
    await slow.started.wait()
    slow.release.set()
    assert (await request.done()).json["result"]["resultType"] == "complete"


async def test_a_tool_that_is_always_a_task_asks_a_modern_client_to_declare_tasks(wire: Wire) -> None:
    answer = await wire.modern("tools/call", {"name": "kit_job_action", "arguments": {"text": "hi"}})
    assert answer.error == (400, -32021)
    assert answer.json["error"]["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}


async def test_a_tool_that_is_always_a_task_is_a_plain_call_for_a_legacy_client_who_cannot_declare_them(
    wire: Wire,
) -> None:
    session = await wire.initialize()
    answer = await session.send("tools/call", {"name": "kit_job_action", "arguments": {"text": "hi"}})
    assert answer.json["result"]["structuredContent"] == {"text": "hi"}


async def test_an_operator_decides_which_tools_are_tasks(app: App, wire: Wire) -> None:
    await app.set_tool_settings("kit:job", ToolSettings(task="never"))
    await app.set_tool_settings("kit:echo", ToolSettings(task="always"))
    job, echoed = await call(wire, "job", text="x"), await call(wire, "echo", text="y")
    assert (job["resultType"], echoed["resultType"]) == ("complete", "task")
    assert (await ended(wire, echoed))["result"]["structuredContent"] == {"text": "y"}


async def test_what_an_operator_decided_about_tasks_is_kept_over_a_restart(tmp_path: Path, kit: Scripted) -> None:
    for decided in (None, "always"):
        async with App.running(Settings(data_dir=tmp_path / "data", demo=True)) as app:
            await app.supervisor.add_and_start(kit)
            entry = app.catalog.snapshot.get("kit:echo")
            assert entry is not None
            assert entry.settings == ToolSettings(task=decided)
            await app.set_tool_settings("kit:echo", ToolSettings(task="always"))
            with pytest.raises(BadInput, match="is no task setting"):
                await app.set_tool_settings("kit:echo", ToolSettings(task="sometimes"))  # type: ignore[arg-type]


async def test_a_call_that_is_refused_is_never_a_task(wire: Wire, kit: Scripted) -> None:
    result = await call(wire, "job", text=1)
    assert (result["resultType"], result["isError"]) == ("complete", True)
    assert result["_meta"]["toolyard/error"]["code"] == "invalid_arguments"
    assert kit.invocations == []


@requirement("mcp.tasks")
async def test_a_failed_tool_is_a_completed_task_and_a_protocol_error_a_failed_one(wire: Wire) -> None:
    failing = await ended(wire, await call(wire, "failing"))
    broken = await ended(wire, await call(wire, "broken"))
    crashing = await ended(wire, await call(wire, "crashing"))
    assert (failing["status"], failing["result"]["isError"]) == ("completed", True)
    assert failing["result"]["content"][0]["text"] == "The kettle is empty. Fill it."
    assert (broken["status"], broken["error"]) == (
        "failed",
        {"code": -32050, "message": "The line is dead.", "data": {"line": 7}},
    )
    assert (crashing["status"], crashing["error"]["code"]) == ("failed", -32603)
    assert not {"result"} & (broken.keys() | crashing.keys())


@requirement("mcp.tasks")
async def test_a_cancelled_task_stops_its_tool_and_cancelling_again_changes_nothing(wire: Wire, slow: Slow) -> None:
    task = await call(wire, "slow")
    for _ in range(2):
        done = await ask(wire, "tasks/cancel", {"taskId": task["taskId"]})
        assert done.keys() == {"resultType", "_meta"}
        assert done["resultType"] == "complete"
        last = await ended(wire, task)
        assert (last["status"], slow.ended) == ("cancelled", "cancelled")
        assert not {"result", "error"} & last.keys()


async def test_the_manifest_says_after_how_long_a_call_becomes_a_task(tmp_path: Path) -> None:
    manifest = Manifest(settings=SettingsConfig(task_after_seconds=0.5))
    for given, seconds in ((manifest, 0.5), (Manifest(), 2.0)):
        async with App.running(Settings(data_dir=tmp_path / "data", demo=True), given) as app:
            assert app.settings.task_after == seconds


async def test_what_the_manifest_says_of_waiting_holds_unless_the_start_says_otherwise(tmp_path: Path) -> None:
    never = Manifest(settings=SettingsConfig(hold_seconds=0, task_after_seconds=0.5))
    data = tmp_path / "data"
    usual = Settings(data_dir=data, demo=True, hold_seconds=60.0, task_after_seconds=2.0)
    at_once = Settings(data_dir=data, demo=True, hold_seconds=0, task_after_seconds=0)
    long = Manifest(settings=SettingsConfig(hold_seconds=90, task_after_seconds=9))
    for settings, manifest, seconds in (
        (Settings(data_dir=data, demo=True), never, (0, 0.5)),
        (Settings(data_dir=data, demo=True), Manifest(), (60.0, 2.0)),
        (usual, never, (60.0, 2.0)),
        (at_once, long, (0, 0)),
    ):
        async with App.running(settings, manifest) as app:
            assert (app.settings.hold_limit, app.settings.task_after) == seconds


async def test_a_client_that_leaves_before_it_has_a_task_cancels_its_call(patient: Wire, slow: Slow) -> None:
    request = patient.modern_open("tools/call", {"name": "kit_slow_action", "arguments": {}}, meta=KNOWS_TASKS)
    async with asyncio.timeout(10):
        await slow.started.wait()
        request.disconnect()
        await slow.over.wait()
    await request.done()
    assert slow.ended == "cancelled"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_another_ones_task_is_unknown_as_one_that_never_was(app: App, wire: Wire, method: str) -> None:
    await app.save_server(Server("other"))
    task = await call(wire, "job")
    more = {"inputResponses": {}} if method == "tasks/update" else {}
    for task_id, path in (("call_none", "/mcp"), (task["taskId"], "/mcp/other")):
        answer = await wire.modern(
            method, {"taskId": task_id, **more}, meta=KNOWS_TASKS, headers={"Mcp-Name": task_id}, path=path
        )
        assert answer.error == (400, -32602)
        assert answer.json["error"]["message"] == "params.taskId names no task of yours."
    undeclared = await wire.modern(method, {"taskId": task["taskId"], **more}, headers={"Mcp-Name": task["taskId"]})
    assert undeclared.error == (400, -32021)


async def test_an_update_needs_answers_by_key_and_ignores_those_nobody_asked_for(wire: Wire, slow: Slow) -> None:
    task = await call(wire, "slow")
    named = {"Mcp-Name": task["taskId"]}
    for wrong in (None, [], "yes"):
        params = {"taskId": task["taskId"], "inputResponses": wrong}
        assert (await wire.modern("tasks/update", params, meta=KNOWS_TASKS, headers=named)).error == (400, -32602)
    taken = await ask(wire, "tasks/update", {"taskId": task["taskId"], "inputResponses": {"none": {"action": "x"}}})
    assert taken["resultType"] == "complete"
    slow.release.set()


@requirement("approval.gate")
async def test_a_call_that_waits_for_an_operator_is_a_working_task_that_says_so(
    app: App, wire: Wire, kit: Scripted
) -> None:
    await app.set_tool_settings("kit:echo", ToolSettings(approval="ask"))
    task = await call(wire, "echo", text="hi")
    [approval] = (await app.approvals.page("pending")).items
    assert (task["resultType"], task["status"], task["taskId"]) == ("task", "working", approval.call_id)
    assert f"/approvals/{approval.id}" in task["statusMessage"]
    forged = {approval.id: {"action": "accept", "content": {"approve": True}}}
    await ask(wire, "tasks/update", {"taskId": task["taskId"], "inputResponses": forged})
    assert not (await app.approvals.get(approval.id)).is_decided
    await app.approvals.decide(approval.id, decision="approve", principal=REVIEWER)
    last = await ended(wire, task)
    assert last["result"]["structuredContent"] == {"text": "hi"}
    assert len(kit.invocations) == 1


async def test_a_rejected_call_is_a_completed_task_that_says_who_rejected_it(app: App, wire: Wire) -> None:
    await app.set_tool_settings("kit:job", ToolSettings(approval="ask"))
    task = await call(wire, "job")
    [approval] = (await app.approvals.page("pending")).items
    await app.approvals.decide(approval.id, decision="reject", principal=REVIEWER, reason="Not today.")
    last = await ended(wire, task)
    assert (last["status"], last["result"]["isError"]) == ("completed", True)
    assert "Not today." in last["result"]["content"][0]["text"]


@requirement("mcp.tasks")
async def test_a_listening_client_is_told_how_a_task_stands_until_it_has_ended(wire: Wire, slow: Slow) -> None:
    task = await call(wire, "slow")
    wanted = {"notifications": {"taskIds": [task["taskId"], "call_none"]}}
    stream = wire.modern_open("subscriptions/listen", wanted, meta=KNOWS_TASKS, request_id="s")
    acknowledged, first = await stream.frames(2)
    assert acknowledged["params"]["notifications"] == {"taskIds": [task["taskId"]]}
    assert (first["method"], first["params"]["status"]) == ("notifications/tasks", "working")
    slow.release.set()
    last = (await stream.frames(3))[2]["params"]
    assert (last["taskId"], last["status"]) == (task["taskId"], "completed")
    assert last["result"]["content"] == [{"type": "text", "text": "at last"}]
    assert last["_meta"] == {"io.modelcontextprotocol/subscriptionId": "s"}
    stream.disconnect()
    await stream.done()


async def test_listening_to_tasks_needs_the_extension_and_a_list_of_ids(wire: Wire) -> None:
    ids = {"notifications": {"taskIds": []}}
    assert (await wire.modern("subscriptions/listen", ids)).error == (400, -32021)
    for wrong in ("all", [str(number) for number in range(101)]):
        params = {"notifications": {"taskIds": wrong}}
        assert (await wire.modern("subscriptions/listen", params, meta=KNOWS_TASKS)).error == (400, -32602)


async def test_the_same_idempotency_key_finds_the_same_task(wire: Wire, slow: Slow) -> None:
    meta = {**KNOWS_TASKS, "toolyard/idempotency-key": "once"}
    params = {"name": "kit_slow_action", "arguments": {}}
    first, again = [(await wire.modern("tools/call", params, meta=meta)).json["result"] for _ in range(2)]
    assert first["taskId"] == again["taskId"]
    slow.release.set()
    assert (await ended(wire, again))["status"] == "completed"


@requirement("mcp.tasks")
async def test_a_task_asks_and_goes_on_when_every_question_is_answered(wire: Wire) -> None:
    task = await ask(wire, "tools/call", {"name": "kit_confirm_action", "arguments": {}}, KNOWS_FORMS)
    asking = await once(wire, task, {"input_required"})
    wanted = {"method": ELICITATION, "params": FORM}
    assert asking["inputRequests"] == {"name": wanted, "sure": wanted}
    accepted = {"action": "accept", "content": {"text": "Ada"}}
    await ask(wire, "tasks/update", {"taskId": task["taskId"], "inputResponses": {"name": accepted, "x": {"y": 1}}})
    assert (await once(wire, task, {"input_required"}))["inputRequests"] == {"sure": wanted}
    last_answer = {"sure": {"action": "decline"}, "name": {"action": "cancel"}}
    await ask(wire, "tasks/update", {"taskId": task["taskId"], "inputResponses": last_answer})
    last = await ended(wire, task)
    assert last["result"]["structuredContent"] == {"name": accepted, "sure": {"action": "decline"}}
    again = await ask(wire, "tasks/update", {"taskId": task["taskId"], "inputResponses": last_answer})
    assert again["resultType"] == "complete"


async def test_an_upstreams_question_is_asked_by_the_task_and_its_state_stays_here(wire: Wire) -> None:
    task = await ask(wire, "tools/call", {"name": "kit_relay_action", "arguments": {}}, KNOWS_FORMS)
    asking = await once(wire, task, {"input_required"})
    assert "its state" not in str(asking)
    answer = {"action": "accept", "content": {"text": "Ada"}}
    await ask(wire, "tasks/update", {"taskId": task["taskId"], "inputResponses": {"name": answer}})
    last = await ended(wire, task)
    assert last["result"]["structuredContent"] == {"state": "its state", "name": answer}


async def test_an_answer_of_the_wrong_shape_is_refused_and_the_task_goes_on_asking(wire: Wire) -> None:
    task = await ask(wire, "tools/call", {"name": "kit_relay_action", "arguments": {}}, KNOWS_FORMS)
    await once(wire, task, {"input_required"})
    for wrong in ("yes", {"action": "perhaps"}, {}):
        params = {"taskId": task["taskId"], "inputResponses": {"name": wrong}}
        answer = await wire.modern("tasks/update", params, meta=KNOWS_TASKS, headers={"Mcp-Name": task["taskId"]})
        assert answer.error == (400, -32602)
    assert list((await once(wire, task, {"input_required"}))["inputRequests"]) == ["name"]


async def test_a_task_that_asks_can_be_cancelled(wire: Wire) -> None:
    for name in ("confirm", "relay"):
        task = await ask(wire, "tools/call", {"name": f"kit_{name}_action", "arguments": {}}, KNOWS_FORMS)
        await once(wire, task, {"input_required"})
        await ask(wire, "tasks/cancel", {"taskId": task["taskId"]})
        assert (await ended(wire, task))["status"] == "cancelled"


async def test_a_task_never_asks_a_client_that_cannot_answer(wire: Wire) -> None:
    declined = await ended(wire, await call(wire, "confirm"))
    assert declined["result"]["content"][0]["text"] == "nobody to ask"
    refused = await ended(wire, await call(wire, "relay"))
    assert (refused["status"], refused["result"]["isError"]) == ("completed", True)
    assert "elicitation.form" in refused["result"]["content"][0]["text"]


@requirement("mcp.tasks")
async def test_the_users_own_confirmation_is_asked_by_the_task_and_given_by_an_update(
    app: App, wire: Wire, kit: Scripted
) -> None:
    kit.add("pre_pay", echo, input_schema=TEXT)
    kit.changed()
    async with asyncio.timeout(10):
        while app.catalog.snapshot.get("kit:pre_pay") is None:
            await asyncio.sleep(0)
    for agreed, expected in ((True, "COMPLETE"), (False, "ERROR")):
        session = await app.sessions.create(LOCAL_OPERATOR, {})
        waits = CallRequest(
            "kit:pre_pay", {"text": "x"}, LOCAL_OPERATOR, Origin.MCP, server="default", session=session.id, hold=0.0
        )
        task = {"taskId": (await app.calls.invoke(waits)).call_id}
        assert (await ask(wire, "tasks/get", task))["status"] == "working"
        asking = await ask(wire, "tasks/get", task, KNOWS_FORMS)
        [(key, form)] = asking["inputRequests"].items()
        assert (asking["status"], form["method"], form["params"]["mode"]) == ("input_required", ELICITATION, "form")
        answers = {key: {"action": "accept", "content": {"approve": agreed}}}
        await ask(wire, "tasks/update", {**task, "inputResponses": answers}, KNOWS_FORMS)
        last = await ended(wire, task)
        assert (last["status"], last["result"]["isError"]) == ("completed", not agreed)
        assert (await app.calls.get(task["taskId"])).state == expected


def asking_first(slow: Slow) -> Run:
    async def run(invocation: Invocation) -> ToolResult:
        assert invocation.ask is not None
        await invocation.ask([Question("name", ELICITATION, FORM)])
        return await slow(invocation)

    return run


async def test_questions_come_first_and_the_task_follows(tmp_path: Path, kit: Scripted, slow: Slow) -> None:
    kit.runs["slow"] = asking_first(slow)
    async with App.running(Settings(data_dir=tmp_path / "data", demo=True, task_after_seconds=1)) as app:
        await app.supervisor.add_and_start(kit)
        wire = Wire(build(app))
        params = {"name": "kit_slow_action", "arguments": {}}
        first = await ask(wire, "tools/call", params, KNOWS_FORMS)
        assert (first["resultType"], list(first["inputRequests"])) == ("input_required", ["name"])
        assert "taskId" not in first
        answers = {"name": {"action": "accept", "content": {}}}
        again = {**params, "inputResponses": answers, "requestState": first["requestState"]}
        second = await ask(wire, "tools/call", again, KNOWS_FORMS)
        assert (second["resultType"], second["status"]) == ("task", "working")
        assert not {"requestState", "inputRequests"} & second.keys()
        slow.release.set()
        assert (await ended(wire, second))["result"]["content"][0]["text"] == "at last"


async def test_a_client_that_leaves_after_it_answered_cancels_its_call_too(
    patient: Wire, kit: Scripted, slow: Slow
) -> None:
    kit.runs["slow"] = asking_first(slow)
    params = {"name": "kit_slow_action", "arguments": {}}
    first = await ask(patient, "tools/call", params, KNOWS_FORMS)
    again = {**params, "inputResponses": {"name": {"action": "decline"}}, "requestState": first["requestState"]}
    request = patient.modern_open("tools/call", again, meta=KNOWS_FORMS)
    async with asyncio.timeout(10):
        await slow.started.wait()
        request.disconnect()
        await slow.over.wait()
    await request.done()
    assert slow.ended == "cancelled"
