"""Tools that the session's client executes: handed out, kept alive, answered, or given up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.calls.waiting_yard import (
    APPROVER,
    CALLER,
    OTHER,
    Node,
    customizations,
    definition,
    loads,
    node,
)
from tests.requirements import requirement
from toolyard.calls.client_tools import read_customizations
from toolyard.core.call import CallOutcome, CallState
from toolyard.core.errors import BadInput, Conflict, ErrorCode, NotFound, TooLarge
from toolyard.core.session import ClientRequest, Session

DONE = {"state": "COMPLETE", "places": ["here"]}


async def called(n: Node, name: str = "getPlaces", **more: Any) -> tuple[Session, CallOutcome]:
    session = await n.sessions.create(CALLER, customizations(name))
    return session, await n.call(f"client:{name}", {"city": "Rome"}, session=session.id, **more)


@requirement("client.pickup")
@requirement("client.response")
async def test_a_client_call_is_picked_up_by_its_first_beat_and_ended_by_its_response(
    database: str, tmp_path: Path
) -> None:
    async with node(database, tmp_path) as n:
        session, waiting = await called(n)
        assert (waiting.state, waiting.waiting and waiting.waiting.kind) == (CallState.PENDING, "client")
        arguments = {"city": "Rome", "sessionId": session.id}
        (open_request,) = await n.clients.open(session.id, CALLER)
        assert open_request == ClientRequest(
            request_id=waiting.call_id,
            name="getPlaces",
            arguments=arguments,
            state="PENDING",
            deadline=open_request.deadline,
        )
        await n.clients.beat(session.id, waiting.call_id, CALLER, 1)
        (taken,) = await n.clients.open(session.id, CALLER)
        assert (taken.state, taken.deadline) == ("PROCESSING", None)
        state = await n.clients.respond(session.id, waiting.call_id, CALLER, DONE)
        assert state is CallState.COMPLETE
        outcome = await n.ended(waiting.call_id)
        assert outcome.result is not None
        assert (outcome.state, outcome.result.structured) == (CallState.COMPLETE, DONE)
        assert await n.clients.open(session.id, CALLER) == []
        told = [(event.kind, event.type) for event in await n.events(session)]
        assert told == [("tool", "tool_call"), ("tool", "tool_call_started"), ("tool", "tool_result")]
        call, _, result = await n.events(session)
        assert call.data == {
            "id": waiting.call_id,
            "name": "getPlaces",
            "tool_id": "client:getPlaces",
            "arguments": arguments,
            "execution": "client",
        }
        assert result.data == {
            "toolCallId": waiting.call_id,
            "name": "getPlaces",
            "tool_id": "client:getPlaces",
            "arguments": arguments,
            "success": True,
            "result": DONE,
            "resultPreview": '{"state":"COMPLETE","places":["here"]}',
        }
        assert [event.state for event in n.seen] == ["PENDING", "PROCESSING", "COMPLETE"]


async def test_the_caller_may_hold_on_and_the_client_may_poll_long(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n, asyncio.timeout(10):
        session = await n.sessions.create(CALLER, customizations("getPlaces"))
        polled = asyncio.create_task(n.clients.open(session.id, CALLER, wait=9.0))
        held = asyncio.create_task(n.call("client:getPlaces", {"city": "Rome"}, session=session.id, hold=None))
        (found,) = await polled
        await n.clients.respond(session.id, found.request_id, CALLER, DONE)
        assert (await held).state is CallState.COMPLETE


@requirement("client.response")
async def test_a_response_may_come_before_any_beat_and_passes_every_state(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session, waiting = await called(n)
        await n.clients.respond(session.id, waiting.call_id, CALLER, DONE)
        record = await n.record(waiting.call_id)
        assert record.state is CallState.COMPLETE
        assert record.started is not None


@requirement("client.response")
async def test_an_identical_retry_is_accepted_and_a_second_answer_is_not(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session, waiting = await called(n)
        for _ in range(3):
            assert await n.clients.respond(session.id, waiting.call_id, CALLER, DONE) is CallState.COMPLETE
        with pytest.raises(Conflict, match="has ended already: COMPLETE"):
            await n.clients.respond(session.id, waiting.call_id, CALLER, {**DONE, "places": []})
        with pytest.raises(Conflict):
            await n.clients.fail(session.id, waiting.call_id, CALLER, "too late")
        with pytest.raises(Conflict):
            await n.clients.beat(session.id, waiting.call_id, CALLER)
        assert n.clients.beat_many(CALLER, [(session.id, waiting.call_id)]) == [[session.id, waiting.call_id]]
        assert len([e for e in await n.events(session) if e.type == "tool_result"]) == 1


async def test_of_many_answers_at_once_one_wins(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session, waiting = await called(n)
        answers = [{**DONE, "places": [str(i)]} for i in range(6)]
        made = await asyncio.gather(
            *(n.clients.respond(session.id, waiting.call_id, CALLER, answer) for answer in answers),
            return_exceptions=True,
        )
        assert [type(one) for one in made if isinstance(one, BaseException)] == [Conflict] * 5
        won = answers[[isinstance(one, CallState) for one in made].index(True)]
        outcome = await n.ended(waiting.call_id)
        assert outcome.result is not None
        assert outcome.result.structured == won


@pytest.mark.parametrize(
    ("response", "where"),
    [
        ({}, "response.state"),
        ({"state": "DONE"}, "response.state"),
        ({"state": "COMPLETE", "places": "here"}, "response.places"),
        ({"state": "COMPLETE", "places": ["here", 3]}, "response.places[1]"),
    ],
)
@requirement("client.response")
async def test_a_response_of_the_wrong_shape_names_the_field_and_leaves_the_call_open(
    tmp_path: Path, response: dict[str, Any], where: str
) -> None:
    async with node(str(tmp_path / "t.db"), tmp_path) as n:
        session, waiting = await called(n)
        with pytest.raises(BadInput, match="does not have the shape") as refused:
            await n.clients.respond(session.id, waiting.call_id, CALLER, response)
        assert refused.value.where == where
        assert await n.clients.respond(session.id, waiting.call_id, CALLER, DONE) is CallState.COMPLETE


async def test_fifty_megabytes_are_refused_and_the_call_stays_open(tmp_path: Path) -> None:
    async with node(str(tmp_path / "t.db"), tmp_path) as n:
        session, waiting = await called(n)
        with pytest.raises(TooLarge):
            await n.clients.respond(session.id, waiting.call_id, CALLER, {**DONE, "places": ["x" * 50_000_000]})
        assert await n.clients.respond(session.id, waiting.call_id, CALLER, DONE) is CallState.COMPLETE


@requirement("client.heartbeat")
async def test_failures_end_the_call_in_the_clients_words(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session, by_beat = await called(n)
        for _ in range(2):
            await n.clients.fail(session.id, by_beat.call_id, CALLER, "Query timed\x1b[2J out")
        outcome = await n.ended(by_beat.call_id)
        assert outcome.failure is not None
        assert (outcome.failure.code, outcome.failure.message) == (ErrorCode.UPSTREAM, "Query timed out")
        by_response = await n.call("client:getPlaces", {"city": "Rome"}, session=session.id)
        failed = {"state": "FAILED", "error": "no such city"}
        assert await n.clients.respond(session.id, by_response.call_id, CALLER, failed) is CallState.ERROR
        outcome = await n.ended(by_response.call_id)
        assert outcome.failure is not None
        assert outcome.failure.message == "no such city"


async def test_a_response_that_is_pending_counts_as_a_beat(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session, waiting = await called(n)
        assert await n.clients.respond(session.id, waiting.call_id, CALLER, {"state": "PENDING"}) is (
            CallState.PROCESSING
        )
        assert (await n.record(waiting.call_id)).state is CallState.PROCESSING


@requirement("client.abandoned")
@requirement("client.disconnect")
async def test_silence_abandons_a_call_and_a_late_answer_is_refused(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session, waiting = await called(n)
        await n.clients.beat(session.id, waiting.call_id, CALLER)
        await n.turn_database_clock(32.0)
        await n.clients.abandon()
        assert (await n.record(waiting.call_id)).state is CallState.PROCESSING, "30 s and a flush are not over"
        await n.turn_database_clock(1.0)
        await n.clients.abandon()
        outcome = await n.ended(waiting.call_id)
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.ABANDONED
        with pytest.raises(Conflict, match="abandoned"):
            await n.clients.respond(session.id, waiting.call_id, CALLER, DONE)
        assert (await n.events(session))[-1].data["code"] == "abandoned"


@requirement("client.abandoned")
async def test_a_beating_call_is_never_abandoned_however_the_flushes_fall(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session, waiting = await called(n)
        await n.clients.beat(session.id, waiting.call_id, CALLER)
        for _ in range(20):
            await n.turn_database_clock(27.9)  # a beat every 29.9 s, each flushed 2 s later
            assert n.clients.beat_many(CALLER, [(session.id, waiting.call_id)]) == []
            await n.turn_database_clock(2.0)
            await n.clients.abandon()
            await n.clients.flush()
        assert (await n.record(waiting.call_id)).state is CallState.PROCESSING


@requirement("client.heartbeat")
async def test_a_batch_of_beats_tells_what_is_gone_and_takes_up_what_is_new(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session, first = await called(n)
        second = await n.call("client:getPlaces", {"city": "Bonn"}, session=session.id)
        pairs = [(session.id, first.call_id), (session.id, second.call_id), (session.id, "call_none")]
        assert n.clients.beat_many(CALLER, pairs) == []
        await n.clients.flush()
        assert n.clients.beat_many(CALLER, pairs) == [[session.id, "call_none"]]
        assert n.clients.beat_many(OTHER, pairs[:1]) == [[session.id, first.call_id]], "somebody else's"
        assert {r.state for r in await n.clients.open(session.id, CALLER)} == {"PROCESSING"}
        await n.calls.cancel(first.call_id, CALLER)
        n.clients.beat_many(CALLER, pairs)
        await n.clients.flush()
        assert n.clients.beat_many(CALLER, pairs) == [[session.id, first.call_id], [session.id, "call_none"]]


async def test_a_lost_lease_means_one_fresh_time_out(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session, waiting = await called(n)
        await n.clients.beat(session.id, waiting.call_id, CALLER)
        await n.store.tx(lambda c: c.execute("DELETE FROM call_leases"))
        await n.clients.flush()
        assert await n.store.read(lambda c: c.execute("SELECT call_id FROM call_leases").fetchall()) == [
            (waiting.call_id,)
        ]
        await n.store.tx(lambda c: c.execute("DELETE FROM call_leases"))
        n.clock.at += 31.0
        await n.clients.abandon()
        assert (await n.record(waiting.call_id)).state is CallState.PROCESSING
        await n.turn_database_clock(33.0)
        await n.clients.abandon()
        assert (await n.record(waiting.call_id)).error_code is ErrorCode.ABANDONED


@requirement("client.abandoned")
async def test_a_call_that_nobody_picks_up_ends_after_its_own_time_out(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        _, waiting = await called(n)
        await n.turn_database_clock(299.0)
        await n.clients.abandon()
        assert (await n.record(waiting.call_id)).state is CallState.PENDING
        await n.turn_database_clock(2.0)
        await n.clients.abandon()
        outcome = await n.ended(waiting.call_id)
        assert outcome.failure is not None
        assert (outcome.failure.code, "No client picked up" in outcome.failure.message) == (ErrorCode.ABANDONED, True)


@requirement("client.disconnect")
async def test_a_client_call_outlives_the_node_that_it_was_made_on(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, crash=True) as first:
        session, waiting = await called(first)
        await first.clients.beat(session.id, waiting.call_id, CALLER)
    async with node(database, tmp_path) as second:
        await second.clients.beat(session.id, waiting.call_id, CALLER)
        assert await second.clients.respond(session.id, waiting.call_id, CALLER, DONE) is CallState.COMPLETE


async def test_somebody_elses_session_and_request_look_like_none(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session, waiting = await called(n)
        theirs = await n.sessions.create(OTHER, customizations("getPlaces"))
        for session_id, request_id, who in (
            (session.id, waiting.call_id, OTHER),
            (theirs.id, waiting.call_id, OTHER),
            (theirs.id, waiting.call_id, CALLER),
            (session.id, "call_none", CALLER),
            ("sess_none", waiting.call_id, CALLER),
        ):
            with pytest.raises(NotFound):
                await n.clients.respond(session_id, request_id, who, DONE)
            with pytest.raises(NotFound):
                await n.clients.beat(session_id, request_id, who)
            with pytest.raises(NotFound):
                await n.clients.fail(session_id, request_id, who, "no")
        refused = await n.call("client:getPlaces", {"city": "Rome"}, session=session.id, principal=OTHER)
        assert refused.failure is not None
        assert refused.failure.code is ErrorCode.NOT_FOUND
        assert len(await n.events(session)) == 1, "a stranger's refused call is not in the session's log"


@requirement("client.injected-fields")
async def test_session_id_and_state_are_injected_and_may_be_named_already(tmp_path: Path) -> None:
    named = definition("named")
    named["requestArgs"]["properties"]["sessionId"] = {"type": "string", "description": "Which conversation."}
    named["responseShape"]["properties"]["state"] = {"type": "string", "enum": ["COMPLETE"]}
    read = read_customizations({"extensions": {"tools": {"plain": definition("plain"), "named": named}}})
    plain, other = read.tools["plain"], read.tools["named"]
    schema: Any = plain.tool.input_schema.document()
    assert schema["properties"]["sessionId"] == {"type": "string"}
    assert schema["required"] == ["city", "sessionId"]
    shape: Any = plain.response_shape
    assert shape["properties"]["state"] == {"type": "string", "enum": ["COMPLETE", "FAILED", "PENDING"]}
    assert shape["required"] == ["state"]
    known: Any = other.tool.input_schema.document()
    assert known["properties"]["sessionId"] == {"type": "string", "description": "Which conversation."}
    shape = other.response_shape
    assert shape["properties"]["state"]["enum"] == ["COMPLETE", "FAILED", "PENDING"]
    async with node(str(tmp_path / "t.db"), tmp_path) as n:
        session = await n.sessions.create(CALLER, customizations("getPlaces"))
        wrong = await n.call("client:getPlaces", {"city": "Rome", "sessionId": "sess_other"}, session=session.id)
        assert wrong.failure is not None
        assert wrong.failure.code is ErrorCode.INVALID_ARGUMENTS


def _with(**changes: Any) -> dict[str, Any]:
    return {"extensions": {"tools": {"getPlaces": {**definition("getPlaces"), **changes}}}}


@pytest.mark.parametrize(
    ("given", "where", "message"),
    [
        ({"agentID": "x"}, "customizations.agentID", "Did you mean 'agentId'?"),
        ({"agentId": 3}, "customizations.agentId", "must be a string"),
        ({"extensions": []}, "customizations.extensions", "must be an object"),
        ({"extensions": {"tool": {}}}, "customizations.extensions.tool", "Did you mean 'tools'?"),
        ({"extensions": {"mcpProviders": "crm"}}, "customizations.extensions.mcpProviders", "list of provider names"),
        ({"extensions": {"tools": [1]}}, "customizations.extensions.tools", "must be an object"),
        (_with(name="other"), "customizations.extensions.tools.getPlaces.name", "must be equal"),
        (_with(name="_getPlaces"), "customizations.extensions.tools.getPlaces.name", "reserved"),
        (_with(name="priv_x"), "customizations.extensions.tools.getPlaces.name", "reserved"),
        (_with(name="mcp_x"), "customizations.extensions.tools.getPlaces.name", "reserved"),
        (_with(name="get places"), "customizations.extensions.tools.getPlaces.name", "cannot be a tool's name"),
        (_with(description=None), "customizations.extensions.tools.getPlaces.description", "must be a string"),
        (_with(colour="red"), "customizations.extensions.tools.getPlaces.colour", "unknown field"),
        (
            _with(requestArgs={"properties": {"a": {"type": "strin"}}}),
            "customizations.extensions.tools.getPlaces.requestArgs",
            "no JSON Schema",
        ),
        (
            _with(requestArgs={"properties": {"city": {}}, "required": ["cty"]}),
            "customizations.extensions.tools.getPlaces.requestArgs.required",
            "Did you mean 'city'?",
        ),
        (_with(responseShape=None), "customizations.extensions.tools.getPlaces.responseShape", "must be an object"),
    ],
)
@requirement("client.tools")
def test_definitions_that_cannot_be_accepted_say_what_and_where(
    given: dict[str, Any], where: str, message: str
) -> None:
    with pytest.raises(BadInput) as refused:
        read_customizations(given)
    assert refused.value.where == where
    assert message in str(refused.value)


@requirement("client.tools")
async def test_a_session_keeps_what_its_client_brought_along(database: str, tmp_path: Path) -> None:
    given = {
        "agentId": "RfsAgent",
        "extensions": {"tools": {"getPlaces": definition("getPlaces")}, "mcpProviders": ["crm"]},
    }
    async with node(database, tmp_path, crash=True) as first:
        made = await first.sessions.create(CALLER, given)
    async with node(database, tmp_path) as second:
        session = await second.sessions.get(made.id, CALLER)
        assert session == made
        assert (session.agent_id, session.mcp_providers, list(session.tools)) == ("RfsAgent", ("crm",), ["getPlaces"])
        with pytest.raises(NotFound):
            await second.sessions.get(made.id, OTHER)


async def test_a_gated_client_call_reaches_its_client_only_once_it_is_approved(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path) as n:
        session, waiting = await called(n, server="asking")
        gate = await n.gate(waiting.call_id)
        assert await n.clients.open(session.id, CALLER) == []
        with pytest.raises(NotFound):
            await n.clients.respond(session.id, waiting.call_id, CALLER, DONE)
        edited = {"city": "Bonn", "sessionId": session.id}
        await n.approvals.decide(gate.id, decision="approve", principal=APPROVER, arguments=edited)
        (found,) = await n.clients.open(session.id, CALLER, wait=10.0)
        assert found.arguments == edited
        await n.clients.respond(session.id, waiting.call_id, CALLER, DONE)
        assert (await n.ended(waiting.call_id)).state is CallState.COMPLETE
        assert [f"{e.kind} {e.type}" for e in await n.events(session)] == [
            "approval requested",
            "approval decided",
            "tool tool_call",
            "tool tool_result",
        ]
        assert loads((await n.record(waiting.call_id)).arguments) == edited
