"""An upstream asks while its tool runs: over HTTP and stdio, in both eras, each caller on a session of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.providers.mcp.connecting import Connected, connected, connected_http
from tests.providers.mcp.scripted import Reply, Scripted
from tests.providers.mcp.servers.sdk_server import Behaviours
from tests.providers.mcp.serving import served
from tests.requirements import requirement
from toolyard.core.errors import CallError
from toolyard.core.json import JsonObject
from toolyard.core.question import DECLINED, NeedsInput, Question
from toolyard.providers.mcp import McpStdioProvider
from toolyard.providers.mcp.asking_links import AskingLinks

SSE = "text/event-stream"
FORMS = frozenset({"elicitation.form"})
SERVER = Path(__file__).parent / "servers" / "stdio_server.py"
pytestmark = pytest.mark.filterwarnings("ignore:The logging capability is deprecated")


class Caller:
    """Answers every form with its own name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[Question] = []
        self.told: list[JsonObject] = []

    async def ask(self, questions: Sequence[Question]) -> Mapping[str, JsonObject]:
        self.asked += questions
        return {question.key: self.answer for question in questions}

    @property
    def answer(self) -> JsonObject:
        return {"action": "accept", "content": {"name": self.name}}

    async def calls(self, up: Connected, **arguments: Any) -> Any:
        result = await up.call("ask", arguments, ask=self.ask, log=self.told.append, may_ask=FORMS)
        return result.structured


@pytest.fixture
def url() -> Iterator[str]:
    with served(Behaviours().server().streamable_http_app()) as base:
        yield f"{base}/mcp"


@requirement("mcp.bridge")
@pytest.mark.parametrize("here", [True, False], ids=["on the call's stream", "on the session's stream"])
async def test_a_legacy_upstream_over_http_asks_the_caller_and_logs_to_it(url: str, here: bool) -> None:
    caller = Caller("Ada")
    async with asyncio.timeout(20), connected_http(url, era="legacy") as up:
        assert await caller.calls(up, here=here) == caller.answer
    assert [(question.method, question.params["message"]) for question in caller.asked] == [
        ("elicitation/create", "Name?")
    ]
    assert [(said["level"], said["data"]) for said in caller.told] == [("warning", "asking")]


@requirement("mcp.bridge")
async def test_a_legacy_upstream_over_stdio_asks_only_a_caller_that_can_answer() -> None:
    caller = Caller("Ada")
    provider = McpStdioProvider("up", [sys.executable, "-I", str(SERVER), "legacy"])
    async with asyncio.timeout(20), connected(provider) as up:
        asked = await up.call("ask", ask=caller.ask, may_ask=FORMS)
        plain = await up.call("ask")
    texts = [json.loads(str(result.content[0]["text"])) for result in (asked, plain)]
    assert texts == [[{"elicitation": {"form": {}}}, caller.answer], [{}, -32601]]


async def test_each_of_two_calls_at_once_is_asked_its_own_question(url: str) -> None:
    ada, bob = Caller("Ada"), Caller("Bob")
    async with asyncio.timeout(20), connected_http(url, era="legacy") as up:
        answers = await asyncio.gather(ada.calls(up, here=True), bob.calls(up, here=True))
    assert answers == [ada.answer, bob.answer]


async def test_an_upstream_may_not_ask_a_caller_who_declared_nothing(url: str) -> None:
    caller = Caller("Ada")
    async with asyncio.timeout(20), connected_http(url, era="legacy") as up:
        assert await caller.calls(up, here=True) == caller.answer
        with pytest.raises(CallError):
            await up.call("ask", {"here": True})
    assert len(caller.asked) == 1


