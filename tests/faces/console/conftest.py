"""A yard with the console on it, and a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import Browser
from starlette.types import ASGIApp

from tests.faces.console.browser import Tabs, launched
from tests.faces.console.page import Page
from tests.faces.console.tools import Hostile, Shop
from tests.faces.http.client import client_of
from toolyard.app import App, Settings
from toolyard.faces.asgi import build as build_all
from toolyard.faces.console import build
from toolyard.serving import listening_socket, serving


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


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with launched() as browser:
        yield browser


@pytest.fixture
async def tabs(app: App, browser: Browser) -> AsyncIterator[Tabs]:
    """Over every face, as a user meets it. Leaving fails on anything that a tab complained about."""
    with listening_socket("127.0.0.1", 0) as socket:
        async with serving(build_all(app), socket):
            tabs = Tabs(browser, f"http://127.0.0.1:{socket.getsockname()[1]}")
            yield tabs
            await tabs.close()
