"""Cold start, idle memory and installed size, beside a bare uvicorn in the same run.

    python -m benchmarks.coldstart [--json out.json] [--rounds 7] [--idle 10]

A start is timed from the spawn of the process to the first answered request: for Toolyard `toolyard serve --demo` on an
empty folder and one MCP `tools/call`, for the baseline a uvicorn (uvloop, httptools) that answers one GET. They take
turns. Byte code is compiled before, as an installed package has it. Installed size is that of the files of all runtime
dependencies, without extras and without byte code.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import psutil

GOALS = {"first_call_s": 1.5, "idle_mb": 120, "installed_mb": 200}
MB = 1_000_000

BARE = """
import asyncio, uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
async def main():
    config = uvicorn.Config(app, port=0, log_level="warning", lifespan="off", loop="uvloop", http="httptools")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.001)
    port = server.servers[0].sockets[0].getsockname()[1]
    print(f"ready at http://127.0.0.1:{port}", flush=True)
    await task
import uvloop
uvloop.run(main())
"""


@dataclass(frozen=True)
class Start:
    ready_s: float
    first_answer_s: float
    cpu_s: float


@dataclass(frozen=True)
class Idle:
    process_mb: float
    with_children_mb: float
    cpu_percent: float


def mcp_call(url: str) -> urllib.request.Request:
    name = "functions_text_statistics_action"
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "coldstart", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": {"text": "hello"}, "_meta": meta}
    return urllib.request.Request(
        f"{url}/mcp",
        data=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode(),
        headers={
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": name,
        },
    )


def bare_get(url: str) -> urllib.request.Request:
    return urllib.request.Request(url)


def started(
    command: list[str], request: Callable[[str], urllib.request.Request], env: Mapping[str, str], idle: float | None
) -> tuple[Start, Idle | None]:
    """Start once in an empty folder; look at memory after `idle` seconds, if asked."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert process.stdout is not None
            url = next(match[1] for line in process.stdout if (match := re.search(r"ready at (http://\S+)", line)))
            ready = time.perf_counter() - begun
            with urllib.request.urlopen(request(url), timeout=10) as answer:
                assert answer.status == 200
                assert b'"isError":true' not in answer.read()
            answered = time.perf_counter() - begun
            times = psutil.Process(process.pid).cpu_times()
            start = Start(ready, answered, times.user + times.system)
            return start, None if idle is None else idling(process.pid, idle)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=15)


def idling(pid: int, seconds: float) -> Idle:
    process = psutil.Process(pid)
    process.cpu_percent()
    time.sleep(seconds)
    own = process.memory_info().rss
    children = sum(child.memory_info().rss for child in process.children(recursive=True))
    return Idle(own / MB, (own + children) / MB, process.cpu_percent())


