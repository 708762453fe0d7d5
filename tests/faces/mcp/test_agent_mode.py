"""Agent mode: two tools in place of one per action, and exactly the answers that seed s0 describes."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.faces.mcp.conftest import Yard
from tests.faces.mcp.yard import Scripted, Wire
from tests.requirements import requirement
from toolyard.catalog import Server
from toolyard.core.call import CallState, ToolResult
from toolyard.core.record import CallFilter, CallRecord
from toolyard.core.schema import Schema
from toolyard.core.tool import Kind
from toolyard.providers.base import Invocation

AGENT = "/mcp/agent"
NOTE = Schema({"type": "object", "properties": {"body": {"type": "string"}}, "required": ["body"]})


@pytest.fixture
async def agent(yard: Yard) -> Yard:
    crm, flows = Scripted("hubspot"), Scripted("onboarding", Kind.WORKFLOW)
    crm.add("create_note", echo_all, description="Creates a note on a contact.", input_schema=NOTE)
    crm.add("list_contacts", echo_all, description="Lists all contacts.")
    flows.add("welcome_customer", echo_all, description="Welcomes a new customer.", input_schema=NOTE)
    for provider in (crm, flows):
        await yard.app.supervisor.add_and_start(provider)
    await yard.app.save_server(Server("agent", agent_mode=True))
    await yard.app.save_server(Server("narrow", tools=("kit:*",), agent_mode=True))
    return yard


async def echo_all(invocation: Invocation) -> ToolResult:
    return ToolResult.of_value({"name": invocation.tool.name, "got": invocation.arguments})


async def call(yard: Yard, name: str, arguments: dict[str, Any], *, path: str = AGENT) -> dict[str, Any]:
    answer = await yard.wire.modern("tools/call", {"name": name, "arguments": arguments}, path=path)
    return answer.json["result"]


async def resolve(yard: Yard, *entries: str, path: str = AGENT) -> dict[str, Any]:
    return await call(yard, "RESOLVE_ACTIONS", {"integration_query": list(entries)}, path=path)


async def execute(yard: Yard, slug: str, action: str, payload: Any, kind: str = "action") -> dict[str, Any]:
    arguments = {"application_slug": slug, "action_id": action, "input_payload": payload, "type": kind}
    return await call(yard, "EXECUTE_ACTION", arguments)


async def on_record(yard: Yard, result: dict[str, Any]) -> tuple[CallRecord, str]:
    """The call's record, and why it failed as the record says it."""
    call_id = result["_meta"]["toolyard/call-id"]
    outcome = await yard.app.calls.outcome(call_id)
    assert outcome.failure is not None
    return await yard.app.calls.get(call_id), outcome.failure.to_text()


