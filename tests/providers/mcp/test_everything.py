"""A foreign server: npm's `@modelcontextprotocol/server-everything`, over stdio and streamable HTTP."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.node import node, npm_install
from tests.providers.mcp.connecting import Connected, connected, connected_http
from tests.requirements import requirement
from toolyard.core.call import Progress
from toolyard.core.errors import CallError
from toolyard.providers.mcp import McpStdioProvider

pytestmark = pytest.mark.node


def command(transport: str) -> list[str]:
    package = npm_install("@modelcontextprotocol/server-everything", "2026.8.31")
    return [str(node()), str(package / "dist" / "index.js"), transport]


@asynccontextmanager
async def over_stdio() -> AsyncIterator[Connected]:
    async with connected(McpStdioProvider("everything", command("stdio"), probe_limit=20)) as up:
        yield up


@asynccontextmanager
async def over_http() -> AsyncIterator[Connected]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *command("streamableHttp"),
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(30):
            while b"listening" not in (line := (await process.stderr.readline()).lower()):
                assert line, "the server ended"
        async with connected_http(f"http://127.0.0.1:{port}/mcp") as up:
            yield up
    finally:
        process.send_signal(signal.SIGKILL)
        await process.communicate()


@pytest.mark.parametrize("transport", [over_stdio, over_http])
@requirement("provider.verbatim")
async def test_its_tools_work_through_us(transport: object) -> None:
    async with transport() as up:  # type: ignore[operator]
        assert up.provider.era == "legacy"
        assert up.provider.skipped == ()
        assert {"echo", "get-sum", "get-tiny-image", "get-structured-content"} <= set(up.tools)
        for tool in up.tools.values():
            assert tool.wire is not None
            assert (tool.name, tool.description) == (tool.wire["name"], tool.wire["description"])
            assert tool.input_schema.document() == tool.wire["inputSchema"]
        assert (await up.call("echo", {"message": "grüß 😀"})).text == "Echo: grüß 😀"
        assert "5" in re.findall(r"\d+", (await up.call("get-sum", {"a": 2, "b": 3})).text)
        image = [block for block in (await up.call("get-tiny-image")).content if block["type"] == "image"]
        assert [block["mimeType"] for block in image] == ["image/png"]
        structured = await up.call("get-structured-content", {"location": "Chicago"})
        assert structured.has_structured
        seen: list[Progress] = []
        arguments = {"duration": 0.3, "steps": 3}
        await up.call("trigger-long-running-operation", arguments, progress=seen.append)
        assert [(report.progress, report.total) for report in seen] == [(1, 3), (2, 3), (3, 3)]
        try:
            refused = (await up.call("get-sum", {"a": "x"})).is_error
        except CallError:
            refused = True
        assert refused
