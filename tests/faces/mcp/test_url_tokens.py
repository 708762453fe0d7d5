"""A key in the path: only where it is switched on for that server, and never in a log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faces.mcp.yard import Wire
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.catalog import Server
from toolyard.core.principal import Scope
from toolyard.faces.mcp import build


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[tuple[Wire, str]]:
    """A yard that lets nobody in without a key, and a key."""
    async with App.running(Settings(data_dir=tmp_path)) as app:
        await app.save_server(Server("open", token_in_url=True))
        await app.save_server(Server("shut"))
        _, key = await app.keys.create("t", [Scope.CALL])
        yield Wire(build(app)), key


async def status(wire: Wire, path: str, **headers: str) -> int:
    return (await wire.modern("server/discover", path=path, headers=headers)).status


@requirement("server.toggles")
async def test_a_key_in_the_path_is_taken_only_where_it_is_switched_on(guarded: tuple[Wire, str]) -> None:
    wire, key = guarded
    assert await status(wire, f"/mcp/open/t/{key}") == 200
    assert await status(wire, f"/mcp/open/t/{key}/") == 200
    for path in (f"/mcp/shut/t/{key}", f"/mcp/t/{key}", f"/mcp/nosuch/t/{key}", "/mcp/open/t/", "/mcp/open"):
        assert await status(wire, path) == 401
    assert await status(wire, f"/mcp/open/t/{key[:-1]}x") == 401


async def test_a_key_in_the_header_counts_before_the_one_in_the_path(guarded: tuple[Wire, str]) -> None:
    wire, key = guarded
    assert await status(wire, f"/mcp/open/t/{key}", Authorization="Bearer ty_wrong") == 401
    assert await status(wire, "/mcp/open/t/ty_wrong", Authorization=f"Bearer {key}") == 200


async def test_a_legacy_session_works_under_such_a_path(guarded: tuple[Wire, str]) -> None:
    wire, key = guarded
    session = await wire.initialize(path=f"/mcp/open/t/{key}")
    assert (await session.send("tools/list")).status == 200


async def test_neither_an_answer_nor_a_log_tells_the_key(
    guarded: tuple[Wire, str], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    wire, key = guarded
    for path in (f"/mcp/shut/t/{key}", f"/mcp/open/t/{key}x", f"/mcp/nosuch/t/{key}", f"/mcp/open/t/{key}"):
        answer = await wire.modern("tools/call", {"name": "nosuch"}, path=path)
        assert key.encode() not in answer.body
    written = capfd.readouterr()
    assert key not in written.out + written.err + caplog.text
