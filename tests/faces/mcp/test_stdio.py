"""The core over lines: both eras on one connection, side by side, and stdout that carries nothing else."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import pytest

from tests.faces.mcp.conftest import Yard
from tests.faces.mcp.yard import LEGACY, MODERN, modern, rpc
from toolyard.core.call import CallState
from toolyard.core.errors import NotFound
from toolyard.core.record import CallFilter
from toolyard.faces.mcp import serve_stdio
from toolyard.faces.mcp.stdio import serve_lines

ROOT = Path(__file__).parents[3]
INITIALIZE = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Lines:
    """The client's end of a connection served in this process."""

    def __init__(self, yard: Yard) -> None:
        reading, writing = os.pipe()
        self._source = os.fdopen(reading, "rb")
        self._sink: BinaryIO = os.fdopen(writing, "wb")
        self._heard = asyncio.Condition()
        self.said: list[Any] = []
        self._loop = asyncio.get_running_loop()
        self.served = asyncio.create_task(serve_lines(yard.app, "default", self._source, self._write))

    def _write(self, frame: bytes) -> None:
        assert b"\n" not in frame
        self.said.append(orjson.loads(frame))
        self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        async with self._heard:
            self._heard.notify_all()

    async def send(self, line: bytes) -> None:
        await asyncio.to_thread(self._push, line + b"\n")

    def _push(self, data: bytes) -> None:
        self._sink.write(data)
        self._sink.flush()

    async def modern(self, method: str, params: Any = None, **kwargs: Any) -> None:
        await self.send(modern(method, params, **kwargs)[1])

    async def until(self, count: int) -> list[Any]:
        async with asyncio.timeout(10), self._heard:
            await self._heard.wait_for(lambda: len(self.said) >= count)
        return self.said

    async def close(self) -> None:
        if not self._sink.closed:
            self._sink.close()
        async with asyncio.timeout(10):
            await self.served
        self._source.close()


@asynccontextmanager
async def connected(yard: Yard) -> AsyncIterator[Lines]:
    lines = Lines(yard)
    try:
        yield lines
    finally:
        await lines.close()


async def test_both_probes_are_answered_on_one_connection(yard: Yard) -> None:
    async with connected(yard) as lines:
        await lines.modern("server/discover", request_id="probe")
        await lines.send(rpc("initialize", INITIALIZE, 2))
        await lines.send(rpc("notifications/initialized", None, None))
        said = {message["id"]: message["result"] for message in await lines.until(2)}
        assert said["probe"]["supportedVersions"] == [MODERN]
        assert said[2]["protocolVersion"] == LEGACY
        await lines.send(rpc("tools/list", None, 3))
        await lines.modern("tools/list", request_id=4)
        by_id = {message["id"]: message["result"] for message in await lines.until(4)}
        assert by_id[3]["tools"] == by_id[4]["tools"]
        assert ("ttlMs" in by_id[3], "ttlMs" in by_id[4]) == (False, True)


async def test_whatever_is_wrong_with_a_line_is_answered_and_the_next_one_served(yard: Yard) -> None:
    async with connected(yard) as lines:
        await lines.send(b"not json")
        await lines.send(b"")
        await lines.send(b"[]")
        await lines.send(rpc("tools/list", None, 5))
        await lines.send(b'{"jsonrpc":"2.0","id":6,"result":{}}')
        await lines.modern("tools/list", meta={"io.modelcontextprotocol/protocolVersion": "2099-01-01"}, request_id=7)
        await lines.modern("resources/lists", request_id=8)
        await lines.send(b'{"jsonrpc":"2.0","id":9,"method":"' + b"x" * (5 * 1024 * 1024) + b'"}')
        await lines.send(rpc("ping", None, 10))
        said = await lines.until(7)
    errors = [(message["id"], message.get("error", {}).get("code")) for message in said]
    assert sorted(errors, key=str) == sorted(
        [(None, -32700), (None, -32600), (5, -32600), (7, -32022), (8, -32601), (None, -32600), (10, None)],
        key=str,
    )


