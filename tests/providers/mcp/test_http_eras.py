"""Against the SDK's server over HTTP: the same scripts in both eras."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import mcp_types as types
import pytest

from tests.providers.mcp.connecting import connected_http
from tests.providers.mcp.servers.sdk_server import HEADED, RICH, RICH_RESULT, Behaviours
from tests.providers.mcp.serving import served
from tests.requirements import requirement
from toolyard.core.call import Progress, ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.question import NeedsInput
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Kind, Tool

ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])
SERVER_INFO = {"io.modelcontextprotocol/serverInfo": {"name": "behaviours", "version": "1"}}


@pytest.fixture
def behaviours() -> Behaviours:
    return Behaviours()


@pytest.fixture
def url(behaviours: Behaviours) -> Iterator[str]:
    with served(behaviours.server().streamable_http_app()) as base:
        yield f"{base}/mcp"


async def test_auto_finds_the_modern_era(url: str) -> None:
    async with connected_http(url) as up:
        assert (up.provider.era, up.provider.kind, up.provider.address) == ("modern", Kind.MCP, url)
        await up.provider.health()


@ERAS
@requirement("provider.verbatim")
async def test_definitions_arrive_verbatim_over_all_pages(url: str, era: str) -> None:
    async with connected_http(url, era=era, time_limit=7) as up:
        assert up.tools["rich"] == Tool(
            namespace="up",
            name="rich",
            description=RICH["description"],
            input_schema=Schema(RICH["inputSchema"]),
            output_schema=RICH["outputSchema"],
            annotations=Annotations(read_only=True, open_world=False),
            kind=Kind.MCP,
            title=RICH["title"],
            wire=RICH,
            time_limit=7,
        )
        assert up.tools["rich"].input_schema.document() == RICH["inputSchema"]
        assert up.tools["headed"].wire == HEADED
        assert [*up.tools] == [tool["name"] for tool in Behaviours().definitions()]
        assert up.provider.skipped == ()
        await up.provider.health()


@ERAS
@requirement("provider.verbatim")
async def test_results_arrive_without_loss(url: str, era: str) -> None:
    meta = {**RICH_RESULT["_meta"], **(SERVER_INFO if era == "modern" else {})}
    async with connected_http(url, era=era) as up:
        assert await up.call("rich") == ToolResult(
            content=tuple(RICH_RESULT["content"]),
            structured=RICH_RESULT["structuredContent"],
            has_structured=True,
            is_error=False,
            meta=meta,
        )


@ERAS
async def test_arguments_and_odd_names_arrive_as_they_were_given(url: str, era: str) -> None:
    arguments = {"a": [1, 2.5, None, {"ü": "😀"}], "b": {}, "n": 2**53 + 1}
    async with connected_http(url, era=era) as up:
        result = await up.call("tool with ünïcode", arguments)
        assert result.structured == {"tool": "tool with ünïcode", "arguments": arguments}


async def test_annotated_arguments_are_mirrored_in_headers_and_checked_by_the_server(url: str) -> None:
    async with connected_http(url, era="modern") as up:
        result = await up.call("headed", {"region": "süd", "place": {"floor": 3}})
        assert result.structured == {
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "headed",
            "mcp-param-region": "=?base64?c8O8ZA==?=",
            "mcp-param-floor": "3",
        }
        assert (await up.call("headed", {})).is_error is False


@ERAS
async def test_a_tools_own_error_is_a_result_and_a_protocol_error_is_upstream_with_a_short_message(
    url: str, era: str
) -> None:
    async with connected_http(url, era=era) as up:
        result = await up.call("refuse")
        assert (result.is_error, result.text) == (True, "the tool said no")
        with pytest.raises(CallError) as caught:
            await up.call("fail")
        assert caught.value.code is ErrorCode.UPSTREAM
        assert caught.value.message.startswith("boom xxx")
        assert len(caught.value.message) == 500


@ERAS
async def test_progress_reaches_its_own_call_only(url: str, era: str) -> None:
    seen: list[list[Progress]] = [[], []]
    async with connected_http(url, era=era) as up:
        await asyncio.gather(*(up.call("progress", progress=mine.append) for mine in seen), up.call("progress"))
    assert seen == [[Progress(n, 3, f"step {n}") for n in (1, 2, 3)]] * 2


@ERAS
async def test_cancelling_a_call_reaches_the_server_and_leaves_other_calls_alone(
    url: str, era: str, behaviours: Behaviours
) -> None:
    async with connected_http(url, era=era) as up:
        slow = asyncio.create_task(up.call("slow"))
        other = asyncio.create_task(up.call("slow"))
        async with asyncio.timeout(5):
            while behaviours.slow < 2:
                await up.provider.health()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        async with asyncio.timeout(5):
            while behaviours.cancelled < 1:
                await up.provider.health()
        assert not other.done()
        other.cancel()
        await asyncio.wait([other])


@ERAS
@requirement("provider.refresh")
async def test_a_changed_list_is_announced(url: str, era: str) -> None:
    changed = asyncio.Event()
    async with connected_http(url, era=era) as up:
        up.provider.on_change(changed.set)
        async with asyncio.timeout(5):
            while not changed.is_set():  # the stream of changes may not be open yet
                await up.call("change")
                await asyncio.wait([asyncio.create_task(changed.wait())], timeout=0.1)
        assert "extra0" in {tool.name for tool in await up.provider.tools()}


@ERAS
async def test_a_question_of_the_server_is_declined_and_the_call_ends(url: str, era: str) -> None:
    async with connected_http(url, era=era) as up:
        async with asyncio.timeout(10):
            with pytest.raises(CallError) as caught:
                await up.call("ask")
    assert caught.value.code is ErrorCode.UPSTREAM


async def test_an_answer_that_asks_for_input_is_handed_on_with_its_state(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = types.ElicitRequestFormParams(message="Sure?", requested_schema={"type": "object", "properties": {}})
    question = types.InputRequiredResult(input_requests={"q": types.ElicitRequest(params=form)}, request_state="s")

    async def ask(*_: object) -> types.InputRequiredResult:
        return question

    asking = Behaviours()
    monkeypatch.setattr(asking, "call_tool", ask)
    with served(asking.server().streamable_http_app()) as base:
        async with connected_http(f"{base}/mcp") as up:
            with pytest.raises(NeedsInput) as caught:
                await up.call("echo")
    (asked,) = caught.value.questions
    assert (asked.key, asked.method, asked.params["message"]) == ("q", "elicitation/create", "Sure?")
    assert caught.value.state == "s"


@ERAS
async def test_an_answer_of_more_than_ten_mebibytes_is_refused_and_the_next_call_works(url: str, era: str) -> None:
    async with connected_http(url, era=era) as up:
        with pytest.raises(CallError) as caught:
            await up.call("big")
        assert (caught.value.code, caught.value.message) == (
            ErrorCode.TOO_LARGE,
            "The MCP server's answer is larger than 10 MiB.",
        )
        assert (await up.call("echo")).text == "done"