def text_of(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


@requirement("server.toggles")
@pytest.mark.parametrize("legacy", [False, True])
async def test_what_a_server_lists_depends_on_its_toggles_alone(agent: Yard, legacy: bool) -> None:
    async def listed(path: str) -> list[str]:
        if legacy:
            session = await agent.wire.initialize(path=path)
            answer = await session.send("tools/list")
        else:
            answer = await agent.wire.modern("tools/list", path=path)
        return [tool["name"] for tool in answer.json["result"]["tools"]]

    assert await listed(AGENT) == ["RESOLVE_ACTIONS", "EXECUTE_ACTION"]
    await agent.app.save_server(Server("agent", tools=("kit:*",)))
    assert await listed(AGENT) == ["kit_echo_action", "kit_fail_action", "kit_slow_action"]


async def test_in_agent_mode_a_tool_cannot_be_called_by_its_direct_name(agent: Yard) -> None:
    answer = await agent.wire.modern(
        "tools/call", {"name": "hubspot_create_note_action", "arguments": {"body": "x"}}, path=AGENT
    )
    assert answer.error == (400, -32602)


@requirement("agentmode.resolve")
async def test_each_entry_finds_its_action_and_the_best_of_each_comes_first(agent: Yard) -> None:
    result = await resolve(agent, "Create Note HubSpot", "Welcome Customer")
    entities = orjson.loads(text_of(result))
    assert entities[:2] == [
        {"slug": "hubspot", "type": "action", "identifier": "create_note", "json_schema": NOTE.root},
        {
            "slug": "onboarding",
            "type": "workflow",
            "identifier": "welcome_customer",
            "json_schema": NOTE.root,
        },
    ]
    assert result["structuredContent"] == entities
    assert not result["isError"]


async def test_an_action_without_inputs_has_an_empty_schema(agent: Yard) -> None:
    first = orjson.loads(text_of(await resolve(agent, "List Contacts HubSpot")))[0]
    assert first == {"slug": "hubspot", "type": "action", "identifier": "list_contacts", "json_schema": {}}


async def test_a_legacy_client_is_told_the_same_in_text(agent: Yard) -> None:
    session = await agent.wire.initialize(path=AGENT)
    params = {"name": "RESOLVE_ACTIONS", "arguments": {"integration_query": ["Create Note HubSpot"]}}
    result = (await session.send("tools/call", params)).json["result"]
    assert orjson.loads(text_of(result)) == orjson.loads(text_of(await resolve(agent, "Create Note HubSpot")))
    assert "structuredContent" not in result
    assert "resultType" not in result


@requirement("agentmode.resolve")
async def test_nothing_that_matches_is_a_sentence_in_place_of_a_list(agent: Yard) -> None:
    result = await resolve(agent, "Zzyzx Quux Frobnicate")
    assert text_of(result).startswith("Couldn't find any matching actions for 'Zzyzx Quux Frobnicate'.")
    assert not result["isError"]
    assert "structuredContent" not in result


async def test_an_app_that_is_hidden_is_answered_like_one_that_does_not_exist(agent: Yard) -> None:
    hidden = text_of(await resolve(agent, "Create Note HubSpot", path="/mcp/narrow"))
    assert hidden == text_of(await resolve(agent, "Create Note Qubshot", path="/mcp/narrow")).replace(
        "Qubshot", "HubSpot"
    )


async def test_an_entry_that_finds_nothing_is_named_beside_the_list_of_the_others(agent: Yard) -> None:
    result = await resolve(agent, "Create Note HubSpot", "Zzyzx Quux")
    assert orjson.loads(text_of(result))[0]["identifier"] == "create_note"
    assert result["content"][1]["text"] == "Nothing matches 'Zzyzx Quux'."
    assert result["_meta"]["toolyard/unresolved"] == ["Zzyzx Quux"]


@pytest.mark.parametrize("query", [None, "Create Note HubSpot", [], [1], ["  "], {"a": "b"}])
async def test_entries_of_the_wrong_shape_are_refused_with_an_example(agent: Yard, query: Any) -> None:
    result = await call(agent, "RESOLVE_ACTIONS", {"integration_query": query})
    assert result["isError"]
    assert text_of(result).startswith("integration_query must be a list of strings")


@requirement("agentmode.execute")
@pytest.mark.parametrize("payload", [{"body": "hi"}, '{"body": "hi"}'])
async def test_an_action_runs_with_an_object_or_with_one_as_a_json_string(agent: Yard, payload: Any) -> None:
    result = await execute(agent, "hubspot", "create_note", payload)
    answer = {"success": True, "data": {"name": "create_note", "got": {"body": "hi"}}}
    assert result["structuredContent"] == answer
    assert orjson.loads(text_of(result)) == answer
    assert not result["isError"]
    record = await agent.app.calls.get(result["_meta"]["toolyard/call-id"])
    assert (record.tool, record.server, record.state) == ("hubspot:create_note", "agent", CallState.COMPLETE)


async def test_a_workflow_runs_as_a_workflow_only(agent: Yard) -> None:
    result = await execute(agent, "onboarding", "welcome_customer", {"body": "x"}, "workflow")
    assert result["structuredContent"]["success"]
    wrong = await execute(agent, "onboarding", "welcome_customer", {"body": "x"}, "action")
    assert wrong["_meta"]["toolyard/error"]["code"] == "not_found"


async def test_the_whole_result_of_a_plain_text_tool_is_its_data(agent: Yard) -> None:
    async def say(_: Invocation) -> ToolResult:
        image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        return ToolResult(content=({"type": "text", "text": "[1, 2]"}, image))

    agent.provider.add("say", say)
    agent.provider.changed()
    await agent.app.supervisor.refresh("kit")
    result = await execute(agent, "kit", "say", {})
    assert result["structuredContent"] == {"success": True, "data": [1, 2]}
    assert len(result["content"]) == 2


@requirement("agentmode.execute")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({"action_id": "create_note"}, "invalid_arguments", "application_slug must be a string."),
        ({"application_slug": "hubspot", "action_id": 3}, "invalid_arguments", "action_id must be a string."),
        ({"type": "thing"}, "invalid_arguments", "type must be 'action' or 'workflow'."),
        ({"action_id": "create_notes"}, "not_found", "There is no action 'create_notes' of an app 'hubspot' here."),
        ({"application_slug": "secret"}, "not_found", "There is no action 'create_note' of an app 'secret' here."),
        ({"input_payload": None}, "invalid_arguments", "input_payload must be a JSON object, and is null."),
        ({"input_payload": [1]}, "invalid_arguments", "input_payload must be a JSON object, and is a list."),
        ({"input_payload": '{"body": '}, "invalid_arguments", "input_payload is a string that is not JSON"),
        ({"input_payload": '"text"'}, "invalid_arguments", "input_payload must be a JSON object, and is a string."),
        ({"input_payload": {"body": 3}}, "invalid_arguments", ""),
        ({"input_payload": ...}, "invalid_arguments", "input_payload is missing."),
    ],
)
async def test_a_failure_says_what_went_wrong_the_same_as_on_record(
    agent: Yard, arguments: dict[str, Any], code: str, said: str
) -> None:
    whole = {
        "application_slug": "hubspot",
        "action_id": "create_note",
        "input_payload": {"body": "x"},
        "type": "action",
    }
    if "application_slug" not in arguments and arguments == {"action_id": "create_note"}:
        whole = {}
    given = {name: value for name, value in {**whole, **arguments}.items() if value is not ...}
    result = await call(agent, "EXECUTE_ACTION", given)
    assert result["isError"]
    assert text_of(result).startswith(said)
    assert result["_meta"]["toolyard/error"]["code"] == code
    record, failure = await on_record(agent, result)
    assert failure == text_of(result)
    assert record.server == "agent"


