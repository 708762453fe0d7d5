"""Resources, prompts, completion and logs at the edge: alike for both eras, under a server's own names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.faces.mcp import library
from tests.faces.mcp.yard import BOTH, Request, Wire, legacy_headers
from toolyard.app import App, Settings
from toolyard.catalog import Server
from toolyard.core.errors import ErrorCode
from toolyard.core.record import CallFilter
from toolyard.faces.mcp import build
from toolyard.providers.python import PythonProvider

FORMS = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}


@dataclass
class Shelf:
    app: App
    provider: PythonProvider
    wire: Wire


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    async with App.running(Settings(data_dir=tmp_path, demo=True)) as app:
        provider = PythonProvider.from_module("lib", library.__name__)
        await app.supervisor.add_and_start(provider)
        await app.save_server(Server("plain", names="bare", tools=("lib:*",)))
        await app.save_server(Server("few", tools=("lib:greet", "lib:notes://t*")))
        yield Shelf(app, provider, Wire(build(app)))


class Era:
    """The same requests in one era."""

    def __init__(self, shelf: Shelf, path: str, *, legacy: bool) -> None:
        self.shelf, self.path, self.legacy = shelf, path, legacy
        self.session: Any = None

    async def send(self, method: str, params: dict[str, Any] | None = None) -> Any:
        if self.legacy:
            self.session = self.session or await self.shelf.wire.initialize(path=self.path)
            return (await self.session.send(method, params or {})).json
        named = {"resources/read": "uri", "prompts/get": "name", "tools/call": "name"}.get(method)
        headers = {"Mcp-Name": (params or {})[named]} if named else None
        return (await self.shelf.wire.modern(method, params or {}, path=self.path, headers=headers)).json

    async def result(self, method: str, params: dict[str, Any] | None = None) -> Any:
        answer = await self.send(method, params)
        result = dict(answer["result"])
        stamps = [result.pop(name, None) for name in ("resultType", "ttlMs", "cacheScope", "_meta")]
        assert (stamps[0] is None) is self.legacy
        return result


ERAS = pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])


@ERAS
async def test_a_bare_server_shows_resources_and_templates_as_their_module_has_them(shelf: Shelf, legacy: bool) -> None:
    era = Era(shelf, "/mcp/plain", legacy=legacy)
    assert await era.result("resources/list") == {
        "resources": [
            {"uri": "notes://asking", "name": "asking"},
            {"uri": "notes://picture", "name": "picture"},
            {
                "uri": "notes://today",
                "name": "today",
                "title": "Today",
                "description": "What is to be done.",
                "mimeType": "text/markdown",
            },
            {"uri": "ui://board", "name": "board", "mimeType": "text/html;profile=mcp-app"},
        ]
    }
    assert await era.result("resources/templates/list") == {
        "resourceTemplates": [
            {"uriTemplate": "notes://box/{box}/note/{number}", "name": "note", "description": "One note of a box."}
        ]
    }


@ERAS
@pytest.mark.parametrize(
    ("uri", "content"),
    [
        ("notes://today", {"mimeType": "text/markdown", "text": "# Today\nSleep.\x00"}),
        ("notes://picture", {"mimeType": "application/octet-stream", "blob": "AAE="}),
        ("notes://box/b%201/note/3", {"mimeType": "application/json", "text": '{"box":"b%201","number":3}'}),
        ("ui://board", {"mimeType": "text/html;profile=mcp-app", "text": "<h1>Board</h1>"}),
    ],
)
async def test_a_resource_is_read_to_the_letter(shelf: Shelf, legacy: bool, uri: str, content: dict[str, Any]) -> None:
    era = Era(shelf, "/mcp/plain", legacy=legacy)
    assert await era.result("resources/read", {"uri": uri}) == {"contents": [{"uri": uri, **content}]}


@ERAS
@pytest.mark.parametrize("uri", ["notes://nowhere", "notes://box/a/note/10", "other://x", "notes://box/a/note/many"])
async def test_a_resource_that_is_not_there_is_the_eras_own_error(shelf: Shelf, legacy: bool, uri: str) -> None:
    answer = await Era(shelf, "/mcp/plain", legacy=legacy).send("resources/read", {"uri": uri})
    assert answer["error"]["code"] == (-32002 if legacy else -32602)


@ERAS
async def test_a_server_with_direct_names_puts_the_provider_in_front_and_takes_it_off_again(
    shelf: Shelf, legacy: bool
) -> None:
    era = Era(shelf, "/mcp", legacy=legacy)
    listed = await era.result("resources/list")
    uris = [one["uri"] for one in listed["resources"]]
    assert uris == ["notes://lib/asking", "notes://lib/picture", "notes://lib/today", "ui://lib/board"]
    (template,) = (await era.result("resources/templates/list"))["resourceTemplates"]
    assert template["uriTemplate"] == "notes://lib/box/{box}/note/{number}"
    for uri in ("notes://lib/today", "notes://lib/box/a/note/3"):
        (content,) = (await era.result("resources/read", {"uri": uri}))["contents"]
        assert content["uri"] == uri
    assert "error" in await era.send("resources/read", {"uri": "notes://today"})
    (_, said) = (await era.result("prompts/get", {"name": "lib_dialogue_prompt"}))["messages"]
    assert said["content"]["resource"]["uri"] == "notes://lib/today"


@ERAS
async def test_a_server_shows_only_what_its_patterns_include(shelf: Shelf, legacy: bool) -> None:
    era = Era(shelf, "/mcp/few", legacy=legacy)
    assert [one["uri"] for one in (await era.result("resources/list"))["resources"]] == ["notes://lib/today"]
    assert [one["name"] for one in (await era.result("prompts/list"))["prompts"]] == ["lib_greet_prompt"]
    assert "error" in await era.send("resources/read", {"uri": "notes://lib/picture"})
    assert "error" in await era.send("prompts/get", {"name": "lib_dialogue_prompt"})


@ERAS
@pytest.mark.parametrize("uri", ["notes://today", "notes://box/a/note/3", "notes://in-no-list"])
@pytest.mark.parametrize("tools", [("pets:*",), ("lib:touch",), ("*", "!lib:notes://*")])
async def test_bare_names_are_no_way_around_a_servers_patterns(
    shelf: Shelf, legacy: bool, uri: str, tools: tuple[str, ...]
) -> None:
    await shelf.app.save_server(Server("other", names="bare", tools=tools))
    refused = await Era(shelf, "/mcp/other", legacy=legacy).send("resources/read", {"uri": uri})
    assert refused["error"]["code"] == (-32002 if legacy else -32602)
    assert (await shelf.app.calls.page(CallFilter())).items == ()


@ERAS
async def test_prompts_have_arguments_that_are_checked(shelf: Shelf, legacy: bool) -> None:
    era = Era(shelf, "/mcp/plain", legacy=legacy)
    listed = (await era.result("prompts/list"))["prompts"]
    assert listed == [
        {"name": "dialogue", "title": "Two voices", "arguments": []},
        {
            "name": "greet",
            "description": "Greets somebody.",
            "arguments": [
                {"name": "name", "required": True, "description": "Whom to greet."},
                {"name": "tone", "required": False},
            ],
        },
        {"name": "who", "arguments": []},
    ]
    assert await era.result("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}) == {
        "description": "Greets somebody.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "Greet Ada, warmly."}}],
    }
    for arguments in ({}, {"name": 1}, {"name": "Ada", "tone": "hot"}, {"name": "Ada", "more": "x"}, []):
        answer = await era.send("prompts/get", {"name": "greet", "arguments": arguments})
        assert answer["error"]["code"] == -32602, arguments


@ERAS
async def test_a_read_and_a_get_are_on_record(shelf: Shelf, legacy: bool) -> None:
    era = Era(shelf, "/mcp", legacy=legacy)
    await era.result("resources/read", {"uri": "notes://lib/today"})
    await era.result("prompts/get", {"name": "lib_greet_prompt", "arguments": {"name": "Ada"}})
    await era.send("resources/read", {"uri": "notes://lib/box/a/note/10"})
    page = await shelf.app.calls.page(CallFilter(namespace="lib"))
    assert sorted((record.tool, record.state.value, record.arguments) for record in page.items) == [
        ("lib:prompts/get", "COMPLETE", '{"name":"greet","arguments":{"name":"Ada"}}'),
        ("lib:resources/read", "COMPLETE", '{"uri":"notes://today"}'),
        ("lib:resources/read", "ERROR", '{"uri":"notes://box/a/note/10"}'),
    ]


@pytest.mark.parametrize(
    ("method", "params"),
    [("resources/read", {"uri": "notes://asking"}), ("prompts/get", {"name": "who"})],
)
async def test_what_asks_its_reader_is_answered_in_turns(shelf: Shelf, method: str, params: dict[str, Any]) -> None:
    named = {"Mcp-Name": next(iter(params.values()))}
    first = (await shelf.wire.modern(method, params, path="/mcp/plain", meta=FORMS, headers=named)).json["result"]
    assert (first["resultType"], list(first["inputRequests"])) == ("input_required", ["who"])
    assert "ttlMs" not in first
    again = {**params, "requestState": first["requestState"], "inputResponses": {"who": library.GREETED}}
    last = (await shelf.wire.modern(method, again, path="/mcp/plain", meta=FORMS, headers=named)).json["result"]
    assert last["resultType"] == "complete"
    assert "Ada" in str(last)
    stolen = {**again, "uri" if "uri" in params else "name": "notes://today" if "uri" in params else "dialogue"}
    refused = await shelf.wire.modern(
        method, stolen, path="/mcp/plain", meta=FORMS, headers={"Mcp-Name": str(stolen.get("uri", stolen.get("name")))}
    )
    assert refused.error == (400, -32602)


@ERAS
async def test_arguments_are_completed_by_a_function_or_by_their_hint(shelf: Shelf, legacy: bool) -> None:
    era = Era(shelf, "/mcp", legacy=legacy)
    reference = {"type": "ref/prompt", "name": "lib_greet_prompt"}
    by_function = {
        "ref": reference,
        "argument": {"name": "name", "value": "A"},
        "context": {"arguments": {"tone": "cool"}},
    }
    by_hint = {"ref": reference, "argument": {"name": "tone", "value": "W"}}
    nothing = {
        "ref": {"type": "ref/resource", "uri": "notes://lib/box/{box}/note/{number}"},
        "argument": {"name": "box", "value": ""},
    }
    assert await era.result("completion/complete", by_function) == {
        "completion": {"values": ["Ada (cool)", "Alan (cool)"], "total": 2, "hasMore": False}
    }
    assert (await era.result("completion/complete", by_hint))["completion"]["values"] == ["warm"]
    assert (await era.result("completion/complete", nothing))["completion"]["values"] == []
    argument = {"name": "a", "value": ""}
    nowhere = {"type": "ref/resource", "uri": "notes://lib/nowhere"}
    for wrong in (
        {},
        {"ref": {"type": "ref/prompt", "name": "x"}, "argument": argument},
        {"ref": nowhere, "argument": argument},
    ):
        assert (await era.send("completion/complete", wrong))["error"]["code"] == -32602


# -- changes


@dataclass
class Streams:
    modern: Request
    legacy: Request


@pytest.fixture
async def streams(shelf: Shelf) -> AsyncIterator[Streams]:
    """A modern and a legacy client that listen to everything, and follow one resource."""
    wanted = {
        "promptsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["notes://today", "no://x"],
    }
    listening = shelf.wire.modern_open(
        "subscriptions/listen",
        {"notifications": wanted},
        path="/mcp/plain",
        request_id="s",
    )
    session = await shelf.wire.initialize(path="/mcp/plain")
    standing = shelf.wire.open("GET", "/mcp/plain", headers={"Accept": BOTH, "Mcp-Session-Id": session.id})
    await standing.until(lambda answer: answer.status != 0)
    await session.send("resources/subscribe", {"uri": "notes://today"})
    await listening.frames(1)
    yield Streams(listening, standing)
    for request in (listening, standing):
        request.disconnect()
        await request.done()


async def test_only_resources_that_are_served_are_acknowledged(shelf: Shelf) -> None:
    uris = ["notes://lib/today", "notes://nowhere/today", "no-uri"]
    wanted = {"notifications": {"resourceSubscriptions": uris}}
    listening = shelf.wire.modern_open("subscriptions/listen", wanted, request_id="s")
    (first,) = await listening.frames(1)
    assert first["params"]["notifications"] == {"resourceSubscriptions": ["notes://lib/today"]}
    listening.disconnect()
    await listening.done()


async def test_both_eras_hear_that_a_resource_they_follow_changed(shelf: Shelf, streams: Streams) -> None:
    era = Era(shelf, "/mcp/plain", legacy=False)
    async with asyncio.timeout(10):
        for uri in ("notes://picture", "notes://today"):
            await era.result("tools/call", {"name": "touch", "arguments": {"uri": uri}})
        (_, modern), (legacy,) = await streams.modern.frames(2), await streams.legacy.frames(1)
    assert (modern["method"], modern["params"]["uri"]) == ("notifications/resources/updated", "notes://today")
    assert modern["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "s"}
    assert legacy == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "notes://today"}}


async def test_both_eras_hear_which_list_changed(shelf: Shelf, streams: Streams) -> None:
    import toolyard

    @toolyard.prompt
    def another() -> str:
        return "more"

    await shelf.provider.add(another)
    async with asyncio.timeout(10):
        (_, modern), (legacy,) = await streams.modern.frames(2), await streams.legacy.frames(1)
    assert modern["method"] == legacy["method"] == "notifications/prompts/list_changed"


# -- logs


def said(frames: list[Any]) -> list[Any]:
    return [frame["params"]["level"] for frame in frames if frame.get("method") == "notifications/message"]


@pytest.mark.parametrize(
    ("level", "heard"), [(None, []), ("debug", ["debug", "info", "error"]), ("warning", ["error"])]
)
async def test_a_modern_client_hears_as_much_as_its_request_asks_for(
    shelf: Shelf, level: str | None, heard: list[str]
) -> None:
    answer = await shelf.wire.modern(
        "tools/call",
        {"name": "chatter"},
        path="/mcp/plain",
        headers={"Mcp-Name": "chatter"},
        meta={} if level is None else {"io.modelcontextprotocol/logLevel": level},
    )
    assert said(answer.frames) == heard


async def test_a_legacy_client_hears_everything_until_it_sets_a_level_which_every_node_knows(shelf: Shelf) -> None:
    session = await shelf.wire.initialize(path="/mcp/plain")
    assert said((await session.send("tools/call", {"name": "chatter"})).frames) == ["debug", "info", "error"]
    await session.send("logging/setLevel", {"level": "error"})
    assert said((await session.send("tools/call", {"name": "chatter"})).frames) == ["error"]
    elsewhere = build(shelf.app)
    session.wire = Wire(elsewhere)
    await session.send("ping")
    assert said((await session.send("tools/call", {"name": "chatter"})).frames) == ["error"]
    assert (await session.send("logging/setLevel", {"level": "loud"})).json["error"]["code"] == -32602


def words(frames: list[Any]) -> list[Any]:
    return [frame["params"]["data"] for frame in frames if frame.get("method") == "notifications/message"]


async def test_what_is_logged_after_a_question_reaches_a_legacy_client_too(shelf: Shelf) -> None:
    session = await shelf.wire.initialize(path="/mcp/plain", capabilities={"elicitation": {}})
    calling = session.open("tools/call", {"name": "interview"})
    asks = (await calling.frames(2))[1]
    answer = {"jsonrpc": "2.0", "id": asks["id"], "result": library.GREETED}
    headers = legacy_headers(session.id)
    assert (await shelf.wire.send("POST", "/mcp/plain", headers=headers, body=orjson.dumps(answer))).status == 202
    frames = (await calling.done()).frames
    assert words(frames) == ["before", "after"]
    assert "Ada" in str(frames[-1]["result"])


async def ask_modern(shelf: Shelf, **more: Any) -> Any:
    level = {"io.modelcontextprotocol/logLevel": "info"}
    return await shelf.wire.modern(
        "tools/call",
        {"name": "interview", **more},
        path="/mcp/plain",
        meta={**FORMS, **level},
        headers={"Mcp-Name": "interview"},
    )


async def test_each_request_of_a_modern_client_hears_what_is_logged_while_it_is_held(shelf: Shelf) -> None:
    first = (await ask_modern(shelf)).frames
    state = first[-1]["result"]["requestState"]
    last = (await ask_modern(shelf, requestState=state, inputResponses={"who": library.GREETED})).frames
    assert (words(first), words(last)) == (["before"], ["after"])
    assert "Ada" in str(last[-1]["result"])


async def test_answers_may_come_ahead_and_wrong_ones_leave_nothing_open(shelf: Shelf) -> None:
    ahead = (await ask_modern(shelf, inputResponses={"who": library.GREETED, "other": {"action": "accept"}})).frames
    assert "Ada" in str(ahead[-1]["result"])
    for wrong in (5, [], "x"):
        assert (await ask_modern(shelf, inputResponses=wrong)).error == (400, -32602)
    assert len((await shelf.app.calls.page(CallFilter(tool="lib:interview"))).items) == 1
    refused = (await ask_modern(shelf, inputResponses={"who": {"action": "dance"}})).frames[-1]
    assert refused["error"]["code"] == -32602
    newest = (await shelf.app.calls.page(CallFilter(tool="lib:interview"))).items[0]
    async with asyncio.timeout(10):
        while not (await shelf.app.calls.get(newest.id)).state.is_final:
            await asyncio.sleep(0)
    assert (await shelf.app.calls.get(newest.id)).error_code is ErrorCode.CANCELLED


async def test_pages_of_a_long_list_follow_each_other(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.faces.mcp.offer_lists.PAGE_SIZE", 3)
    era = Era(shelf, "/mcp/plain", legacy=False)
    first = await era.result("resources/list")
    second = await era.result("resources/list", {"cursor": first["nextCursor"]})
    assert [len(page["resources"]) for page in (first, second)] == [3, 1]
    assert "nextCursor" not in second
    assert (await era.send("resources/list", {"cursor": "!"}))["error"]["code"] == -32602
