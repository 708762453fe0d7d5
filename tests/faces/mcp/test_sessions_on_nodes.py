"""A legacy client through three nodes behind round-robin, of which one is killed: its session goes on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

from tests.faces.cli.test_serve import Served, served
from tests.requirements import requirement
from tests.store.postgres import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
MODULE = '''
import os
import toolyard

@toolyard.tool(read_only=True)
def where() -> dict[str, int]:
    """Tells which process answers."""
    return {"pid": os.getpid()}
'''
MANIFEST = "providers:\n  - {id: kit, kind: python, module: kit}\n"
CALLS = 60
_HOP_BY_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})


class RoundRobin:
    """Each request goes to the next node; one that cannot be connected to is passed over, as a health check would."""

    def __init__(self, nodes: list[str]) -> None:
        self._nodes = nodes
        self._turn = count()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
        for _ in self._nodes:
            node = self._nodes[next(self._turn) % len(self._nodes)]
            try:
                return await self._forward(request, node, headers, body)
            except _NotThere:
                continue
        return web.Response(status=503)

    async def _forward(
        self, request: web.Request, node: str, headers: dict[str, str], body: bytes
    ) -> web.StreamResponse:
        address = f"{node}{request.path_qs}"
        # A connection of its own, so that a refused one proves that nothing was sent.
        async with ClientSession(connector=TCPConnector(force_close=True), timeout=ClientTimeout(total=60)) as session:
            try:
                answer = await session.request(request.method, address, headers=headers, data=body)
            except ClientError as error:
                if _refused(error):
                    raise _NotThere from error
                return web.Response(status=502)
            response = web.StreamResponse(status=answer.status)
            response.headers.update({k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP})
            await response.prepare(request)
            with suppress(ClientError):  # the node died: what was under way on it is lost
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
            return response


class _NotThere(Exception):
    pass


def _refused(error: BaseException) -> bool:
    return isinstance(error, OSError) and isinstance(getattr(error, "os_error", error), ConnectionRefusedError)


@asynccontextmanager
async def balanced(nodes: list[str]) -> AsyncIterator[str]:
    """The address of a balancer before these nodes."""
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{tail:.*}", RoundRobin(nodes).handle)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}/mcp"
    finally:
        await runner.cleanup()


def started(folder: Path, database: str, stack: ExitStack) -> list[Served]:
    (folder / "kit.py").write_text(MODULE)
    (folder / "yard.yaml").write_text(MANIFEST)
    return [
        stack.enter_context(
            served("yard.yaml", "--demo", "--database", database, "--data-dir", f"n{n}", "--blobs", "blobs", cwd=folder)
        )
        for n in range(3)
    ]


@requirement("mcp.sessions")
async def test_a_legacy_session_survives_the_death_of_a_node_behind_round_robin(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    from mcp import Client

    with ExitStack() as stack:
        nodes = await asyncio.to_thread(started, tmp_path, postgres_server.new_database(), stack)
        urls = [f"http://{urlsplit(node.url).netloc}" for node in nodes]
        async with asyncio.timeout(90), balanced(urls) as url, Client(url, mode="legacy", cache=None) as client:
            seen: list[int] = []
            failed: list[str] = []
            for number in range(CALLS):
                if number == CALLS // 2:
                    os.kill(nodes[1].process.pid, signal.SIGKILL)
                    nodes[1].process.communicate()
                await called(client, seen, failed)
            alive = {nodes[0].process.pid, nodes[2].process.pid}
            assert set(seen[: CALLS // 2]) == {node.process.pid for node in nodes}
            assert set(seen[CALLS // 2 :]) == alive
            assert (len(seen), failed) == (CALLS, [])


async def called(client: Any, seen: list[int], failed: list[str]) -> None:
    result = await client.call_tool("kit_where_action", {})
    if result.is_error:
        failed.append(result.content[0].text)
    else:
        seen.append(result.structured_content["pid"])