async def test_a_failed_action_has_the_error_of_its_record(agent: Yard) -> None:
    result = await execute(agent, "kit", "fail", {})
    assert result["isError"]
    assert text_of(result) == "The kettle is empty. Fill it."
    assert (await on_record(agent, result))[1] == text_of(result)


async def test_resolving_runs_nothing_and_leaves_no_call(agent: Yard) -> None:
    await resolve(agent, "Create Note HubSpot")
    assert not (await agent.app.calls.page(CallFilter())).items


@requirement("server.direct")
@pytest.mark.parametrize("payload", [{"text": "hi"}, '{"text": "hi"}'])
async def test_in_direct_mode_arguments_come_plain_or_under_input_payload(wire: Wire, payload: Any) -> None:
    for arguments in ({"text": "hi"}, {"input_payload": payload}):
        params = {"name": "kit_echo_action", "arguments": arguments}
        result = (await wire.modern("tools/call", params)).json["result"]
        assert result["structuredContent"] == {"text": "hi"}


async def test_a_broken_input_payload_in_direct_mode_is_refused_and_on_record(yard: Yard) -> None:
    params = {"name": "kit_echo_action", "arguments": {"input_payload": "{"}}
    result = (await yard.wire.modern("tools/call", params)).json["result"]
    record, failure = await on_record(yard, result)
    assert result["isError"]
    assert record.tool == "kit:echo"
    assert failure == text_of(result)


async def test_an_argument_that_is_called_input_payload_stays_one(yard: Yard) -> None:
    own = Schema({"type": "object", "properties": {"input_payload": {"type": "object"}}})
    yard.provider.add("wrap", echo_all, input_schema=own)
    await yard.app.supervisor.refresh("kit")
    params = {"name": "kit_wrap_action", "arguments": {"input_payload": {"a": 1}}}
    result = (await yard.wire.modern("tools/call", params)).json["result"]
    assert result["structuredContent"]["got"] == {"input_payload": {"a": 1}}


async def test_a_server_with_bare_names_passes_input_payload_on(yard: Yard) -> None:
    await yard.app.save_server(Server("bare", names="bare"))
    params = {"name": "echo", "arguments": {"input_payload": {"text": "hi"}}}
    result = (await yard.wire.modern("tools/call", params, path="/mcp/bare")).json["result"]
    assert result["_meta"]["toolyard/error"]["code"] == "invalid_arguments"
