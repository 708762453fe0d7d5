"""A yard with the console on it, and a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.types import ASGIApp

from tests.faces.console.page import Page
from tests.faces.console.tools import Hostile, Shop
from tests.faces.http.client import client_of
from toolyard.app import App, Settings
from toolyard.faces.console import build


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
async def app(tmp_path: Path, shop: Shop) -> AsyncIterator[App]:
    """In demo mode, so that whoever is at this machine may do everything."""
    async with App.running(Settings(data_dir=tmp_path / "data", demo=True)) as app:
        await app.supervisor.add_and_start(shop)
        yield app


@pytest.fixture
async def hostile(app: App) -> Hostile:
    provider = Hostile()
    await app.supervisor.add_and_start(provider)
    return provider


@pytest.fixture
def face(app: App) -> ASGIApp:
    return build(app)


@pytest.fixture
async def client(face: ASGIApp) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(face) as client:
        yield client


@pytest.fixture
async def csrf(client: httpx2.AsyncClient) -> str:
    return Page.of(await client.get("/keys")).csrf
