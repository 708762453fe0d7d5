"""Which era an upstream speaks, and what is said when it cannot be found out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.mcp.connecting import connected_http
from tests.providers.mcp.scripted import Hang, Reply, Scripted, error
from tests.providers.mcp.serving import served
from toolyard.core.errors import BadInput, ProviderError
from toolyard.egress import Egress
from toolyard.providers.mcp import McpHttpProvider

HTML = Reply(200, b"<html>", kind="text/html")


@pytest.mark.parametrize(
    "discover",
    [
        error(-32601, "no such method", 404),
        error(-32601, "no such method"),
        error(-32600, "Missing session ID", 400),
        error(-32022, "unsupported", 400, {"supported": ["2025-11-25"]}),
        Reply(400, b"bad request", kind="text/plain"),
        Reply(404, b"", kind="text/plain"),
        Reply(405, b"", kind="text/plain"),
        Reply(406, b"", kind="text/plain"),
        HTML,
        Reply(200, b"not json"),
        {"supportedVersions": ["2025-11-25"], "capabilities": {}},
        {"something": "else"},
    ],
)
async def test_what_is_not_certainly_modern_is_tried_as_legacy(discover: Any) -> None:
    server = Scripted(era="legacy", server__discover=discover)
    with served(server) as url:
        async with connected_http(url) as up:
            assert up.provider.era == "legacy"
            assert (await up.call("echo")).text == "ok"
    assert server.methods()[:3] == ["server/discover", "initialize", "notifications/initialized"]
    assert server.seen[1][2]["params"]["protocolVersion"] == "2025-11-25"
    assert server.seen[-2][1]["mcp-protocol-version"] == "2025-06-18"


@pytest.mark.parametrize(
    ("discover", "says"),
    [
        (Reply(401, b"", kind="text/plain"), r"refused our credentials \(HTTP 401\)\. Check its key"),
        (Reply(403, b""), r"refused our credentials \(HTTP 403\)"),
        (Reply(500, b""), r"failed with HTTP 500\."),
        (Reply(502, b"bad gateway", kind="text/plain"), r"failed with HTTP 502\."),
        (Reply(503, b""), r"is not available \(HTTP 503\)\."),
        (Reply(429, b""), r"answered with HTTP 429\."),
        (error(-32020, "header mismatch", 400), "refused: header mismatch"),
        (error(-32022, "too old", 400, {"supported": ["2099-01-01"]}), "refused: too old"),
    ],
)
async def test_an_inconclusive_probe_is_an_error_and_is_not_remembered(discover: Reply, says: str) -> None:
    server = Scripted(server__discover=discover)
    good = Scripted().answers["server/discover"]
    egress = Egress()
    with served(server) as url:
        provider = McpHttpProvider("up", url, egress=egress)
        with pytest.raises(ProviderError, match=says):
            await provider.start()
        assert provider.era is None
        assert "initialize" not in server.methods()
        server.answers["server/discover"] = good
        await provider.start()
        assert provider.era == "modern"
        await provider.close()
    await egress.close()


async def test_a_server_that_refuses_a_version_it_names_as_its_own_is_asked_once_more() -> None:
    refusals = iter([error(-32022, "not that one", 400, {"supported": ["2026-07-28"]})])
    server = Scripted()
    welcome = server.answers["server/discover"]
    server.answers["server/discover"] = lambda _: next(refusals, welcome)
    with served(server) as url:
        async with connected_http(url) as up:
            assert up.provider.era == "modern"
    assert server.methods()[:2] == ["server/discover", "server/discover"]


async def test_a_setting_of_the_era_spares_the_probe() -> None:
    server = Scripted(era="legacy")
    with served(server) as url:
        async with connected_http(url, era="legacy") as up:
            assert up.provider.era == "legacy"
    assert "server/discover" not in server.methods()


async def test_a_redirect_is_not_followed_but_named() -> None:
    moved = Reply(307, b"", location="https://elsewhere.example/mcp?key=secret")
    server = Scripted(server__discover=moved, initialize=moved)
    says = r"redirects to https://elsewhere\.example/mcp\?\.\.\.; use that"
    with served(server) as url, pytest.raises(ProviderError, match=says):
        async with connected_http(url):
            pass


async def test_an_unknown_protocol_version_is_refused() -> None:
    server = Scripted(era="legacy", initialize={"protocolVersion": "1999-01-01", "capabilities": {}})
    with served(server) as url, pytest.raises(ProviderError, match="wants protocol version '1999-01-01'"):
        async with connected_http(url):
            pass


async def test_an_upstream_that_never_answers_initialize_is_given_up() -> None:
    server = Scripted(era="legacy", initialize=Hang)
    with served(server) as url, pytest.raises(ProviderError, match="did not answer to initialize in time"):
        async with connected_http(url, time_limit=0.2):
            pass


async def test_nobody_listening_is_said_with_the_address() -> None:
    with pytest.raises(ProviderError, match=r"No connection to 127\.0\.0\.1:9"):
        async with connected_http("http://127.0.0.1:9/mcp"):
            pass


async def test_addresses_are_checked_and_shown_without_secrets() -> None:
    egress = Egress()
    shown = McpHttpProvider("up", "https://user:word@example.com/mcp?key=secret", egress=egress).address
    assert shown == "https://example.com/mcp?..."
    with pytest.raises(BadInput, match="no address of an MCP server"):
        McpHttpProvider("up", "example.com/mcp", egress=egress)


async def test_given_headers_go_with_every_request() -> None:
    server = Scripted()
    with served(server) as url:
        async with connected_http(url, headers={"Authorization": "Bearer k"}) as up:
            await up.call("echo")
    assert [headers["authorization"] for _, headers, _ in server.seen] == ["Bearer k"] * 3
    _, headers, message = server.seen[-1]
    sent = {name: headers[name] for name in ("mcp-protocol-version", "mcp-method", "mcp-name", "accept")}
    assert sent == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "echo",
        "accept": "application/json, text/event-stream",
    }
    meta = message["params"].pop("_meta")
    assert meta.pop("io.modelcontextprotocol/clientInfo")["name"] == "toolyard"
    assert meta == {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    }
    assert message == {
        "jsonrpc": "2.0",
        "id": message["id"],
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {}},
    }
