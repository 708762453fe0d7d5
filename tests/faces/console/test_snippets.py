"""What the connect page offers to copy does what it says, with a key put in its place."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.faces.console.page import Page
from tests.faces.console.tools import Shop
from toolyard.app import App, Settings
from toolyard.core.principal import Scope
from toolyard.faces.asgi import build
from toolyard.serving import listening_socket, serving


@dataclass
class Snippets:
    page: Page
    key: str

    def text(self, name: str) -> str:
        """The code of one snippet, with a real key."""
        article = self.page.one("article", aria_labelledby=f"s-{name}")
        codes = [code.text for code in self.page.all("code") if "article" in code.inside and code.text in article.text]
        return max(codes, key=len).replace("YOUR_KEY", self.key)


@pytest.fixture
async def snippets(tmp_path: Path) -> AsyncIterator[Snippets]:
    """Of a yard that asks for keys."""
    with listening_socket("127.0.0.1", 0) as socket:
        settings = Settings(data_dir=tmp_path / "data", port=socket.getsockname()[1])
        async with App.running(settings) as app, serving(build(app), socket):
            await app.supervisor.add_and_start(Shop())
            _, key = await app.keys.create("reader", [Scope.CALL])
            headers = {"authorization": f"Bearer {key}"}
            async with httpx2.AsyncClient(base_url=settings.url, headers=headers) as client:
                yield Snippets(Page.of(await client.get("/connect")), key)


async def run(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(20):
        said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(("name", "says"), [("curl-modern", "shop_order_action"), ("curl-legacy", '"protocolVersion"')])
async def test_the_curl_lines_are_answered(snippets: Snippets, name: str, says: str) -> None:
    assert says in await run("sh", "-c", snippets.text(name))


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_the_rest_line_makes_a_call(snippets: Snippets) -> None:
    answer = json.loads(await run("sh", "-c", snippets.text("rest")))
    assert answer["tool"].startswith("shop:")


async def test_the_python_lines_list_the_tools(snippets: Snippets) -> None:
    assert "shop_order_action" in await run(sys.executable, "-W", "ignore", "-c", snippets.text("python"))


@pytest.mark.parametrize("name", ["claude-desktop", "cursor", "vscode", "stdio"])
async def test_the_configurations_are_json(snippets: Snippets, name: str) -> None:
    config = json.loads(snippets.text(name))
    servers = config.get("mcpServers") or config["servers"]
    assert list(servers) == ["toolyard"]
    assert name == "stdio" or snippets.key in json.dumps(servers)
