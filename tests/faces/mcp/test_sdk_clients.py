"""The reference client of both eras against us, over HTTP and stdio: the same script, the same answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faces.mcp.conftest import Yard
from tests.requirements import requirement
from toolyard.catalog import ToolSettings
from toolyard.faces import asgi
from toolyard.serving import listening_socket, serving

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

MODES = ["legacy", "auto", "2026-07-28"]
ROOT = Path(__file__).parents[3]


def server_on_stdio(folder: Path) -> Any:
    from mcp import StdioServerParameters

    arguments = ["-m", "tests.faces.mcp.stdio_yard", str(folder)]
    return StdioServerParameters(command=sys.executable, args=arguments, cwd=ROOT)


@asynccontextmanager
async def connected(target: Any, mode: str, **kwargs: Any) -> AsyncIterator[Any]:
    from mcp import Client

    async with Client(target, mode=mode, cache=None, **kwargs) as client:
        yield client


async def script(client: Any) -> dict[str, Any]:
    """What any client does; its outcome must not depend on era or transport."""
    tools = (await client.list_tools()).tools
    told: list[Any] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    good = await client.call_tool("kit_echo_action", {"text": "hi"})
    bad = await client.call_tool("kit_echo_action", {"text": 7})
    failed = await client.call_tool("kit_fail_action", {})
    slow = await client.call_tool("kit_slow_action", {}, progress_callback=progress)
    return {
        "tools": [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools if tool.name.startswith("kit_")][
            :3
        ],
        "good": (good.is_error, good.structured_content, good.content[0].text),
        "bad": (bad.is_error, bad.meta["toolyard/error"]["code"]),
        "failed": (failed.is_error, failed.content[0].text),
        "slow": (slow.is_error, slow.content[0].text),
        "progress": told,
    }


async def outcome_of_an_unknown_tool(client: Any) -> int:
    from mcp.shared.exceptions import MCPError

    with pytest.raises(MCPError) as refused:
        await client.call_tool("kit_nope_action", {})
    return refused.value.error.code


EXPECTED = {
    "good": (False, {"text": "hi"}, '{"text":"hi"}'),
    "bad": (True, "invalid_arguments"),
    "failed": (True, "The kettle is empty. Fill it."),
    "slow": (False, "at last"),
    "progress": [(1, 3, "one"), (2, 3, "two")],
}


@requirement("tool.discovery")
@requirement("tool.error-result")
@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_client_is_served_over_http(yard: Yard, url: str, mode: str) -> None:
    yard.slow.release.set()
    async with connected(url, mode) as client:
        outcome = await script(client)
        assert await outcome_of_an_unknown_tool(client) == -32602
    assert [tool["name"] for tool in outcome.pop("tools")] == ["kit_echo_action", "kit_fail_action", "kit_slow_action"]
    assert outcome == EXPECTED


@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_client_is_served_over_stdio(tmp_path: Path, mode: str) -> None:
    async with connected(server_on_stdio(tmp_path), mode) as client:
        outcome = await script(client)
        assert await outcome_of_an_unknown_tool(client) == -32602
    assert [tool["name"] for tool in outcome.pop("tools")] == [
        "kit_chatty_action",
        "kit_echo_action",
        "kit_fail_action",
    ]
    assert outcome == EXPECTED


async def test_the_face_is_mounted_at_mcp(yard: Yard) -> None:
    bound = listening_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{bound.getsockname()[1]}/mcp/default"
    async with serving(asgi.build(yard.app), bound), connected(url, "auto") as client:
        assert (await client.call_tool("kit_echo_action", {"text": "hi"})).structured_content == {"text": "hi"}


async def test_both_eras_see_the_same_definitions(yard: Yard, url: str) -> None:
    yard.slow.release.set()
    seen = []
    for mode in MODES:
        async with connected(url, mode) as client:
            seen.append((await script(client))["tools"])
    assert seen[0] == seen[1] == seen[2]


async def test_auto_means_the_modern_era(yard: Yard, url: str) -> None:
    async with connected(url, "auto") as client:
        assert client.protocol_version == "2026-07-28"
    async with connected(url, "legacy") as client:
        assert client.protocol_version == "2025-11-25"


async def test_a_legacy_sdk_client_hears_of_a_change(yard: Yard, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heard, following = asyncio.Event(), asyncio.Event()
    changes = yard.edge.face.changes
    subscribe = changes.subscribe

    def watched(*args: Any, **kwargs: Any) -> Any:
        following.set()
        return subscribe(*args, **kwargs)

    monkeypatch.setattr(changes, "subscribe", watched)

    async def on_message(message: Any) -> None:
        if "list_changed" in str(getattr(message, "method", "")):
            heard.set()

    async with connected(url, "legacy", message_handler=on_message):
        async with asyncio.timeout(10):
            await following.wait()
            await yard.app.set_tool_settings("kit:fail", ToolSettings(enabled=False))
            await heard.wait()


async def test_a_modern_sdk_client_hears_of_a_change(yard: Yard, url: str) -> None:
    async with connected(url, "2026-07-28") as client, client.listen(tools_list_changed=True) as events:
        await yard.app.set_tool_settings("kit:fail", ToolSettings(enabled=False))
        async with asyncio.timeout(10):
            async for event in events:
                assert type(event).__name__ == "ToolsListChanged"
                break


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_an_sdk_client_that_gives_up_cancels_its_call(yard: Yard, url: str, mode: str) -> None:
    async with connected(url, mode) as client:
        call = asyncio.create_task(client.call_tool("kit_slow_action", {}))
        async with asyncio.timeout(10):
            await yard.slow.started.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await yard.slow.over.wait()
    assert yard.slow.ended == "cancelled"
