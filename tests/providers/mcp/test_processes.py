"""No stdio server outlives us, whatever it does and however we end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import structlog.testing

from tests.providers.mcp.connecting import connected
from tests.providers.mcp.test_stdio import scripted
from tests.requirements import requirement

ROOT = Path(__file__).parents[3]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def until_gone(pids: list[int], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while any(alive(pid) for pid in pids):
            await asyncio.sleep(0.01)


async def brood_of(logs: list[structlog.typing.EventDict]) -> list[int]:
    async with asyncio.timeout(10):
        while not (found := [entry["line"] for entry in logs if str(entry.get("line")).startswith("brood ")]):
            await asyncio.sleep(0.01)
    return [int(pid) for pid in found[0].split()[1:]]


@linux_only
async def test_closing_ends_a_deaf_server_and_all_that_it_started_in_bounded_time() -> None:
    with structlog.testing.capture_logs() as logs:
        async with connected(scripted("deaf", "brood")):
            pids = await brood_of(logs)
            assert [alive(pid) for pid in pids] == [True] * 3
            began = time.monotonic()
        assert time.monotonic() - began < 6
    await until_gone(pids, 1)


@linux_only
async def test_a_server_that_dies_leaves_no_children_behind() -> None:
    with structlog.testing.capture_logs() as logs:
        async with connected(scripted("brood")):
            pids = await brood_of(logs)
            os.kill(pids[-1], signal.SIGKILL)
            await until_gone(pids)


@linux_only
@requirement("provider.boot")
async def test_kill_minus_9_of_us_leaves_no_server_and_no_child_of_it() -> None:
    code = (
        "import asyncio\n"
        "from tests.providers.mcp.connecting import connected\n"
        "from tests.providers.mcp.test_stdio import scripted\n"
        "async def main():\n"
        "    async with connected(scripted('deaf', 'brood')) as up:\n"
        "        print('guard', up.provider.pid, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        pids: list[int] = []
        guard = 0
        while not (pids and guard):
            line = process.stdout.readline()
            assert line, "the process ended early"
            if "brood " in line:
                pids = [int(word) for word in line.partition("brood ")[2].replace("'", " ").split()[:3]]
            elif line.startswith("guard"):
                guard = int(line.split()[1])
        assert [alive(pid) for pid in (*pids, guard)] == [True] * 4
        process.kill()
        process.wait(5)
        await until_gone([*pids, guard])
    finally:
        process.kill()
        process.wait(5)
        assert process.stdout is not None
        process.stdout.close()


@linux_only
async def test_a_start_that_is_cancelled_leaves_no_process() -> None:
    provider = scripted("mute-probe", probe_limit=60)
    before = set(children())
    starting = asyncio.create_task(provider.start())
    async with asyncio.timeout(5):
        while not (begun := set(children()) - before):
            await asyncio.sleep(0.01)
    starting.cancel()
    await asyncio.wait([starting])
    await until_gone(list(begun))


def children() -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in listed.stdout.split()]
