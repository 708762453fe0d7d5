"""Upstreams that lie, die, forget us or never end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.providers.fakes import Recorder, invocation
from tests.providers.mcp.connecting import connected_http
from tests.providers.mcp.scripted import ECHO, Hang, Reply, Scripted, error
from tests.providers.mcp.serving import served
from tests.requirements import requirement
from toolyard.core.call import Progress, ToolResult
from toolyard.core.errors import CallError, ErrorCode, ProviderError, Unreachable
from toolyard.egress import Egress
from toolyard.providers.mcp import McpHttpProvider
from toolyard.providers.supervisor import ProviderState

ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])
OK = ToolResult.of_text("ok")


def sse(*messages: Any, ids: bool = False) -> bytes:
    return b"".join(
        (f"id: {n}\n".encode() if ids else b"") + b"data: " + json.dumps(message).encode() + b"\n\n"
        for n, message in enumerate(messages)
    )


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        ({"content": "text"}, ErrorCode.UPSTREAM, "is no tool result"),
        ({"content": [1]}, ErrorCode.UPSTREAM, "is no tool result"),
        ({}, ErrorCode.UPSTREAM, "is no tool result"),
        ([], ErrorCode.UPSTREAM, "neither a result nor an error"),
        (
            {"resultType": "input_required"},
            ErrorCode.UPSTREAM,
            "asks for input, but says not for what",
        ),
        ({"resultType": "task"}, ErrorCode.UPSTREAM, "a task that has no taskId|is no tool result"),
        (Reply(200, b"{"), ErrorCode.UPSTREAM, "is not JSON"),
        (Reply(200, b"[]"), ErrorCode.UPSTREAM, "no JSON-RPC message"),
        (Reply(200, b"[" * 100_000), ErrorCode.UPSTREAM, "is not JSON"),
        (Reply(200, b"\xff\xfe"), ErrorCode.UPSTREAM, "is not JSON"),
        (Reply(200, b"x", kind="text/html"), ErrorCode.UPSTREAM, "answered with text/html, which is not MCP"),
        (Reply(200, *[b"x" * 2**20] * 11), ErrorCode.TOO_LARGE, "larger than 10 MiB"),
        (Reply(200, *[b"data: " + b"x" * 2**20] * 11, kind="text/event-stream"), ErrorCode.TOO_LARGE, "than 10 MiB"),
        (Reply(200, b": hi\n\n", kind="text/event-stream"), ErrorCode.UPSTREAM, "ended its answer without a result"),
        (Reply(200, b"data: nope\n\n", kind="text/event-stream"), ErrorCode.UPSTREAM, "is not JSON"),
        (error(-32000, "", 200), ErrorCode.UPSTREAM, "gave no reason"),
        (Reply(200, b'{"error":"why"}'), ErrorCode.UPSTREAM, "says nothing"),
        (error(-32602, "Unknown tool: echo", 400), ErrorCode.UPSTREAM, "Unknown tool: echo"),
        (Reply(401, b""), ErrorCode.UPSTREAM, "refused our credentials"),
        (Reply(500, b"<html>"), ErrorCode.UPSTREAM, "failed with HTTP 500"),
    ],
)
@ERAS
async def test_a_bad_answer_is_a_clear_error_and_the_next_call_works(
    era: str, answer: Any, code: ErrorCode, says: str
) -> None:
    server = Scripted(era=era)
    with served(server) as url:
        async with connected_http(url, era=era) as up:
            good, server.answers["tools/call"] = server.answers["tools/call"], answer
            with pytest.raises(CallError, match=says) as caught:
                await up.call("echo")
            assert caught.value.code is code
            server.answers["tools/call"] = good
            assert await up.call("echo") == OK


@ERAS
async def test_a_stream_that_stays_open_after_the_response_does_not_hold_the_call(era: str) -> None:
    def answer(message: Any) -> Reply:
        token = message["params"]["_meta"]["progressToken"]
        return Reply(
            200,
            b"\xef\xbb\xbf: comment\r\n\r\n",
            sse(
                {"method": "notifications/progress", "params": {"progressToken": token, "progress": "?"}},
                {"method": "notifications/progress", "params": {"progressToken": "other", "progress": 9}},
                {"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "total": 2}},
                {"method": "notifications/progress", "params": 3},
                {"method": "unheard/of"},
                {"jsonrpc": "2.0", "id": "other", "result": {}},
                {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "ok"}]}},
            ),
            kind="text/event-stream; charset=utf-8",
            hang=True,
        )

    seen: list[Progress] = []
    with served(Scripted(era=era, tools__call=answer)) as url:
        async with connected_http(url, era=era) as up, asyncio.timeout(5):
            assert await up.call("echo", progress=seen.append) == OK
    assert seen == [Progress(1, 2)]


@requirement("provider.reconnect")
async def test_a_forgotten_session_is_opened_again_once_and_unseen_for_all_concurrent_calls() -> None:
    server = Scripted(era="legacy")
    with served(server) as url:
        async with connected_http(url, era="legacy") as up:
            server.forget_sessions()
            assert await asyncio.gather(*(up.call("echo") for _ in range(20))) == [OK] * 20
            assert server.opened == 2
            server.answers["tools/call"] = Reply(404, b"gone", kind="text/plain")
            with pytest.raises(Unreachable, match="no longer knows our session"):
                await up.call("echo")
            assert server.opened == 3


async def test_a_server_that_calls_a_forgotten_session_a_bad_request_gets_a_new_one_too() -> None:
    server = Scripted(era="legacy")
    good = server.answers["tools/call"]

    def once(_message: Any) -> Any:
        server.answers["tools/call"] = good
        return error(-32000, "Bad Request: No valid session ID provided", 400)

    server.answers["tools/call"] = once
    with served(server) as url:
        async with connected_http(url, era="legacy") as up:
            assert await up.call("echo") == OK
    assert server.opened == 2


@ERAS
async def test_a_server_without_the_method_for_health_is_healthy_and_one_that_refuses_us_is_not(era: str) -> None:
    server = Scripted(era=era)
    with served(server) as url:
        async with connected_http(url, era=era) as up:
            method = "server/discover" if era == "modern" else "ping"
            server.answers[method] = error(-32601, "what?", 404)
            if era == "modern":
                await up.provider.health()
            server.answers[method] = error(-32601, "what?", 200)
            await up.provider.health()
            server.answers[method] = Reply(401, b"")
            with pytest.raises(ProviderError, match="refused our credentials"):
                await up.provider.health()


async def test_a_server_that_is_not_ready_is_asked_a_second_time() -> None:
    server = Scripted(era="legacy")
    good = server.answers["tools/call"]

    def once_busy(_message: Any) -> Any:
        server.answers["tools/call"] = good
        return Reply(503, b"")

    server.answers["tools/call"] = once_busy
    with served(server) as url:
        async with connected_http(url, era="legacy") as up:
            assert await up.call("echo") == OK


@ERAS
async def test_dying_in_the_middle_of_a_call_says_that_the_outcome_is_unknown_unless_it_only_reads(era: str) -> None:
    server = Scripted(era=era, tools__call=Hang)
    with served(server) as url:
        async with connected_http(url, era=era) as up:
            calls = [asyncio.create_task(up.call(name)) for name in ("echo", "read")]
            async with asyncio.timeout(5):
                while server.methods().count("tools/call") < 2:
                    await up.provider.health()
            server.break_off()
            wrote, read = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(wrote, Unreachable)
    assert wrote.message.endswith("The outcome is unknown: 'echo' may have taken effect.")
    assert wrote.suggestion == "Check before you call it again."
    assert isinstance(read, Unreachable)
    assert "unknown" not in read.message
    assert [message["params"]["name"] for _, _, message in server.seen if message.get("method") == "tools/call"] == [
        "echo",
        "read",
        "read",
    ], "only what may be repeated is tried a second time"


@ERAS
@requirement("provider.reconnect")
async def test_a_restarted_server_is_used_again_by_itself(era: str) -> None:
    server = Scripted(era=era)
    recorder, egress = Recorder(), Egress()
    with served(server) as url:
        port = int(url.rpartition(":")[2])
        provider = McpHttpProvider("up", url, egress=egress, era=era)  # type: ignore[arg-type]
        await recorder.supervisor.add_and_start(provider, required=True)
        tools = {tool.name: tool for tool in await provider.tools()}
        assert await recorder.supervisor.call(invocation(tools["echo"])) == OK
    with pytest.raises(CallError):
        await recorder.supervisor.call(invocation(tools["echo"]))
    await recorder.until_state("up", ProviderState.DOWN)
    assert recorder.available["up"][0] is False
    server.forget_sessions()
    with served(server, port=port):
        await recorder.until_state("up", ProviderState.UP)
        assert await recorder.supervisor.call(invocation(tools["echo"])) == OK
        assert recorder.available["up"] == (True, None)
        await recorder.supervisor.close()
    await egress.close()


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ({"tools": "none"}, "without a list of tools"),
        ({}, "without a list of tools"),
        (error(-32603, "broken"), "broken"),
        (Reply(200, b"nope"), "is not JSON"),
    ],
)
async def test_a_list_that_is_none_is_an_error(page: Any, says: str) -> None:
    with served(Scripted(tools__list=page)) as url, pytest.raises(ProviderError, match=says):
        async with connected_http(url):
            pass


async def test_endless_pages_are_cut_and_repeating_ones_noticed() -> None:
    pages = iter(range(10**6))

    def endless(_message: Any) -> Any:
        n = next(pages)
        return {"tools": [{**ECHO, "name": f"t{n}"}], "nextCursor": str(n)}

    server = Scripted(tools__list=endless)
    with served(server) as url:
        async with connected_http(url) as up:
            assert len(up.tools) == 500
            assert up.provider.skipped == ("all tools after the first 500 pages of the list",)
            server.answers["tools/list"] = {"tools": [ECHO], "nextCursor": "again"}
            assert [tool.name for tool in await up.provider.tools()] == ["echo"]
            assert up.provider.skipped == (
                "'echo' is listed twice; the first one is used",
                "the rest of the list: its pages repeat",
            )
            server.answers["tools/list"] = {"tools": [{**ECHO, "name": f"t{n}"} for n in range(10_001)]}
            assert len(await up.provider.tools()) == 10_000
            assert up.provider.skipped == ("all tools after the first 10000",)


async def test_a_stream_that_ends_before_the_response_is_taken_up_where_it_stopped() -> None:
    server = Scripted(era="legacy")
    waiting: dict[str, Any] = {}

    def begin(message: Any) -> Reply:
        waiting.update(message)
        return Reply(200, b"id: e1\nretry: 1\ndata:\n\n", kind="text/event-stream")

    def go_on(_message: Any) -> Reply:
        result = {"content": [{"type": "text", "text": "ok"}]}
        return Reply(200, sse({"jsonrpc": "2.0", "id": waiting["id"], "result": result}), kind="text/event-stream")

    server.answers["tools/call"] = begin
    with served(server) as url:
        async with connected_http(url, era="legacy") as up:
            server.answers["GET"] = go_on
            assert await up.call("echo") == OK
    resumed = [headers for http, headers, _ in server.seen if http == "GET" and "last-event-id" in headers]
    assert [headers["last-event-id"] for headers in resumed] == ["e1"]


async def test_closing_ends_a_legacy_session() -> None:
    server = Scripted(era="legacy")
    with served(server) as url:
        async with connected_http(url, era="legacy"):
            pass
        http, headers, _ = server.seen[-1]
        assert (http, headers["mcp-session-id"]) == ("DELETE", "s1")
