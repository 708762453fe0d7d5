"""Pages that keep themselves up to date, over their event streams."""

from __future__ import annotations

import asyncio
import re

import pytest
from starlette.types import ASGIApp

from tests.faces.http.client import streaming
from toolyard.app import App
from toolyard.core.call import CallRequest, Origin
from toolyard.core.principal import LOCAL_OPERATOR
from toolyard.faces.console import live
from toolyard.faces.console.live import frame


def test_markup_is_framed_with_one_data_line_for_each_of_its_lines() -> None:
    assert frame("<p>\n one\r\n</p>") == b"data: <p>\ndata:  one\ndata: </p>\n\n"


@pytest.mark.parametrize(
    ("path", "target"), [("/live/overview", "#overview"), ("/live/calls", "#calls"), ("/live/providers", "#providers")]
)
async def test_a_stream_begins_with_the_present_state(face: ASGIApp, path: str, target: str) -> None:
    async with streaming(face, path) as stream:
        first = await stream.until("\n\n")
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert f'<hx-partial hx-target="{target}" hx-swap="innerMorph">' in first
        assert all(line.startswith("data: ") for line in first.strip().splitlines())


async def test_a_call_appears_in_a_log_whose_filter_it_passes_and_in_no_other(app: App, face: ASGIApp) -> None:
    async with (
        streaming(face, "/live/calls", query="tool=shop:till") as failing,
        streaming(face, "/live/calls") as every,
    ):
        await failing.until("\n\n")
        await every.until("\n\n")
        arguments = {"pet": {"name": "Rex"}, "size": "small"}
        outcome = await app.calls.invoke(CallRequest("shop:order", arguments, LOCAL_OPERATOR, Origin.CLI))
        await every.until(f'id="{outcome.call_id}"')
        till = await app.calls.invoke(CallRequest("shop:till", {}, LOCAL_OPERATOR, Origin.CLI))
        seen = await failing.until(f'id="{till.call_id}"')
        assert outcome.call_id not in seen


async def test_a_provider_that_goes_leaves_the_page(app: App, face: ASGIApp) -> None:
    async with streaming(face, "/live/providers") as stream:
        assert "p-shop" in await stream.until("\n\n")
        await app.supervisor.remove("shop")
        assert "p-shop" not in await stream.until("\n\n")


async def test_a_stream_ends_when_the_node_stops(app: App, face: ASGIApp) -> None:
    async with streaming(face, "/live/overview") as stream:
        await stream.until("\n\n")
        app.bus.close()
        async with asyncio.timeout(5):
            await stream.ended.wait()


async def test_a_quiet_stream_is_kept_open(face: ASGIApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "KEEP_ALIVE", 0.01)
    async with streaming(face, "/live/calls") as stream:
        await stream.until("\n\n")
        assert await stream.until("\n\n") == ": still here\n\n"


async def test_the_chart_says_in_words_and_in_a_table_what_it_draws(app: App, face: ASGIApp) -> None:
    await app.calls.invoke(CallRequest("shop:till", {}, LOCAL_OPERATOR, Origin.CLI))
    async with streaming(face, "/live/overview") as stream:
        text = re.sub(r"\s+", " ", (await stream.until("\n\n")).replace("data: ", ""))
    assert "1 calls, 1 failed. The busiest minute had 1" in text
    assert re.search(r"<tr><td>[\d: -]+ UTC</td><td class=\"number\">1</td><td class=\"number\">1</td></tr>", text)
