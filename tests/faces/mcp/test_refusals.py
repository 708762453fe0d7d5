"""Everything that the edge refuses, and with what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.faces.mcp.conftest import Yard
from tests.faces.mcp.yard import BOTH, LEGACY, MODERN, Wire, legacy_headers, modern, rpc
from toolyard.app import App, Settings
from toolyard.core.principal import Scope
from toolyard.faces.mcp import build


@pytest.fixture
def wire(shared_yard: Yard) -> Wire:
    return shared_yard.wire


JSON = {"Content-Type": "application/json", "Accept": BOTH}


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8420", "127.0.0.1.evil.example", "0.0.0.0:8420", "", "@"]
)
async def test_a_foreign_host_is_misdirected(wire: Wire, host: str) -> None:
    headers, body = modern("server/discover")
    answer = await wire.send(headers=headers | {"Host": host}, body=body)
    assert answer.error == (421, -32600)


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8420", "LOCALHOST:9"])
async def test_loopback_names_are_let_in_on_any_port(wire: Wire, host: str) -> None:
    headers, body = modern("server/discover")
    assert (await wire.send(headers=headers | {"Host": host}, body=body)).status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example", "http://a@b@c"])
async def test_a_foreign_origin_is_forbidden(wire: Wire, origin: str) -> None:
    headers, body = modern("server/discover")
    assert (await wire.send(headers=headers | {"Origin": origin}, body=body)).error == (403, -32600)


async def test_a_local_page_may_ask(wire: Wire) -> None:
    headers, body = modern("server/discover")
    assert (await wire.send(headers=headers | {"Origin": "http://localhost:6274"}, body=body)).status == 200


async def test_the_public_url_and_given_names_are_let_in(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, public_url="https://yard.example/base")
    async with App.running(settings) as app:
        _, key = await app.keys.create("t", [Scope.CALL])
        wire = Wire(build(app, allowed_hosts=("other.example",)))
        statuses = {}
        for host in ("yard.example", "yard.example:443", "other.example", "evil.example"):
            headers, body = modern("server/discover")
            answer = await wire.send(headers=headers | {"Host": host, "Authorization": f"Bearer {key}"}, body=body)
            statuses[host] = answer.status
    assert statuses == {"yard.example": 200, "yard.example:443": 200, "other.example": 200, "evil.example": 421}


async def test_a_body_over_four_mebibytes_is_refused_by_its_length_alone(wire: Wire) -> None:
    answer = await wire.send(headers=JSON | {"Content-Length": str(4 * 1024 * 1024 + 1)}, body=b"{}")
    assert answer.error == (413, -32600)


async def test_a_body_over_four_mebibytes_is_refused_without_a_length_too(wire: Wire) -> None:
    assert (await wire.send(headers=JSON, body=b" " * (4 * 1024 * 1024 + 1))).error == (413, -32600)


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
async def test_only_json_is_taken(wire: Wire, kind: str | None) -> None:
    headers = {"Accept": BOTH} if kind is None else {"Accept": BOTH, "Content-Type": kind}
    assert (await wire.send(headers=headers, body=b"{}")).error == (415, -32600)


async def test_a_charset_after_the_content_type_is_fine(wire: Wire) -> None:
    headers, body = modern("server/discover")
    headers["Content-Type"] = "application/JSON; charset=utf-8"
    assert (await wire.send(headers=headers, body=body)).status == 200


@pytest.mark.parametrize("accept", ["text/html", "image/png, text/plain"])
async def test_a_client_that_reads_neither_json_nor_a_stream_is_told_so(wire: Wire, accept: str) -> None:
    headers, body = modern("server/discover")
    assert (await wire.send(headers=headers | {"Accept": accept}, body=body)).error == (406, -32600)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nonsense", b'"\xff"', b'{"a": NaN}', b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', b"[" * 5000],
)
async def test_what_is_not_json_is_a_parse_error(wire: Wire, body: bytes) -> None:
    answer = await wire.send(headers=JSON, body=body)
    assert answer.error == (400, -32700)
    assert answer.json["id"] is None


@pytest.mark.parametrize(
    "message",
    [
        [],
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
        "text",
        None,
        {"id": 1, "method": "ping"},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": [], "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0"},
    ],
)
async def test_what_is_no_single_request_is_invalid(wire: Wire, message: Any) -> None:
    assert (await wire.send(headers=JSON, body=orjson.dumps(message))).error == (400, -32600)


@pytest.mark.parametrize("params", [[], "x", 7, {"_meta": []}, {"_meta": "x"}])
async def test_params_of_the_wrong_shape_are_refused(wire: Wire, params: Any) -> None:
    assert (await wire.send(headers=JSON, body=rpc("tools/list", params))).error == (400, -32602)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
async def test_other_http_methods_are_not_spoken(wire: Wire, method: str) -> None:
    answer = await wire.send(method)
    assert (answer.status, answer.headers["allow"]) == (405, "POST, GET, DELETE")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    "headers", [{}, {"MCP-Protocol-Version": MODERN}, {"MCP-Protocol-Version": MODERN, "Mcp-Session-Id": "x"}]
)
async def test_modern_clients_have_neither_get_nor_delete(wire: Wire, method: str, headers: dict[str, str]) -> None:
    answer = await wire.send(method, headers=headers)
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("path", ["/mcp/nowhere", "/mcp/default/more", "/mcpx", "/mcp/../x"])
async def test_an_unknown_server_is_not_found(wire: Wire, path: str) -> None:
    assert (await wire.modern("server/discover", path=path)).error == (404, -32600)


async def test_authorization_metadata_is_not_found_and_says_what_to_do(wire: Wire) -> None:
    answer = await wire.send("GET", "/.well-known/oauth-protected-resource/mcp")
    assert answer.status == 404
    assert "API key" in answer.json["error"]["message"]


async def test_without_a_key_a_challenge_is_answered(tmp_path: Path) -> None:
    async with App.running(Settings(data_dir=tmp_path)) as app:
        wire = Wire(build(app))
        nobody = await wire.modern("server/discover")
        wrong = await wire.modern("server/discover", headers={"Authorization": "Bearer ty_wrong"})
        unread = await wire.send(headers=JSON, body=b"not even json")
        _, reader = await app.keys.create("reader", [Scope.READ])
        weak = await wire.modern("server/discover", headers={"Authorization": f"Bearer {reader}"})
        _, caller = await app.keys.create("caller", [Scope.CALL])
        good = await wire.modern("server/discover", headers={"Authorization": f"Bearer {caller}"})
    assert (nobody.status, nobody.headers["www-authenticate"]) == (401, 'Bearer realm="toolyard", scope="call"')
    assert wrong.status == 401
    assert 'error="invalid_token"' in wrong.headers["www-authenticate"]
    assert unread.status == 401
    assert weak.status == 403
    assert 'error="insufficient_scope"' in weak.headers["www-authenticate"]
    assert good.status == 200


@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
@pytest.mark.parametrize("value", [None, "something-else"])
async def test_a_mirrored_header_that_is_missing_or_lies_is_a_mismatch(
    wire: Wire, header: str, value: str | None
) -> None:
    call = {"name": "kit_echo_action", "arguments": {}}
    answer = await wire.modern("tools/call", call, headers={header: value})
    assert answer.error == (400, -32020)
    assert header in answer.json["error"]["message"]


@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
async def test_a_mirrored_header_that_comes_twice_is_a_mismatch(wire: Wire, header: str) -> None:
    headers, body = modern("tools/call", {"name": "kit_echo_action"})
    answer = await wire.send(headers=[*headers.items(), (header, headers[header])], body=body)
    assert answer.error == (400, -32020)


async def test_a_name_may_be_sent_as_base64(wire: Wire) -> None:
    call = {"name": "kit_echo_action", "arguments": {"text": "x"}}
    good = await wire.modern("tools/call", call, headers={"Mcp-Name": "=?base64?a2l0X2VjaG9fYWN0aW9u?="})
    bad = await wire.modern("tools/call", call, headers={"Mcp-Name": "=?base64?!?="})
    assert (good.status, bad.error) == (200, (400, -32020))


async def test_an_unknown_modern_version_is_answered_with_those_served(wire: Wire) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    answer = await wire.modern("tools/list", meta=meta, headers={"MCP-Protocol-Version": "2099-01-01"})
    assert answer.error == (400, -32022)
    assert answer.json["error"]["data"] == {"supported": [MODERN], "requested": "2099-01-01"}


@pytest.mark.parametrize(
    "method",
    [
        "resources/subscribe",
        "prompts/complete",
        "tasks/list",
        "tasks/result",
        "nonsense",
        "ping",
        "logging/setLevel",
        "initialize",
    ],
)
async def test_a_method_the_modern_era_lacks_is_not_found(wire: Wire, method: str) -> None:
    assert (await wire.modern(method, {})).error == (404, -32601)


@pytest.mark.parametrize("method", ["resources/lists", "server/discover", "subscriptions/listen", "nonsense"])
async def test_a_method_the_legacy_era_lacks_is_an_error_in_a_good_answer(wire: Wire, method: str) -> None:
    session = await wire.initialize()
    assert (await session.send(method)).error == (200, -32601)


@pytest.mark.parametrize(
    "params", [{}, {"name": 7}, {"name": None}, {"name": "kit_echo_action", "arguments": []}, {"name": "nope"}]
)
async def test_a_call_that_names_no_tool_properly_is_refused(wire: Wire, params: dict[str, Any]) -> None:
    session = await wire.initialize()
    assert (await session.send("tools/call", params)).error == (200, -32602)
    assert (await wire.modern("tools/call", params)).error == (400, -32602)


async def test_an_unknown_tool_is_named_and_no_other(yard: Yard) -> None:
    answer = await yard.wire.modern("tools/call", {"name": "kit_ecko_action"})
    assert answer.json["error"] == {"code": -32602, "message": "Unknown tool: kit_ecko_action"}


@pytest.mark.parametrize("key", ["", "x" * 256, 7])
async def test_an_idempotency_key_of_the_wrong_shape_is_refused(wire: Wire, key: Any) -> None:
    call = {"name": "kit_echo_action", "arguments": {}}
    assert (await wire.modern("tools/call", call, meta={"toolyard/idempotency-key": key})).error == (400, -32602)


@pytest.mark.parametrize("cursor", [7, "", "!!", "/w", {}])
async def test_a_cursor_that_we_did_not_give_is_refused(wire: Wire, cursor: Any) -> None:
    assert (await wire.modern("tools/list", {"cursor": cursor})).error == (400, -32602)


async def test_listening_needs_a_client_that_reads_a_stream(wire: Wire) -> None:
    answer = await wire.modern("subscriptions/listen", {"notifications": {}}, headers={"Accept": "application/json"})
    assert answer.error == (406, -32600)


async def test_listening_to_nothing_in_particular_is_refused(wire: Wire) -> None:
    assert (await wire.modern("subscriptions/listen")).error == (400, -32602)


async def test_a_modern_notification_is_taken_and_dropped(wire: Wire) -> None:
    headers, _ = modern("notifications/cancelled")
    answer = await wire.send(headers=headers, body=rpc("notifications/cancelled", {"requestId": 1}, None))
    assert (answer.status, answer.body) == (202, b"")


async def test_a_modern_client_posts_no_responses(wire: Wire) -> None:
    headers, _ = modern("x")
    assert (await wire.send(headers=headers, body=b'{"jsonrpc":"2.0","id":1,"result":{}}')).error == (400, -32600)


async def test_a_notification_outside_any_session_is_refused(wire: Wire) -> None:
    headers = legacy_headers(None) | {"MCP-Protocol-Version": LEGACY}
    answer = await wire.send(headers=headers, body=rpc("notifications/initialized", None, None))
    assert answer.error == (400, -32600)


async def test_a_failure_of_our_own_is_an_internal_error_that_tells_nothing(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(yard.edge.face.lists, "page", explode)
    answer = await yard.wire.modern("tools/list")
    assert answer.error == (200, -32603)
    assert "secret" not in answer.body.decode()
