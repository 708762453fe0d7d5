"""A real browser on a real server: any script error or refusal by the content security policy fails the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.node import node, npm_install

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
_NPM_CHROMIUM = ("@sparticuz/chromium", "153.0.0")
_PATIENCE = 8_000
"""Milliseconds until an expected element counts as missing."""


def chromium() -> str:
    """The browser of the system, or npm's where there is none. Skips when there is neither (never in CI)."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    try:
        package = npm_install(*_NPM_CHROMIUM)
        script = "import('@sparticuz/chromium').then(async m => console.log(await m.default.executablePath()))"
        ended = subprocess.run(
            [str(node()), "-e", script], cwd=package, capture_output=True, text=True, timeout=120, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = f"There is no Chromium here, and npm's could not be had: {error}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return ended.stdout.strip()


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            await browser.close()


class Tabs:
    """Opens tabs on one server, each a person of its own, and collects what goes wrong in them."""

    def __init__(self, browser: Browser, base: str, *, forgiving: str = "status of 4") -> None:
        """A refused request is answered with a status of its own: the browser's own line on it is no complaint."""
        self._browser = browser
        self._forgiving = forgiving
        self._contexts: list[BrowserContext] = []
        self.base = base
        self.complaints: list[str] = []

    async def open(self, path: str, *, width: int = 1280, dark: bool = False, script: bool = True) -> Page:
        context = await self._browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            base_url=self.base,
            java_script_enabled=script,
        )
        context.set_default_timeout(_PATIENCE)
        self._contexts.append(context)
        page = await context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"script error: {error}"))
        await page.goto(path)
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and self._forgiving not in message.text:
            self.complaints.append(f"{message.type}: {message.text}")

    async def close(self) -> None:
        for context in self._contexts:
            await context.close()
        assert not self.complaints, self.complaints