def installed() -> dict[str, float]:
    """Megabytes of each runtime dependency, and of Toolyard's own files."""
    sizes: dict[str, float] = {}
    waiting = ["toolyard"]
    while waiting:
        name = waiting.pop()
        if name in sizes:
            continue
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        sizes[name] = size_of(found) / MB
        waiting += [wanted for text in found.requires or [] if (wanted := wanted_name(text, name))]
    source = Path(__file__).parents[1] / "src" / "toolyard"
    files = [file for file in source.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    sizes["toolyard"] = sum(file.stat().st_size for file in files) / MB
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def wanted_name(requirement: str, owner: str) -> str | None:
    """The name of a dependency that a plain install brings; `psycopg[binary]` is how ours asks for it."""
    text, _, marker = requirement.partition(";")
    if "extra ==" in marker and not (owner == "psycopg" and '"binary"' in marker.replace("'", '"')):
        return None
    if any(word in marker for word in ("win32", "Windows", "emscripten", "PyPy", "< '3.11'", '< "3.11"')):
        return None
    match = re.match(r"[A-Za-z0-9._-]+", text.strip())
    return match[0].lower().replace("_", "-") if match else None


def size_of(found: Distribution) -> int:
    paths = [Path(str(file.locate())) for file in found.files or [] if "__pycache__" not in str(file)]
    return sum(path.stat().st_size for path in paths if path.is_file())


def summary(starts: list[Start]) -> dict[str, float]:
    return {
        "ready_s": statistics.median(start.ready_s for start in starts),
        "first_answer_s": statistics.median(start.first_answer_s for start in starts),
        "fastest_s": min(start.first_answer_s for start in starts),
        "slowest_s": max(start.first_answer_s for start in starts),
        "cpu_s": statistics.median(start.cpu_s for start in starts),
    }


def measure(rounds: int, idle: float) -> dict[str, Any]:
    toolyard = [str(Path(sys.executable).with_name("toolyard")), "serve", "--demo", "--port", "0"]
    bare = [sys.executable, "-c", BARE]
    with tempfile.TemporaryDirectory() as bytecode:
        unset = ("PYTHONDONTWRITEBYTECODE", "TOOLYARD_DATA_DIR", "TOOLYARD_DATABASE", "TOOLYARD_KEY")
        env = {name: value for name, value in os.environ.items() if name not in unset}
        env["PYTHONPYCACHEPREFIX"] = bytecode
        for command, request in ((toolyard, mcp_call), (bare, bare_get)):
            started(command, request, env, None)
        ours: list[Start] = []
        theirs: list[Start] = []
        for _ in range(rounds):
            ours.append(started(toolyard, mcp_call, env, None)[0])
            theirs.append(started(bare, bare_get, env, None)[0])
        _, our_idle = started(toolyard, mcp_call, env, idle)
        _, bare_idle = started(bare, bare_get, env, idle)
    assert our_idle is not None
    assert bare_idle is not None
    sizes = installed()
    results: dict[str, Any] = {
        "toolyard": {**summary(ours), **asdict(our_idle)},
        "bare_uvicorn": {**summary(theirs), **asdict(bare_idle)},
        "installed_mb": {
            "total": sum(sizes.values()),
            "packages": len(sizes),
            "largest": dict(list(sizes.items())[:12]),
        },
    }
    results["ratio_to_bare"] = {
        key: results["toolyard"][key] / results["bare_uvicorn"][key] for key in ("first_answer_s", "process_mb")
    }
    return results


def show(results: Mapping[str, Any]) -> None:
    ours, bare, ratio = results["toolyard"], results["bare_uvicorn"], results["ratio_to_bare"]
    size = results["installed_mb"]
    print(f"{'':34}{'Toolyard':>10}{'uvicorn':>10}{'ratio':>8}{'goal':>8}")
    rows = (
        ("spawn to first answer, median s", "first_answer_s", GOALS["first_call_s"], ratio["first_answer_s"], 2),
        ("  fastest", "fastest_s", None, None, 2),
        ("  slowest", "slowest_s", None, None, 2),
        ("  CPU s", "cpu_s", None, None, 2),
        ("idle memory of the process, MB", "process_mb", GOALS["idle_mb"], ratio["process_mb"], 0),
        ("  with its children", "with_children_mb", None, None, 0),
        ("idle CPU, %", "cpu_percent", None, None, 1),
    )
    for label, key, goal, times, digits in rows:
        told = f"{times:.1f}" if times is not None else ""
        print(f"{label:34}{ours[key]:>10.{digits}f}{bare[key]:>10.{digits}f}{told:>8}{goal or '':>8}")
    print(
        f"{'installed, MB':34}{size['total']:>10.0f}{'':18}{GOALS['installed_mb']:>8}   ({size['packages']} packages)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--idle", type=float, default=10, help="seconds before memory is read")
    parser.add_argument("--json", type=Path, help="write the figures")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    results = measure(options.rounds, options.idle)
    show(results)
    if options.json:
        setting = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            "load_before": round(load_before, 2),
            "rounds": options.rounds,
            "idle_s": options.idle,
        }
        report = {"benchmark": "coldstart", "setting": setting, "goals": GOALS, "results": results}
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
