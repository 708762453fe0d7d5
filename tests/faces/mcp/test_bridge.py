"""Questions through us in all four pairs of eras: the reference client in front, servers of others behind."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faces.mcp.conftest import running
from tests.faces.mcp.test_asking import Person, held
from tests.faces.mcp.test_sdk_clients import connected
from tests.providers.mcp.servers.sdk_server import Behaviours
from tests.providers.mcp.serving import served
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.core.call import CallState
from toolyard.core.record import CallFilter
from toolyard.faces.mcp import build
from toolyard.providers.base import Provider
from toolyard.providers.mcp import McpHttpProvider, McpStdioProvider
from toolyard.serving import listening_socket, serving

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The logging capability is deprecated"),
]
FRONTS = ["legacy", "2026-07-28"]
STDIO_SERVER = Path(__file__).parents[2] / "providers" / "mcp" / "servers" / "stdio_server.py"


@pytest.fixture
async def behind(tmp_path: Path) -> AsyncIterator[str]:
    """Another yard, whose tool asks for a form, a sample and the roots."""
    bound = listening_socket("127.0.0.1", 0)
    async with running(tmp_path / "behind") as yard:
        yard.provider.add("ask", held)
        await yard.app.supervisor.refresh("kit")
        async with serving(yard.edge, bound):
            yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"


@pytest.fixture
def foreign() -> Iterator[str]:
    with served(Behaviours().server().streamable_http_app()) as base:
        yield f"{base}/mcp"


@asynccontextmanager
async def in_front(folder: Path, *providers: Any) -> AsyncIterator[tuple[App, str]]:
    bound = listening_socket("127.0.0.1", 0)
    async with App.running(Settings(data_dir=folder, demo=True)) as app:
        for make in providers:
            provider: Provider = make(app)
            await app.supervisor.add_and_start(provider)
        async with serving(build(app), bound):
            yield app, f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"


@requirement("mcp.bridge")
@requirement("mcp.eras")
@pytest.mark.parametrize("back", ["legacy", "modern"])
@pytest.mark.parametrize("front", FRONTS)
async def test_every_kind_of_question_crosses_every_pair_of_eras(
    tmp_path: Path, behind: str, front: str, back: Any
) -> None:
    person = Person()
    up = lambda app: McpHttpProvider("up", behind, egress=app.egress, era=back)  # noqa: E731
    async with asyncio.timeout(30), in_front(tmp_path / "front", up) as (app, url):
        async with connected(url, front, **person.callbacks) as client:
            result = await client.call_tool("up_kit_ask_action_action", {})
        assert result.is_error is False, result
        answers = result.structured_content
        assert answers["name"] == {"action": "accept", "content": {"name": "Ada"}}
        assert answers["poem"]["content"]["text"] == "A line."
        assert answers["places"]["roots"][0]["uri"] == "file:///srv"
        (record,) = (await app.calls.page(CallFilter())).items
        assert (record.tool, record.state) == ("up:kit_ask_action", CallState.COMPLETE)


@requirement("mcp.eras")
@pytest.mark.parametrize("front", FRONTS)
async def test_a_legacy_server_of_the_sdk_asks_a_client_of_either_era(tmp_path: Path, foreign: str, front: str) -> None:
    person = Person()
    up = lambda app: McpHttpProvider("up", foreign, egress=app.egress, era="legacy")  # noqa: E731
    async with (
        asyncio.timeout(30),
        in_front(tmp_path / "front", up) as (_, url),
        connected(url, front, **person.callbacks) as client,
    ):
        result = await client.call_tool("up_ask_action", {})
    assert result.is_error is False, result
    assert result.structured_content["action"] == "accept"
    assert [asked.message for asked in person.asked] == ["Name?"]


@requirement("mcp.eras")
@pytest.mark.parametrize("front", FRONTS)
async def test_a_legacy_server_over_stdio_asks_a_client_of_either_era(tmp_path: Path, front: str) -> None:
    person = Person()
    command = [sys.executable, "-I", str(STDIO_SERVER), "legacy"]
    async with (
        asyncio.timeout(30),
        in_front(tmp_path / "front", lambda app: McpStdioProvider("up", command)) as (_, url),
        connected(url, front, **person.callbacks) as client,
    ):
        result = await client.call_tool("up_ask_action", {})
    told, answer = json.loads(result.content[0].text)
    assert "elicitation" in told
    assert answer == {"action": "accept", "content": {"name": "Ada"}}
