"""A real App with a scripted provider behind the MCP face."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faces.mcp.yard import Scripted, Slow, Wire, fill
from toolyard.app import App, Settings
from toolyard.faces.mcp import Edge, build
from toolyard.serving import listening_socket, serving


@dataclass
class Yard:
    app: App
    provider: Scripted
    slow: Slow
    edge: Edge
    wire: Wire


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Yard]:
    """Demo mode: whoever is on this machine may call."""
    async with App.running(Settings(data_dir=folder, demo=True)) as app:
        provider = Scripted("kit")
        slow = fill(provider)
        await app.supervisor.add_and_start(provider)
        edge = build(app)
        yield Yard(app, provider, slow, edge, Wire(edge))


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    async with running(tmp_path) as yard:
        yield yard


@pytest.fixture(scope="module")
async def shared_yard(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Yard]:
    """For tests that change nothing."""
    async with running(tmp_path_factory.mktemp("yard")) as yard:
        yield yard


@pytest.fixture
def wire(yard: Yard) -> Wire:
    return yard.wire


@pytest.fixture
async def url(yard: Yard) -> AsyncIterator[str]:
    """The same face behind a real HTTP server."""
    bound = listening_socket("127.0.0.1", 0)
    async with serving(yard.edge, bound):
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
