"""`toolyard serve` and `toolyard mcp` as real processes."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import orjson
import psutil

from tests.faces.cli.conftest import Command
from tests.faces.cli.yard import RunningYard
from tests.requirements import requirement
from toolyard.egress import Egress

COMMAND = Path(sys.executable).with_name("toolyard")
READY = re.compile(r"Toolyard is ready at (http://\S+)  \((\d+) tools\)")


@dataclass
class Served:
    process: subprocess.Popen[str]
    url: str
    welcome: str

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Its exit code and what it still said; nothing that it started is left."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(number)
        rest, errors = self.process.communicate(timeout=10)
        _, alive = psutil.wait_procs(children, timeout=5)
        assert alive == []
        return self.process.returncode, rest + errors


@contextmanager
def served(*arguments: str, cwd: Path, preexec_fn: Callable[[], None] | None = None) -> Iterator[Served]:
    """A yard that has said that it is ready."""
    process = subprocess.Popen(
        [COMMAND, "serve", "--port", "0", *arguments],
        cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env(),
        preexec_fn=preexec_fn,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Ctrl-C"):
                break
        said = "".join(lines)
        ready = READY.search(said)
        assert ready is not None, said + process.communicate(timeout=10)[1]
        yield Served(process, ready[1], said)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def clean_env() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TOOLYARD_")}


async def mcp(url: str, method: str, params: dict[str, Any], *, server: str = "default") -> Any:
    """One modern request."""
    egress = Egress()
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    try:
        answer = await egress.request("POST", f"{url}/mcp/{server}", headers=headers, body=orjson.dumps(body))
    finally:
        await egress.close()
    assert answer.status == 200, answer.body
    return orjson.loads(answer.body)["result"]


@requirement("setup.two-commands")
@requirement("cli.everyday")
async def test_the_demo_answers_calls_says_what_to_do_first_and_ends_cleanly(tmp_path: Path, bare: Command) -> None:
    with served("--demo", cwd=tmp_path) as yard:
        listed = await mcp(yard.url, "tools/list", {})
        called = await mcp(yard.url, "tools/call", {"name": "petshop_listPets_action", "arguments": {"kind": "cat"}})
        noted = await mcp(yard.url, "tools/call", {"name": "notes_add_action", "arguments": {"text": "hello"}})
        first = re.search(r"Or in another terminal: toolyard (.*)", yard.welcome)
        assert first is not None
        typed = await anyio.to_thread.run_sync(lambda: bare(*first[1].split(), "--url", yard.url))
        code, said = yard.stop()

    names = {tool["name"] for tool in listed["tools"]}
    assert {"petshop_getPet_action", "notes_search_action", "functions_countdown_action"} <= names
    assert [pet["name"] for pet in called["structuredContent"]["pets"]] == ["Miso", "Luna"]
    assert noted["structuredContent"] == {"id": 1, "text": "hello", "tags": []}
    assert orjson.loads(typed.out) == called["structuredContent"]
    assert f"Console   {yard.url}/" in yard.welcome
    assert "First: open" in yard.welcome
    assert (code, said) == (0, "Stopping ...\n")
    assert (tmp_path / ".toolyard" / "toolyard.db").exists()


async def test_what_the_demo_recorded_is_there_after_a_restart(tmp_path: Path, bare: Command) -> None:
    with served("--demo", cwd=tmp_path) as yard:
        await mcp(yard.url, "tools/call", {"name": "notes_add_action", "arguments": {"text": "kept"}})
        assert yard.stop(signal.SIGTERM)[0] == 0
    with served("--demo", cwd=tmp_path) as yard:
        found = await mcp(yard.url, "tools/call", {"name": "notes_search_action", "arguments": {"query": "kept"}})
        calls = await anyio.to_thread.run_sync(lambda: bare("calls", "list", "--url", yard.url, "--json"))

    assert [note["text"] for note in found["structuredContent"]["notes"]] == ["kept"]
    assert [call["tool"] for call in calls.json] == ["notes:search", "notes:add"]


async def test_ctrl_c_ends_open_streams_and_running_calls_within_seconds(tmp_path: Path, bare: Command) -> None:
    egress = Egress()
    body = orjson.dumps({"arguments": {"seconds": 25}})
    with served("--demo", cwd=tmp_path) as yard:
        try:
            started = await egress.request(
                "POST", f"{yard.url}/v1/tools/petshop:visitTheVet/call?wait=0",
                headers={"Content-Type": "application/json"}, body=body,
            )  # fmt: skip
            async with egress.stream("GET", f"{yard.url}/v1/events") as events:
                assert (started.status, events.status) == (202, 200)
                begun = time.monotonic()
                code, said = await anyio.to_thread.run_sync(yard.stop)
                took = time.monotonic() - begun
        finally:
            await egress.close()
    with served("--demo", cwd=tmp_path) as yard:
        call = orjson.loads(started.body)["id"]
        record = (await anyio.to_thread.run_sync(lambda: bare("calls", "show", call, "--url", yard.url, "--json"))).json

    assert code == 0
    assert took < 8
    assert "graceful shutdown exceeded" not in said  # the stream was ended, not waited for and cut
    assert record["state"] == "ERROR"
    assert record["error_code"] in ("interrupted", "cancelled")


async def test_the_yard_takes_as_many_files_as_it_may_have(tmp_path: Path) -> None:
    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2048))

    with served("--demo", cwd=tmp_path, preexec_fn=few_files) as yard:
        assert psutil.Process(yard.process.pid).rlimit(psutil.RLIMIT_NOFILE) == (2048, 2048)


@requirement("cli.everyday")
async def test_a_second_yard_on_the_same_port_or_folder_is_refused(tmp_path: Path) -> None:
    with served(cwd=tmp_path) as yard:
        port = yard.url.rpartition(":")[2]
        same_port = await run("serve", "--port", port, "--data-dir", "elsewhere", cwd=tmp_path)
        same_folder = await run("serve", "--port", "0", cwd=tmp_path)
        assert "log in with this link" in yard.welcome
        yard.stop()

    assert same_port.returncode == 2
    assert same_port.stderr == (
        f"toolyard: Cannot listen on 127.0.0.1:{port}: address already in use. "
        "Stop what runs there, or choose another port with --port.\n"
    )
    assert same_folder.returncode == 1
    assert "in use by another Toolyard" in same_folder.stderr
    assert "Traceback" not in same_folder.stderr


@requirement("manifest.mcps")
async def test_a_required_provider_that_does_not_answer_ends_the_start(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        manifest = tmp_path / "m.yaml"
        manifest.write_text(f"agent_config: {{mcps: [{{id: crm, hostname: 'http://127.0.0.1', port: {port}}}]}}")
        ended = await run("serve", "m.yaml", "--port", "0", cwd=tmp_path)

    assert ended.returncode == 1
    assert "crm" in ended.stderr
    assert f"127.0.0.1:{port}" in ended.stderr
    assert "Traceback" not in ended.stderr


@requirement("manifest.top-level")
async def test_what_a_manifest_declares_is_served_and_what_is_not_served_yet_is_said(tmp_path: Path) -> None:
    (tmp_path / "my_tools.py").write_text(
        "import toolyard\n\n@toolyard.tool\ndef double(number: int) -> int:\n    return 2 * number\n"
    )
    (tmp_path / "m.yaml").write_text(
        "providers:\n"
        "  - {id: mine, kind: python, module: my_tools}\n"
        "  - {id: hooks, kind: webhook, tools: [{name: n, url: 'http://127.0.0.1:9'}]}\n"
        "servers: [{id: mine, tools: ['mine:*'], names: bare}]\n"
    )
    with served("m.yaml", "--demo", cwd=tmp_path) as yard:
        listed = await mcp(yard.url, "tools/list", {}, server="mine")
        called = await mcp(yard.url, "tools/call", {"name": "double", "arguments": {"number": 21}}, server="mine")

    assert [tool["name"] for tool in listed["tools"]] == ["double"]
    assert called["content"] == [{"type": "text", "text": "42"}]
    assert "hooks is kept, but webhook is not served yet." in yard.welcome


async def test_demo_mode_does_not_open_up_to_other_machines(tmp_path: Path) -> None:
    ended = await run("serve", "--demo", "--host", "0.0.0.0", "--port", "0", cwd=tmp_path)

    assert ended.returncode == 2
    assert "Demo mode is open to everybody who can reach it" in ended.stderr


async def test_mcp_over_stdio_answers_and_ends_with_its_input(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("providers: [{id: fn, kind: python, module: toolyard.demo.functions}]")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "fn_text_statistics_action", "arguments": {"text": "two words"}}
    process = subprocess.Popen(
        [COMMAND, "mcp", "m.yaml"], cwd=tmp_path, env=clean_env(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        greeted = ask(process, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        called = ask(process, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
        rest, errors = process.communicate(timeout=10)
    finally:
        process.kill()
        process.wait()

    assert greeted["result"]["serverInfo"]["name"] == "toolyard"
    assert called["result"]["structuredContent"]["words"] == 2
    assert (process.returncode, rest, errors) == (0, b"", b"")


def ask(process: subprocess.Popen[bytes], request: dict[str, Any]) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(orjson.dumps(request) + b"\n")
    process.stdin.flush()
    return orjson.loads(process.stdout.readline())


@requirement("cli.everyday")
def test_ctrl_c_cancels_the_call_and_not_only_the_command(toolyard: Command, demo_yard: RunningYard) -> None:
    command = [COMMAND, "call", "functions:countdown", "-a", "seconds=30", "--url", demo_yard.url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_env())
    running = ["calls", "list", "--tool", "functions:countdown", "--state", "PROCESSING", "--json"]
    try:
        deadline = time.monotonic() + 15
        while not (found := toolyard(*running).json):
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    finally:
        process.kill()
        process.wait()

    record = toolyard("calls", "show", found[0]["id"], "--json").json
    assert (process.returncode, out, err) == (130, "", f"Cancelled {found[0]['id']}.\n")
    assert (record["state"], record["error_code"]) == ("ERROR", "cancelled")


async def test_an_unknown_server_over_stdio_is_refused(tmp_path: Path) -> None:
    ended = await run("mcp", "--server", "nope", cwd=tmp_path)

    assert ended.returncode == 3
    assert ended.stderr.startswith("toolyard: There is no server 'nope'.")


async def run(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    def start() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments], cwd=cwd, input=stdin, env=clean_env(),
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip

    return await anyio.to_thread.run_sync(start)
