"""A running yard with the face on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.types import ASGIApp

from tests.faces.http.client import client_of
from tests.faces.http.tools import YardTools
from toolyard.app import App, Settings
from toolyard.core.principal import Scope
from toolyard.faces.http import build


@pytest.fixture
def tools() -> YardTools:
    return YardTools()


@pytest.fixture
async def app(tmp_path: Path, tools: YardTools) -> AsyncIterator[App]:
    """In demo mode, with the tools of `YardTools`."""
    async with App.running(Settings(data_dir=tmp_path / "data", demo=True)) as app:
        await app.supervisor.add_and_start(tools)
        yield app


@pytest.fixture
def face(app: App) -> ASGIApp:
    return build(app)


@pytest.fixture
async def local(face: ASGIApp) -> AsyncIterator[httpx2.AsyncClient]:
    """The operator at this machine."""
    async with client_of(face) as client:
        yield client


class Clients:
    """Clients with a key of their own."""

    def __init__(self, app: App, face: ASGIApp) -> None:
        self._app = app
        self._face = face
        self.keys: list[str] = []

    async def with_scopes(self, *scopes: Scope, name: str | None = None) -> httpx2.AsyncClient:
        _, key = await self._app.keys.create(name or "-".join(sorted(scopes)), scopes)
        self.keys.append(key)
        return client_of(self._face, key=key)


@pytest.fixture
def clients(app: App, face: ASGIApp) -> Clients:
    return Clients(app, face)