async def test_requests_run_side_by_side_and_progress_comes_first(yard: Yard) -> None:
    async with connected(yard) as lines:
        await lines.modern("tools/call", {"name": "kit_slow_action"}, meta={"progressToken": 9}, request_id=1)
        await asyncio.wait_for(yard.slow.started.wait(), 5)
        await lines.modern("tools/call", {"name": "kit_echo_action"}, request_id=2)
        said = await lines.until(3)
        assert [message.get("id", message.get("method")) for message in said] == ["notifications/progress"] * 2 + [2]
        yard.slow.release.set()
        assert (await lines.until(4))[3]["id"] == 1


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_cancelled_request_ends_and_is_not_answered(yard: Yard, era: str) -> None:
    async with connected(yard) as lines:
        if era == "modern":
            await lines.modern("tools/call", {"name": "kit_slow_action"}, request_id=1)
        else:
            await lines.send(rpc("initialize", INITIALIZE, 0))
            await lines.until(1)
            await lines.send(rpc("tools/call", {"name": "kit_slow_action"}, 1))
        await asyncio.wait_for(yard.slow.started.wait(), 5)
        await lines.send(rpc("notifications/cancelled", {"requestId": [1]}, None))
        await lines.send(rpc("notifications/cancelled", {"requestId": 1, "reason": "enough"}, None))
        await lines.modern("server/discover", request_id=99)
        said = await lines.until(2 if era == "legacy" else 1)
        assert said[-1]["id"] == 99
    assert yard.slow.ended == "cancelled"
    assert 1 not in [message.get("id") for message in lines.said]


async def test_both_kinds_of_client_hear_of_changes(yard: Yard) -> None:
    async with connected(yard) as lines:
        await lines.send(rpc("initialize", INITIALIZE, 1))
        await lines.modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, request_id="sub")
        await lines.until(2)
        yard.provider.listed.pop()
        await yard.app.supervisor.refresh("kit")
        changed = (await lines.until(4))[2:]
        assert sorted("_meta" in message.get("params", {}) for message in changed) == [False, True]
        assert {message["method"] for message in changed} == {"notifications/tools/list_changed"}


async def test_a_client_that_closes_gets_its_last_answers_and_its_calls_are_recorded(yard: Yard) -> None:
    async with connected(yard) as lines:
        await lines.modern("tools/call", {"name": "kit_slow_action"}, request_id=1)
        await lines.modern("subscriptions/listen", {"notifications": {}}, request_id=2)
        await asyncio.wait_for(yard.slow.started.wait(), 5)
        yard.slow.release.set()
        await lines.close()
    assert {message["id"] for message in lines.said if "id" in message} == {1, 2}
    assert (await yard.app.calls.page(CallFilter())).items[0].state is CallState.COMPLETE


async def test_a_call_that_outlasts_its_client_is_cancelled(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.faces.mcp.stdio.GRACE", 0.05)
    async with connected(yard) as lines:
        await lines.modern("tools/call", {"name": "kit_slow_action"}, request_id=1)
        await asyncio.wait_for(yard.slow.started.wait(), 5)
    assert yard.slow.ended == "cancelled"
    assert (await yard.app.calls.page(CallFilter())).items[0].error_code == "cancelled"


async def test_an_unknown_server_is_refused_at_once(yard: Yard) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        await serve_stdio(yard.app, "nowhere")


def test_piped_input_is_answered_and_stray_output_stays_off_the_wire(tmp_path: Path) -> None:
    _, discover = modern("server/discover", request_id=1)
    _, call = modern("tools/call", {"name": "kit_chatty_action"}, request_id=2)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.faces.mcp.stdio_yard", str(tmp_path)],
        input=discover + b"\n" + call + b"\n",
        capture_output=True,
        timeout=30,
        cwd=ROOT,
        check=True,
    )
    answers = {message["id"]: message["result"] for message in map(orjson.loads, ended.stdout.splitlines())}
    assert answers[1]["supportedVersions"] == [MODERN]
    assert answers[2]["content"] == [{"type": "text", "text": "quiet"}]
    assert b"stray words" in ended.stderr
    assert b"and some from below" in ended.stderr
