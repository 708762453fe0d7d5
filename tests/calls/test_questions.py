"""A running tool asks its caller: held on its node, or left to a job until the answers are there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.calls.waiting_yard import CALLER, OTHER, Node, node
from tests.requirements import requirement
from tests.store.postgres import PostgresServer
from toolyard.calls.questions import Questions
from toolyard.core.call import CallOutcome, CallState, Progress, ToolResult
from toolyard.core.errors import BadInput, ErrorCode, NotFound
from toolyard.core.json import JsonObject
from toolyard.core.question import ELICITATION, SAMPLING, NeedsInput, Question
from toolyard.providers.base import Invocation

FORMS = frozenset({"elicitation.form"})
NAME = Question("name", ELICITATION, {"message": "Who are you?", "requestedSchema": {"type": "object"}})
JOKE = Question("joke", SAMPLING, {"messages": [], "maxTokens": 9})
ACCEPTED: JsonObject = {"action": "accept", "content": {"name": "Ada"}}


async def held(invocation: Invocation) -> ToolResult:
    assert invocation.ask is not None
    answers = await invocation.ask([NAME])
    return ToolResult.of_value(answers["name"])


async def in_rounds(invocation: Invocation) -> ToolResult:
    """As a modern upstream: the request comes again with what was answered."""
    if not invocation.answers:
        raise NeedsInput([NAME], "state-1")
    if invocation.upstream_state == "state-1":
        raise NeedsInput([NAME, Question("again", ELICITATION, {"message": "Sure?"})], "state-2")
    return ToolResult.of_value({"state": invocation.upstream_state, **invocation.answers})


def questions(here: Node) -> Questions:
    return Questions(here.store, here.engine)


def asked(outcome: CallOutcome) -> list[str]:
    assert outcome.waiting is not None
    assert outcome.waiting.kind == "question"
    return [question.key for question in outcome.waiting.questions]


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "toolyard.db")
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_database()


@requirement("mcp.bridge")
@pytest.mark.parametrize("tool", ["crm:write", "crm:read"])
async def test_a_tool_that_asks_is_answered_and_goes_on(shared: str, tmp_path: Path, tool: str) -> None:
    async with node(shared, tmp_path, held) as here, asyncio.timeout(20):
        outcome = await here.call(tool, {"text": "a"}, may_ask=FORMS)
        assert asked(outcome) == ["name"]
        assert outcome.state is CallState.PROCESSING
        assert await questions(here).answer(outcome.call_id, {"name": ACCEPTED}, CALLER) == []
        ended = await here.calls.follow(outcome.call_id, CALLER, hold=None)
        assert ended.state is CallState.COMPLETE
        assert ended.result is not None
        assert ended.result.structured == ACCEPTED


@requirement("mcp.bridge")
async def test_rounds_of_questions_hold_nothing_in_memory_and_end_on_another_node_after_a_crash(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    shared = postgres_server.new_database()
    async with asyncio.timeout(30), node(shared, tmp_path, in_rounds) as other:
        async with node(shared, tmp_path, in_rounds, crash=True) as first:
            outcome = await first.call("crm:write", {"text": "a"}, may_ask=FORMS)
            assert asked(outcome) == ["name"]
        await questions(other).answer(outcome.call_id, {"name": ACCEPTED}, CALLER)
        second = await other.calls.follow(outcome.call_id, CALLER, hold=None)
        assert asked(second) == ["again", "name-2"]
        left = await questions(other).answer(outcome.call_id, {"again": {"action": "decline"}}, CALLER)
        assert [question.key for question in left] == ["name-2"]
        partly = await other.calls.follow(outcome.call_id, CALLER, hold=None)
        assert asked(partly) == ["name-2"]
        await questions(other).answer(outcome.call_id, {"name-2": ACCEPTED}, CALLER)
        ended = await other.calls.follow(outcome.call_id, CALLER, hold=None)
        assert ended.result is not None
        assert ended.result.structured == {"state": "state-2", "name": ACCEPTED, "again": {"action": "decline"}}
        assert len(other.provider.seen) == 2


async def test_the_answer_may_come_through_another_node(postgres_server: PostgresServer, tmp_path: Path) -> None:
    shared = postgres_server.new_database()
    async with node(shared, tmp_path, held) as one, node(shared, tmp_path, held) as two, asyncio.timeout(20):
        outcome = await one.call("crm:write", {"text": "a"}, may_ask=FORMS)
        following = asyncio.create_task(two.calls.follow(outcome.call_id, CALLER, hold=0.0))
        assert asked(await following) == ["name"]
        await questions(two).answer(outcome.call_id, {"name": ACCEPTED}, CALLER)
        assert (await two.calls.follow(outcome.call_id, CALLER, hold=None)).state is CallState.COMPLETE


async def test_a_call_whose_node_died_while_its_tool_asked_is_interrupted(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    shared = postgres_server.new_database()
    async with asyncio.timeout(30), node(shared, tmp_path) as other:
        async with node(shared, tmp_path, held, crash=True) as first:
            outcome = await first.call("crm:write", {"text": "a"}, may_ask=FORMS)
            first.calls._background.clear()  # pyright: ignore[reportPrivateUsage]  # as kill -9: nobody is told
        # A node that lives between two looks is only found by the look at every open call, each ten seconds.
        ended = await other.ended(outcome.call_id, seconds=20)
        assert ended.failure is not None
        assert ended.failure.code is ErrorCode.INTERRUPTED


async def test_what_the_caller_cannot_answer_is_declined_or_refused(shared: str, tmp_path: Path) -> None:
    async def asks_all(invocation: Invocation) -> ToolResult:
        assert invocation.ask is not None
        return ToolResult.of_value((await invocation.ask([NAME]))["name"])

    async def wants_a_model(invocation: Invocation) -> ToolResult:
        raise NeedsInput([JOKE], None)

    async with node(shared, tmp_path, asks_all) as here:
        outcome = await here.call("crm:write", {"text": "a"}, may_ask=frozenset({"roots"}))
        assert outcome.result is not None
        assert outcome.result.structured == {"action": "decline"}
        here.provider.behaviour = wants_a_model
        for may_ask in (FORMS, frozenset[str]()):
            refused = await here.call("crm:write", {"text": "a"}, may_ask=may_ask)
            assert refused.failure is not None
            assert refused.failure.code is ErrorCode.UPSTREAM
            assert "sampling" in refused.failure.message


async def test_another_principals_call_does_not_exist_and_a_wrong_answer_changes_nothing(
    shared: str, tmp_path: Path
) -> None:
    async with node(shared, tmp_path, held) as here, asyncio.timeout(20):
        outcome = await here.call("crm:write", {"text": "a"}, may_ask=FORMS)
        with pytest.raises(NotFound):
            await questions(here).answer(outcome.call_id, {"name": ACCEPTED}, OTHER)
        with pytest.raises(NotFound):
            await here.calls.follow(outcome.call_id, OTHER, hold=0.0)
        with pytest.raises(BadInput):
            await questions(here).answer(outcome.call_id, {"name": {"action": "perhaps"}}, CALLER)
        still = await questions(here).answer(outcome.call_id, {"unknown": ACCEPTED}, CALLER)
        assert [question.key for question in still] == ["name"]
        assert await here.calls.cancel(outcome.call_id, CALLER)
        ended = await here.ended(outcome.call_id)
        assert ended.failure is not None
        assert ended.failure.code is ErrorCode.CANCELLED
        assert await questions(here).answer(outcome.call_id, {"name": ACCEPTED}, CALLER) == []


async def test_the_time_that_people_take_does_not_count(tmp_path: Path) -> None:
    async with node(str(tmp_path / "t.db"), tmp_path, held) as here, asyncio.timeout(20):
        outcome = await here.call("crm:write", {"text": "a"}, may_ask=FORMS, time_limit=0.2)
        expired = await here.calls.follow(outcome.call_id, CALLER, hold=0.4)
        assert asked(expired) == ["name"]
        await questions(here).answer(outcome.call_id, {"name": ACCEPTED}, CALLER)
        assert (await here.calls.follow(outcome.call_id, CALLER, hold=None)).state is CallState.COMPLETE


async def test_whoever_follows_hears_the_tools_reports(tmp_path: Path) -> None:
    heard: list[Progress] = []

    async def reports(invocation: Invocation) -> ToolResult:
        assert invocation.ask is not None
        await invocation.ask([NAME])
        assert invocation.progress is not None
        invocation.progress(Progress(1.0))
        return ToolResult.of_text("done")

    async with node(str(tmp_path / "t.db"), tmp_path, reports) as here, asyncio.timeout(20):
        outcome = await here.call("crm:write", {"text": "a"}, may_ask=FORMS)
        await here.calls.follow(outcome.call_id, CALLER, hold=0.0, progress=heard.append)
        await questions(here).answer(outcome.call_id, {"name": ACCEPTED}, CALLER)
        await here.calls.follow(outcome.call_id, CALLER, hold=None, progress=heard.append)
        assert heard == [Progress(1.0)]
