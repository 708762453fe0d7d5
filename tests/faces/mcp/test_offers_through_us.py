"""Resources, prompts, completion and logs of an upstream, of either era and transport, for clients of either era."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faces.mcp import library
from tests.faces.mcp.test_sdk_clients import connected
from tests.faces.mcp.test_tasks import ask, ended
from tests.faces.mcp.yard import BOTH, Scripted, Wire
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.catalog import Server
from toolyard.core.call import ToolResult
from toolyard.core.tool import Kind
from toolyard.faces.mcp import build
from toolyard.providers.base import Invocation
from toolyard.providers.mcp import McpHttpProvider, McpStdioProvider
from toolyard.providers.mcp.provider import McpProvider
from toolyard.providers.python import PythonProvider
from toolyard.serving import listening_socket, serving

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
FORMS = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
HERE = Path(__file__).parent


@dataclass
class Pair:
    front: Wire
    url: str
    behind: PythonProvider
    app: App


@pytest.fixture(params=["modern", "legacy"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    """One yard behind another; the upstream link is of the era that the parameter says."""
    bound, front_bound = listening_socket("127.0.0.1", 0), listening_socket("127.0.0.1", 0)
    async with App.running(Settings(data_dir=tmp_path / "behind", demo=True)) as behind:
        provider = PythonProvider.from_module("lib", library.__name__)
        await behind.supervisor.add_and_start(provider)
        await behind.save_server(Server("plain", names="bare", tools=("lib:*",)))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/mcp/plain"
        async with serving(build(behind), bound), App.running(Settings(data_dir=tmp_path / "front", demo=True)) as app:
            await app.supervisor.add_and_start(McpHttpProvider("up", url, egress=app.egress, era=request.param))
            edge = build(app)
            async with serving(edge, front_bound):
                front = f"http://127.0.0.1:{front_bound.getsockname()[1]}/mcp"
                yield Pair(Wire(edge), front, provider, app)


async def script(client: Any) -> dict[str, Any]:
    """What any client does; its outcome must not depend on either era."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import PromptReference

    resources = (await client.list_resources()).resources
    templates = (await client.list_resource_templates()).resource_templates
    prompts = (await client.list_prompts()).prompts
    read = await client.read_resource("notes://up/today")
    blob = await client.read_resource("notes://up/picture")
    note = await client.read_resource("notes://up/box/a/note/3")
    got = await client.get_prompt("up_greet_prompt", {"name": "Ada"})
    dialogue = await client.get_prompt("up_dialogue_prompt")
    completed = await client.complete(
        PromptReference(type="ref/prompt", name="up_greet_prompt"), {"name": "name", "value": "A"}
    )
    missing: list[Any] = []
    for uri in ("notes://up/nowhere", "notes://nobody/today", "notes://up/box/a/note/10"):
        with pytest.raises(MCPError) as refused:
            await client.read_resource(uri)
        missing.append(refused.value.error.code)
    return {
        "resources": [(str(one.uri), one.name, one.title, one.mime_type) for one in resources],
        "templates": [one.uri_template for one in templates],
        "prompts": [(one.name, [(argument.name, argument.required) for argument in one.arguments]) for one in prompts],
        "read": [(str(one.uri), one.mime_type, one.text) for one in read.contents],
        "blob": blob.contents[0].blob,
        "note": note.contents[0].text,
        "got": got.messages[0].content.text,
        "dialogue": str(dialogue.messages[1].content.resource.uri),
        "completed": completed.completion.values,
        "missing": set(missing),
    }


EXPECTED = {
    "resources": [
        ("notes://up/asking", "asking", None, None),
        ("notes://up/picture", "picture", None, None),
        ("notes://up/today", "today", "Today", "text/markdown"),
        ("ui://up/board", "board", None, "text/html;profile=mcp-app"),
    ],
    "templates": ["notes://up/box/{box}/note/{number}"],
    "prompts": [
        ("up_dialogue_prompt", []),
        ("up_greet_prompt", [("name", True), ("tone", False)]),
        ("up_who_prompt", []),
    ],
    "read": [("notes://up/today", "text/markdown", "# Today\nSleep.\x00")],
    "blob": "AAE=",
    "note": '{"box":"a","number":3}',
    "got": "Greet Ada, warmly.",
    "dialogue": "notes://up/today",
    "completed": ["Ada (any)", "Alan (any)"],
}


@requirement("mcp.eras")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_reference_client_finds_reads_and_gets_through_us_in_all_era_pairs(pair: Pair, mode: str) -> None:
    async with asyncio.timeout(30), connected(pair.url, mode) as client:
        found = await script(client)
    assert found == {**EXPECTED, "missing": {-32002 if mode == "legacy" else -32602}}


