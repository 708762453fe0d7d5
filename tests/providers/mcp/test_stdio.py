"""MCP servers as child processes: both eras, stderr, trouble, and the way back."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
import structlog.testing

from tests.providers.fakes import Recorder, invocation
from tests.providers.mcp.connecting import connected
from tests.providers.mcp.servers import sdk_server
from tests.requirements import requirement
from toolyard.core.call import Progress, ToolResult
from toolyard.core.errors import BadInput, CallError, ErrorCode, ProviderError, Unreachable
from toolyard.providers.mcp import McpStdioProvider
from toolyard.providers.supervisor import ProviderState

SERVERS = Path(__file__).parent / "servers"
ROOT = Path(__file__).parents[3]


def scripted(*behaviours: str, **options: object) -> McpStdioProvider:
    command = [sys.executable, "-I", str(SERVERS / "stdio_server.py"), *behaviours]
    return McpStdioProvider("up", command, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("behaviours", "era"),
    [
        (["modern"], "modern"),
        ([], "modern"),
        (["legacy"], "legacy"),
        (["mute-probe"], "legacy"),
        (["legacy", "noisy"], "legacy"),
    ],
)
async def test_the_era_is_found_out_and_calls_work(behaviours: list[str], era: str) -> None:
    seen: list[Progress] = []
    limit = 0.3 if "mute-probe" in behaviours else 10
    async with connected(scripted(*behaviours, probe_limit=limit)) as up:
        assert up.provider.era == era
        await up.provider.health()
        assert await up.call("echo", {"a": ["ü", None]}) == ToolResult.of_text('{"a": ["ü", null]}')
        assert await up.call("progress", progress=seen.append) == ToolResult.of_text("ok")
        assert seen == [Progress(1, 2, "half")]
        results = await asyncio.gather(*(up.call("echo", {"n": n}) for n in range(100)))
        assert [json.loads(result.text)["n"] for result in results] == list(range(100))


async def test_a_modern_server_that_starts_too_slowly_for_the_probe_is_found_out_all_the_same() -> None:
    async with connected(scripted("modern", "slow-start", probe_limit=0.5)) as up:
        assert up.provider.era == "modern"
        assert (await up.call("echo")).text == "{}"


@requirement("provider.verbatim")
async def test_the_sdks_server_over_stdio_passes_everything_through() -> None:
    command = [sys.executable, "-m", "tests.providers.mcp.servers.sdk_server"]
    async with connected(McpStdioProvider("up", command, cwd=str(ROOT), probe_limit=20)) as up:
        assert up.provider.era == "modern"
        assert [tool.wire for tool in up.tools.values()] == sdk_server.Behaviours().definitions()
        result = await up.call("rich")
        assert result.content == tuple(sdk_server.RICH_RESULT["content"])
        assert result.structured == sdk_server.RICH_RESULT["structuredContent"]
        seen: list[Progress] = []
        await up.call("progress", progress=seen.append)
        assert [report.message for report in seen] == ["step 1", "step 2", "step 3"]
        async with asyncio.timeout(10):
            with pytest.raises(CallError):
                await up.call("ask")


@requirement("provider.refresh")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_changed_list_is_published(era: str) -> None:
    recorder = Recorder()
    provider = scripted(era)
    await recorder.supervisor.add_and_start(provider, required=True)
    tools = {tool.name: tool for tool in await provider.tools()}
    await recorder.supervisor.call(invocation(tools["change"]))
    await recorder.until(lambda: len(recorder.published) == 2)
    assert recorder.published[1][1][-1] == "extra0"
    await recorder.supervisor.close()


async def test_stderr_goes_to_the_log_line_by_line_with_the_providers_id() -> None:
    with structlog.testing.capture_logs() as logs:
        async with connected(scripted()) as up:
            await up.call("stderr")
    lines = [(entry["provider"], entry["line"]) for entry in logs if entry["event"] == "stderr"]
    assert lines == [("up", "one"), ("up", "two \ufffd"), ("up", "y" * 4096)]


async def test_the_server_sees_what_it_was_given_and_none_of_our_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_SECRET", "hidden")
    async with connected(scripted(env={"TOKEN": "given"}, cwd="/")) as up:
        seen = json.loads((await up.call("env")).text)
    assert seen["TOKEN"] == "given"
    assert seen["PATH"] == os.environ["PATH"]
    assert "OUR_SECRET" not in seen


async def test_cancelling_tells_the_server() -> None:
    with structlog.testing.capture_logs() as logs:
        async with connected(scripted()) as up:
            task = asyncio.create_task(up.call("hang"))
            await up.provider.health()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await up.call("echo")).text == "{}"
    assert any(entry.get("line", "").startswith("cancelled ") for entry in logs)


@requirement("provider.reconnect")
async def test_a_crash_fails_the_calls_that_ran_and_the_server_is_started_again() -> None:
    recorder = Recorder()
    provider = scripted()
    await recorder.supervisor.add_and_start(provider, required=True)
    tools = {tool.name: tool for tool in await provider.tools()}
    first = provider.pid
    hanging = asyncio.create_task(recorder.supervisor.call(invocation(tools["hang"])))
    await provider.health()
    with pytest.raises(Unreachable) as caught:
        await recorder.supervisor.call(invocation(tools["die"]))
    assert caught.value.message == (
        "The MCP server is gone. It ended with status 3. Its last words: I am dying "
        "The outcome is unknown: 'die' may have taken effect."
    )
    with pytest.raises(Unreachable):
        await hanging
    await recorder.until(lambda: provider.pid not in (first, None))
    await recorder.until_state("up", ProviderState.UP)
    assert (await recorder.supervisor.call(invocation(tools["echo"]))).text == "{}"
    states = [event.state for event in recorder.events]
    assert ProviderState.DOWN in states
    await recorder.supervisor.close()


async def test_a_line_without_end_is_refused_and_ends_the_server() -> None:
    async with connected(scripted()) as up, asyncio.timeout(20):
        with pytest.raises(CallError) as caught:
            await up.call("long")
    assert caught.value.code is ErrorCode.UPSTREAM
    assert "a line longer than 10 MiB" in caught.value.message


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["/nowhere/at-all"], r"ended with status 127\. Its last words: /nowhere/at-all: command not found"),
        (["/etc/passwd"], r"ended with status 126\. Its last words: /etc/passwd: Permission denied"),
        (["sh", "-c", "exec 0<&-; sleep 0.2; echo deaf >&2; exit 4"], r"status 4\. Its last words: deaf"),
        ([sys.executable, "-c", "raise SystemExit('no key given')"], r"status 1\. Its last words: no key given"),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], r"ended by SIGKILL"),
        ([sys.executable, "-c", "import os, sys; os.close(1); sys.stdin.read()"], r"closed its stdout"),
    ],
)
async def test_a_server_that_does_not_come_up_says_why(command: list[str], says: str) -> None:
    async with asyncio.timeout(20):
        with pytest.raises(ProviderError, match=says):
            async with connected(McpStdioProvider("up", command)):
                pass


async def test_a_folder_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ProviderError, match="cannot be started"):
        async with connected(scripted(cwd="/no/such/folder")):
            pass


def test_the_command_is_shown_without_what_looks_secret() -> None:
    command = ["npx", "-y", "a server", "--api-key", "k1", "--token=k2", "https://u:p@h.example/x", "--port", "80"]
    shown = McpStdioProvider("up", command).address
    assert shown == "npx -y 'a server' --api-key ... --token=... https://h.example/x --port 80"
    with pytest.raises(BadInput):
        McpStdioProvider("up", [])
