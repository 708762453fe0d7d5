"""tools/call: what becomes of a call's outcome, and of a call whose client does not wait quietly."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.faces.mcp.conftest import Yard
from tests.faces.mcp.yard import MODERN, SERVED, Wire, legacy_headers, modern
from tests.requirements import requirement
from toolyard.catalog import ToolSettings
from toolyard.core.call import CallState, Progress, ToolResult
from toolyard.core.errors import ProtocolError, StoreUnavailable
from toolyard.core.record import CallFilter
from toolyard.faces.mcp import exchange
from toolyard.providers.base import Invocation

ECHO = {"name": "kit_echo_action", "arguments": {"text": "hi"}}
SLOW = {"name": "kit_slow_action"}
STREAM_ONLY = {"Accept": "text/event-stream"}


async def result_of(wire: Wire, call: dict[str, Any], **kwargs: Any) -> Any:
    answer = await wire.modern("tools/call", call, **kwargs)
    assert answer.status == 200, answer.body
    return answer.json["result"]


def call_id(result: Any) -> str:
    return result["_meta"]["toolyard/call-id"]


async def test_a_modern_result_is_complete_and_names_its_call_and_its_server(yard: Yard) -> None:
    result = await result_of(yard.wire, ECHO)
    record = await yard.app.calls.get(call_id(result))
    assert (record.tool, record.state, record.origin, record.server) == (
        "kit:echo",
        CallState.COMPLETE,
        "mcp",
        "default",
    )
    assert result == {
        "resultType": "complete",
        "content": [{"type": "text", "text": '{"text":"hi"}'}],
        "structuredContent": {"text": "hi"},
        "isError": False,
        "_meta": {
            "toolyard/call-id": record.id,
            "io.modelcontextprotocol/serverInfo": {"name": "toolyard", "title": "Toolyard", "version": "0.1.0"},
        },
    }


async def test_a_legacy_result_has_nothing_of_the_modern_era(wire: Wire) -> None:
    result = (await (await wire.initialize()).send("tools/call", ECHO)).json["result"]
    assert result == {
        "content": [{"type": "text", "text": '{"text":"hi"}'}],
        "structuredContent": {"text": "hi"},
        "isError": False,
        "_meta": {"toolyard/call-id": call_id(result)},
    }


@pytest.mark.parametrize("request_id", [0, -7, 2**53, "", "abc", 'quo"te\n', "é"])
async def test_the_answer_carries_the_requests_id(wire: Wire, request_id: str | int) -> None:
    answer = await wire.modern("tools/call", ECHO, request_id=request_id)
    assert answer.json["id"] == request_id
    assert (await wire.modern("nonsense", request_id=request_id)).json["id"] == request_id


@requirement("tool.error-result")
async def test_a_tool_that_fails_answers_with_readable_text_and_no_protocol_error(yard: Yard) -> None:
    for result in (
        await result_of(yard.wire, {"name": "kit_fail_action"}),
        (await (await yard.wire.initialize()).send("tools/call", {"name": "kit_fail_action"})).json["result"],
    ):
        assert result["isError"] is True
        assert result["content"] == [{"type": "text", "text": "The kettle is empty. Fill it."}]
        assert result["_meta"]["toolyard/error"] == {
            "error": "The kettle is empty.",
            "code": "upstream",
            "suggestion": "Fill it.",
        }
        assert (await yard.app.calls.get(call_id(result))).error == "The kettle is empty."


@pytest.mark.parametrize(("code", "passed_on"), [(-32042, -32042), (-32022, -32603)])
async def test_an_upstreams_json_rpc_error_is_passed_on_and_what_it_says_of_our_link_is_not_taken_for_ours(
    yard: Yard, code: int, passed_on: int
) -> None:
    async def broken(_: Invocation) -> ToolResult:
        raise ProtocolError(code, "The line is dead.", {"line": 7})

    yard.provider.add("broken", broken)
    await yard.app.supervisor.refresh("kit")
    session = await yard.wire.initialize()
    modern = await yard.wire.modern(
        "tools/call", {"name": "kit_broken_action"}, headers={"Mcp-Name": "kit_broken_action"}
    )
    legacy = await session.send("tools/call", {"name": "kit_broken_action"})
    for answer in (modern, legacy):
        assert answer.status == 200
        assert answer.json["error"] == {"code": passed_on, "message": "The line is dead.", "data": {"line": 7}}
    page = await yard.app.calls.page(CallFilter(tool="kit:broken"))
    assert [record.error for record in page.items] == ["The line is dead."] * 2


@requirement("tool.error-result")
async def test_arguments_that_do_not_fit_are_a_result_a_model_can_read(yard: Yard) -> None:
    result = await result_of(yard.wire, {"name": "kit_echo_action", "arguments": {"txt": 1}})
    assert result["isError"] is True
    assert result["_meta"]["toolyard/error"]["code"] == "invalid_arguments"
    assert "txt" in result["content"][0]["text"]
    assert yard.provider.invocations == []


async def test_a_tools_own_error_keeps_its_own_content(yard: Yard) -> None:
    async def own(_: Invocation) -> ToolResult:
        return ToolResult(({"type": "text", "text": "my own words"},), is_error=True, meta={"up/key": 1})

    yard.provider.add("own", own)
    await yard.app.supervisor.refresh("kit")
    result = await result_of(yard.wire, {"name": "kit_own_action"})
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "my own words"}]
    assert result["_meta"]["up/key"] == 1
    assert result["_meta"]["toolyard/error"]["code"] == "upstream"


@requirement("provider.verbatim")
async def test_content_structure_and_meta_pass_through_losslessly(yard: Yard) -> None:
    content = (
        {
            "type": "text",
            "text": "plain",
            "annotations": {"audience": ["user"], "priority": 0.5},
            "_meta": {"a/b": [1]},
        },
        {"type": "resource_link", "uri": "file:///x", "name": "x", "mimeType": "text/plain", "size": 3},
        {"type": "resource", "resource": {"uri": "test://r", "mimeType": "text/plain", "text": "inside"}},
    )
    structured = {"n": [1, 2.5, None, True, "s"], "deep": {"er": {}}}

    async def rich(_: Invocation) -> ToolResult:
        return ToolResult(content, structured=structured, has_structured=True, meta={"vendor/x": {"y": 1}})

    yard.provider.add("rich", rich)
    await yard.app.supervisor.refresh("kit")
    result = await result_of(yard.wire, {"name": "kit_rich_action"})
    assert result["content"] == list(content)
    assert result["structuredContent"] == structured
    assert result["_meta"]["vendor/x"] == {"y": 1}


@pytest.mark.parametrize("value", [[1, 2], 7, None, True])
async def test_structure_that_is_no_object_goes_to_modern_clients_alone(yard: Yard, value: Any) -> None:
    async def give(_: Invocation) -> ToolResult:
        return ToolResult.of_value(value)

    yard.provider.add("give", give)
    await yard.app.supervisor.refresh("kit")
    new = await result_of(yard.wire, {"name": "kit_give_action"})
    old = (await (await yard.wire.initialize()).send("tools/call", {"name": "kit_give_action"})).json["result"]
    assert new["structuredContent"] == value
    assert "structuredContent" not in old
    assert old["content"] == new["content"]


@requirement("call.result-truncation")
async def test_a_result_too_long_for_a_model_is_cut_and_says_how_to_read_on(yard: Yard) -> None:
    async def long(_: Invocation) -> ToolResult:
        return ToolResult.of_text("word " * 10_000)

    yard.provider.add("long", long)
    await yard.app.supervisor.refresh("kit")
    result = await result_of(yard.wire, {"name": "kit_long_action"})
    text = result["content"][0]["text"]
    assert len(text) <= 10_500
    assert call_id(result) in text
    assert (await yard.app.calls.full_result(call_id(result))).count(b"word") == 10_000


async def test_a_tool_switched_off_is_unknown(yard: Yard) -> None:
    await yard.app.set_tool_settings("kit:echo", ToolSettings(enabled=False))
    assert (await yard.wire.modern("tools/call", ECHO)).error == (400, -32602)


async def test_a_store_that_is_away_is_a_result_that_says_so(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_: object) -> None:
        raise StoreUnavailable("The disk is full.", suggestion="Make room.")

    monkeypatch.setattr(yard.app.calls, "invoke", away)
    result = await result_of(yard.wire, ECHO)
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "The disk is full. Make room."}]


@pytest.mark.parametrize("by_header", [True, False])
async def test_an_idempotency_key_makes_a_repeated_call_one_call(yard: Yard, by_header: bool) -> None:
    kwargs: dict[str, Any] = (
        {"headers": {"Idempotency-Key": "k1"}} if by_header else {"meta": {"toolyard/idempotency-key": "k1"}}
    )
    first = await result_of(yard.wire, ECHO, **kwargs)
    again = await result_of(yard.wire, ECHO, **kwargs)
    misused = await result_of(yard.wire, {**ECHO, "arguments": {"text": "other"}}, **kwargs)
    assert again == first
    assert len(yard.provider.invocations) == 1
    assert misused["isError"] is True


async def test_trace_context_reaches_the_provider_and_the_body_comes_first(yard: Yard) -> None:
    await result_of(
        yard.wire,
        ECHO,
        meta={"traceparent": "00-a", "baggage": 7},
        headers={"traceparent": "00-b", "tracestate": "x=y", "baggage": "k=v"},
    )
    assert dict(yard.provider.invocations[0].trace) == {"traceparent": "00-a", "tracestate": "x=y", "baggage": "k=v"}


async def test_parameter_headers_must_say_what_the_arguments_say(yard: Yard) -> None:
    from tests.faces.mcp.yard import echo
    from toolyard.core.schema import Schema

    region = {"type": "string", "x-mcp-header": "Region"}
    yard.provider.add("where", echo, input_schema=Schema({"type": "object", "properties": {"region": region}}))
    await yard.app.supervisor.refresh("kit")

    async def status(argument: str | None, *headers: tuple[str, str]) -> int:
        arguments = {} if argument is None else {"region": argument}
        head, body = modern("tools/call", {"name": "kit_where_action", "arguments": arguments})
        return (await yard.wire.send(headers=[*head.items(), *headers], body=body)).status

    given = ("Mcp-Param-Region", "eu")
    assert await status("eu", given) == 200
    assert await status(None) == 200
    assert await status("é", ("mcp-param-region", "=?base64?w6k=?=")) == 200
    assert await status("eu") == 400
    assert await status(None, given) == 400
    assert await status("us", given) == 400
    assert await status("eu", given, given) == 400


async def test_progress_makes_the_answer_a_stream(yard: Yard) -> None:
    request = yard.wire.modern_open("tools/call", SLOW, meta={"progressToken": "p"}, request_id=5)
    await request.frames(2)
    yard.slow.release.set()
    answer = await request.done()
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    *reports, last = answer.frames
    assert reports == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": "p", "progress": number, "total": 3, "message": message},
        }
        for number, message in ((1, "one"), (2, "two"))
    ]
    assert (last["id"], last["result"]["content"]) == (5, [{"type": "text", "text": "at last"}])


async def test_without_a_token_nobody_is_told_of_progress(yard: Yard) -> None:
    yard.slow.release.set()
    answer = await yard.wire.modern("tools/call", SLOW)
    assert answer.headers["content-type"] == "application/json"


async def test_a_client_that_reads_no_stream_gets_no_progress(yard: Yard) -> None:
    yard.slow.release.set()
    answer = await yard.wire.modern(
        "tools/call", SLOW, meta={"progressToken": 1}, headers={"Accept": "application/json"}
    )
    assert answer.json["result"]["isError"] is False


async def test_a_client_that_reads_only_a_stream_gets_one(wire: Wire) -> None:
    answer = await wire.modern("tools/call", ECHO, headers=STREAM_ONLY)
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.frames[0]["result"]["structuredContent"] == {"text": "hi"}


async def test_a_slow_client_does_not_make_progress_pile_up(yard: Yard) -> None:
    yard.slow.reports = tuple(Progress(number) for number in range(5000))
    yard.slow.release.set()
    answer = await yard.wire.modern("tools/call", SLOW, meta={"progressToken": 1})
    assert len(answer.frames) <= exchange.MOST_WAITING + 1
    assert "result" in answer.frames[-1]


async def test_a_long_silence_becomes_a_stream_with_keep_alives(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "ATTEND_AFTER", 0.01)
    monkeypatch.setattr(exchange, "STREAM_AFTER", 0.02)
    monkeypatch.setattr(exchange, "KEEP_ALIVE_EVERY", 0.01)
    request = yard.wire.modern_open("tools/call", SLOW)
    answer = await request.until(lambda answer: answer.body.count(b": keep-alive\n\n") >= 2)
    assert answer.headers["content-type"] == "text/event-stream"
    yard.slow.release.set()
    assert (await request.done()).frames[-1]["result"]["isError"] is False


async def test_a_modern_client_that_leaves_cancels_its_call(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "ATTEND_AFTER", 0.001)
    request = yard.wire.modern_open("tools/call", SLOW)
    await asyncio.wait_for(yard.slow.started.wait(), 5)
    request.disconnect()
    await request.done()
    assert yard.slow.ended == "cancelled"
    record = (await yard.app.calls.page(CallFilter())).items[0]
    assert (record.state, record.error_code) == (CallState.ERROR, "cancelled")


async def test_a_legacy_client_that_leaves_cancels_nothing(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "ATTEND_AFTER", 0.001)
    request = (await yard.wire.initialize()).open("tools/call", SLOW)
    await asyncio.wait_for(yard.slow.started.wait(), 5)
    request.disconnect()
    yard.slow.release.set()
    await request.done()
    assert yard.slow.ended == "done"
    assert (await yard.app.calls.page(CallFilter())).items[0].state is CallState.COMPLETE


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "application/json"])
async def test_a_legacy_cancellation_ends_that_call_of_that_session(yard: Yard, accept: str) -> None:
    session, other = await yard.wire.initialize(), await yard.wire.initialize()
    request = session.open("tools/call", SLOW, request_id=7, Accept=accept)
    await asyncio.wait_for(yard.slow.started.wait(), 5)
    for wrong in ({"requestId": 8}, {"requestId": "7"}, {}, {"requestId": [7]}):
        assert (await session.send("notifications/cancelled", wrong, request_id=None)).status == 202
    assert (await other.send("notifications/cancelled", {"requestId": 7}, request_id=None)).status == 202
    assert yard.slow.ended is None
    assert (await session.send("notifications/cancelled", {"requestId": 7}, request_id=None)).status == 202
    answer = await request.done()
    assert yard.slow.ended == "cancelled"
    if "event-stream" in accept:
        assert (answer.headers["content-type"], answer.frames) == ("text/event-stream", [])
    else:
        assert answer.error == (200, -32800)


async def test_a_call_that_an_operator_cancels_answers_its_client(yard: Yard) -> None:
    request = yard.wire.modern_open("tools/call", SLOW)
    await asyncio.wait_for(yard.slow.started.wait(), 5)
    (invocation,) = yard.provider.invocations
    assert await yard.app.calls.cancel(invocation.call_id, invocation.principal)
    result = (await request.done()).json["result"]
    assert (result["isError"], result["_meta"]["toolyard/error"]["code"]) == (True, "cancelled")


async def test_nothing_is_kept_of_requests_that_ended(yard: Yard) -> None:
    session = await yard.wire.initialize()
    for number in range(5):
        await session.send("tools/call", ECHO, request_id=number)
        await yard.wire.modern("tools/call", ECHO)
    assert yard.edge.face.running == {}


async def test_requests_side_by_side_are_answered_each_with_its_own(wire: Wire) -> None:
    session = await wire.initialize()
    calls = [
        session.send("tools/call", {"name": "kit_echo_action", "arguments": {"text": str(n)}}, request_id=n)
        for n in range(30)
    ]
    for number, answer in enumerate(await asyncio.gather(*calls)):
        assert answer.json["id"] == number
        assert answer.json["result"]["structuredContent"] == {"text": str(number)}


async def test_discovery_says_what_is_served(wire: Wire) -> None:
    assert (await wire.modern("server/discover")).json["result"] == {
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": {**SERVED, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        "instructions": "Every tool of this yard.",
        "ttlMs": 30_000,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "toolyard", "title": "Toolyard", "version": "0.1.0"}},
    }


@pytest.mark.parametrize(("depth", "refused"), [(100, False), (900, True)])
async def test_deeply_nested_arguments_are_answered_readably(yard: Yard, depth: int, refused: bool) -> None:
    yard.slow.release.set()
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"kit_slow_action","arguments":%b}}' % (
        b'{"a":' * depth + b'"x"' + b"}" * depth
    )
    session = await yard.wire.initialize()
    answer = await yard.wire.send(headers=legacy_headers(session.id), body=body)
    assert (answer.status, answer.json["id"]) == (200, 1)
    assert answer.json["result"]["isError"] is refused