@requirement("mcp.bridge")
@pytest.mark.parametrize(
    ("method", "params"),
    [("resources/read", {"uri": "notes://up/asking"}), ("prompts/get", {"name": "up_who_prompt"})],
)
async def test_what_a_resource_or_prompt_behind_us_asks_reaches_our_client(
    pair: Pair, method: str, params: dict[str, Any]
) -> None:
    named = {"Mcp-Name": next(iter(params.values()))}
    async with asyncio.timeout(20):
        first = (await pair.front.modern(method, params, meta=FORMS, headers=named)).json["result"]
        assert first["resultType"] == "input_required", first
        (key,) = first["inputRequests"]
        again = {**params, "requestState": first["requestState"], "inputResponses": {key: library.GREETED}}
        last = (await pair.front.modern(method, again, meta=FORMS, headers=named)).json["result"]
    assert last["resultType"] == "complete"
    assert "Ada" in str(last)


async def test_a_change_behind_us_reaches_clients_of_both_eras(pair: Pair) -> None:
    import toolyard

    wanted = {"promptsListChanged": True, "resourceSubscriptions": ["notes://up/today"]}
    modern = pair.front.modern_open("subscriptions/listen", {"notifications": wanted}, request_id="s")
    session = await pair.front.initialize()
    await session.send("resources/subscribe", {"uri": "notes://up/today"})
    legacy = pair.front.open("GET", headers={"Accept": BOTH, "Mcp-Session-Id": session.id})

    @toolyard.prompt
    def another() -> str:
        return "more"

    async with asyncio.timeout(20):
        await modern.frames(1)
        await followed(pair)
        pair.behind.resource_changed("notes://today")
        (_, told), (also,) = await modern.frames(2), await legacy.frames(1)
        assert told["params"]["uri"] == also["params"]["uri"] == "notes://up/today"
        await pair.behind.add(another)
        assert {frame["method"] for frame in (await modern.frames(3))[2:]} == {"notifications/prompts/list_changed"}
        await legacy.frames(2)
    assert (await session.send("prompts/list", {})).json["result"]["prompts"][0]["name"] == "up_another_prompt"
    for request in (modern, legacy):
        request.disconnect()
        await request.done()


async def followed(pair: Pair) -> None:
    """Until both clients' wish is known behind us: a stream of theirs settles after its own first frame."""
    provider = pair.app.supervisor.provider("up")
    assert isinstance(provider, McpProvider)
    followers = pair.app.supervisor._followers
    while "up" not in followers or len(followers["up"]._heard["notes://today"]) < 2 or not followers["up"]._told:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])
async def test_what_a_tool_behind_us_logs_reaches_its_caller(pair: Pair, legacy: bool) -> None:
    call = {"name": "up_chatter_action"}
    if legacy:
        session = await pair.front.initialize()
        await session.send("logging/setLevel", {"level": "info"})
        frames = (await session.send("tools/call", call)).frames
    else:
        level = {"io.modelcontextprotocol/logLevel": "info"}
        frames = (await pair.front.modern("tools/call", call, headers={"Mcp-Name": call["name"]}, meta=level)).frames
    logged = [frame["params"] for frame in frames if frame.get("method") == "notifications/message"]
    assert [(one["level"], one["logger"], one["data"]) for one in logged] == [
        ("info", "kettle", "a word at info"),
        ("error", "kettle", "a word at error"),
    ]


async def test_offers_of_a_stdio_server_are_served_and_a_server_without_tools_is_no_failure(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "prompts_only.py")]
    async with App.running(Settings(data_dir=tmp_path, demo=True)) as app:
        await app.supervisor.add_and_start(McpStdioProvider("up", command))
        wire = Wire(build(app))
        listed = (await wire.modern("prompts/list")).json["result"]["prompts"]
        got = await wire.modern("prompts/get", {"name": "up_hello_prompt"}, headers={"Mcp-Name": "up_hello_prompt"})
        read = await wire.modern("resources/read", {"uri": "memo://up/one"}, headers={"Mcp-Name": "memo://up/one"})
        assert [one["name"] for one in listed] == ["up_hello_prompt"]
        assert got.json["result"]["messages"][0]["content"]["text"] == "Hello."
        assert read.json["result"]["contents"][0]["text"] == "one"
        assert app.supervisor.status("up").tool_count == 0


async def test_resources_in_a_result_behind_us_have_our_uris_in_a_task_too(tmp_path: Path) -> None:
    async def linked(_: Invocation) -> ToolResult:
        link = {"type": "resource_link", "uri": "notes://today", "name": "today"}
        inside = {"type": "resource", "resource": {"uri": "notes://today", "text": "Sleep."}}
        web = {"type": "resource_link", "uri": "https://example.com/a", "name": "a"}
        return ToolResult((link, inside, web))

    async with App.running(Settings(data_dir=tmp_path, demo=True)) as app:
        up = Scripted("up", Kind.MCP)
        up.add("linked", linked)
        up.add("later", linked, task="always")
        await app.supervisor.add_and_start(up)
        wire = Wire(build(app))
        named = {"Mcp-Name": "up_linked_action"}
        plain = (await wire.modern("tools/call", {"name": "up_linked_action"}, headers=named)).json["result"]
        task = await ended(wire, await ask(wire, "tools/call", {"name": "up_later_action", "arguments": {}}))
    for result in (plain, task["result"]):
        link, inside, web = result["content"]
        assert (link["uri"], inside["resource"]["uri"]) == ("notes://up/today", "notes://up/today")
        assert web["uri"] == "https://example.com/a"
