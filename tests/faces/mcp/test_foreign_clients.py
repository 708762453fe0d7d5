"""Clients that others wrote, in both eras: the TypeScript client and the MCP Inspector's command line."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.faces.mcp.conftest import Yard
from tests.node import node, npm_install

pytestmark = pytest.mark.node

CLIENT = ("@modelcontextprotocol/client", "2.4.0")
INSPECTOR = ("@modelcontextprotocol/inspector", "2.12.0")
SCRIPT = Path(__file__).with_name("client.mjs")
TOOLS = ["kit_echo_action", "kit_fail_action", "kit_slow_action", "toolyard_get_call_result_action"]


async def run_node(*arguments: str | Path) -> tuple[int, bytes, bytes]:
    binary = node()
    path = f"{binary.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    process = await asyncio.create_subprocess_exec(
        binary,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PATH": path},
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return process.returncode or 0, out, err


@pytest.mark.parametrize(("era", "version"), [("legacy", "2025-11-25"), ("modern", "2026-07-28")])
async def test_the_typescript_client_is_served(yard: Yard, url: str, era: str, version: str) -> None:
    yard.slow.release.set()
    package = await asyncio.to_thread(npm_install, *CLIENT)
    code, out, err = await run_node(SCRIPT, package, url, era)
    assert code == 0, err.decode()
    assert orjson.loads(out) == {
        "version": version,
        "tools": TOOLS,
        "good": {"text": "hi"},
        "failed": [True, "The kettle is empty. Fill it."],
        "slow": "at last",
        "progress": ["one", "two"],
        "unknown": -32602,
    }


async def inspect(url: str, era: str, *arguments: str) -> Any:
    package = await asyncio.to_thread(npm_install, *INSPECTOR)
    launcher = package / "clients" / "launcher" / "build" / "index.js"
    code, out, err = await run_node(launcher, "--cli", url, "--protocol-era", era, *arguments)
    assert code == 0, (out + err).decode()
    return orjson.loads(out)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_is_served(yard: Yard, url: str, era: str) -> None:
    listed, called = await asyncio.gather(
        inspect(url, era, "--method", "tools/list"),
        inspect(url, era, "--method", "tools/call", "--tool-name", "kit_echo_action", "--tool-arg", "text=hi"),
    )
    assert [tool["name"] for tool in listed["tools"]] == TOOLS
    assert called["structuredContent"] == {"text": "hi"}