@requirement("mcp.bridge")
async def test_a_modern_upstream_is_told_what_this_caller_can_answer_and_gets_the_answers_with_its_state() -> None:
    form = {"mode": "form", "message": "Name?", "requestedSchema": {"type": "object"}}
    wants = {"who": {"method": "elicitation/create", "params": form}}
    server = Scripted(tools__call={"resultType": "input_required", "inputRequests": wants, "requestState": "sealed"})
    with served(server) as url:
        async with connected_http(url) as up:
            with pytest.raises(NeedsInput) as caught:
                await up.call("echo", may_ask=FORMS)
            assert (caught.value.questions, caught.value.state) == (
                (Question("who", "elicitation/create", form),),
                "sealed",
            )
            server.answers["tools/call"] = {"resultType": "complete", "content": []}
            await up.call("echo", may_ask=FORMS, answers={"who": DECLINED}, upstream_state="sealed")
            await up.call("echo")
    first, again, plain = [m["params"] for _, _, m in server.seen if m.get("method") == "tools/call"]
    assert (again["inputResponses"], again["requestState"]) == ({"who": DECLINED}, "sealed")
    declared = [
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"].get("elicitation") for params in (first, plain)
    ]
    assert declared == [{"form": {}}, None]


async def test_an_answer_that_is_lost_on_its_way_to_a_legacy_upstream_is_sent_again() -> None:
    asks = {
        "jsonrpc": "2.0",
        "id": "q1",
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Name?"},
    }
    loop, received = asyncio.get_running_loop(), asyncio.Event()
    statuses = iter([503, 202])

    def reply(message: dict[str, Any]) -> Reply:
        status = next(statuses)
        if status == 202:
            loop.call_soon_threadsafe(received.set)
        return Reply(status, b"")

    server = Scripted(
        era="legacy",
        tools__call=lambda _: Reply(200, b"id: 7\nretry: 1\ndata: " + json.dumps(asks).encode() + b"\n\n", kind=SSE),
        POST=reply,
    )
    caller = Caller("Ada")
    with served(server) as url:
        async with connected_http(url, era="legacy") as up:
            calling = asyncio.create_task(up.call("echo", ask=caller.ask, may_ask=FORMS))
            async with asyncio.timeout(10):
                await received.wait()
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
    replies = [message for _, _, message in server.seen if message.get("id") == "q1"]
    assert replies == [{"jsonrpc": "2.0", "id": "q1", "result": caller.answer}] * 2


async def test_an_upstream_that_answers_with_nothing_but_a_state_is_asked_again_with_it() -> None:
    states = iter(["one", "two"])

    def not_yet(_: dict[str, Any]) -> Any:
        state = next(states, None)
        return {"content": []} if state is None else {"resultType": "input_required", "requestState": state}

    server = Scripted(tools__call=not_yet)
    with served(server) as url:
        async with connected_http(url) as up:
            await up.call("echo", {"text": "hi"})
    sent = [m["params"] for _, _, m in server.seen if m.get("method") == "tools/call"]
    assert [(params.get("requestState"), params["arguments"]) for params in sent] == [
        (None, {"text": "hi"}),
        ("one", {"text": "hi"}),
        ("two", {"text": "hi"}),
    ]


async def test_a_modern_upstream_that_asks_for_what_we_do_not_know_fails_its_call() -> None:
    server = Scripted(tools__call={"resultType": "input_required", "inputRequests": {"x": {"method": "dance"}}})
    with served(server) as url:
        async with connected_http(url) as up:
            with pytest.raises(CallError, match="The tool asks for 'dance', which is not known here"):
                await up.call("echo", may_ask=FORMS)


class _Link:
    relay = None
    lost = False

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def close(self) -> None:
        self.closed.set()


async def test_a_session_in_use_is_never_closed_and_an_unused_one_is() -> None:
    opened: list[_Link] = []

    async def connect(_: JsonObject) -> Any:
        opened.append(_Link())
        return opened[-1]

    links = AskingLinks(connect, most=1, idle=0.01)
    async with asyncio.timeout(5):
        async with links.of("ada", FORMS), links.of("bob", FORMS), links.of("ada", FORMS):
            assert [link.closed.is_set() for link in opened] == [False, False]
        await asyncio.gather(*(link.closed.wait() for link in opened))
        await links.close()
    assert len(opened) == 2
