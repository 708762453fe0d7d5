"""What one Toolyard process adds to an MCP `tools/call`: governed, audited, over HTTP to an HTTP upstream.

    python -m benchmarks.gateway [--json out.json] [--seconds 6] [--tools 10,10000] [--database LOCATION]

The gateway is `toolyard serve` with a key, pinned to one CPU; the upstream (raw ASGI echo) and wrk share the other. The
direct upstream is measured before each gateway row, and ratios are taken within that pair. The echo tool declares no
annotations, so each call is two durable writes: PROCESSING before it runs, COMPLETE before it is answered.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.wrk import Load, cpu_seconds, drive, resident_mb

GATEWAY_CPU, LOAD_CPU = 0, 1
TOOL = "up_echo_action"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True, slots=True)
class Row:
    """One point. Times in milliseconds, CPU in microseconds of the gateway's process per call."""

    era: str
    tools: int
    callers: int
    rate: float
    p50_ms: float
    p99_ms: float
    direct_rate: float
    direct_p50_ms: float
    added_p50_ms: float
    cpu_us: float
    rate_per_core: float
    resident_mb: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--tools", default="10,10000")
    parser.add_argument("--callers", default="1,32")
    parser.add_argument("--eras", default="modern,legacy")
    parser.add_argument("--database", default="")
    options = parser.parse_args()
    rows: list[Row] = []
    for count in (int(part) for part in options.tools.split(",")):
        with (
            tempfile.TemporaryDirectory() as folder,
            upstream(count) as up,
            gateway(Path(folder), up, options.database) as (process, url, key),
        ):
            for era in options.eras.split(","):
                for callers in (int(part) for part in options.callers.split(",")):
                    row = measure(
                        process.pid, url, up, key, era=era, tools=count, callers=callers, seconds=options.seconds
                    )
                    rows.append(row)
                    print(line(row), flush=True)
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps({"rows": [asdict(row) for row in rows]}, indent=2) + "\n")
    return 0


def measure(pid: int, url: str, up: str, key: str, *, era: str, tools: int, callers: int, seconds: float) -> Row:
    authorization = {"authorization": f"Bearer {key}"}
    direct = load(up, {}, era, "echo", callers=callers, seconds=seconds / 2)
    headers = {**authorization, **(session(url, authorization) if era == "legacy" else {})}
    load(url, headers, era, TOOL, callers=callers, seconds=1)
    before = cpu_seconds(pid)
    through = load(url, headers, era, TOOL, callers=callers, seconds=seconds)
    cpu = cpu_seconds(pid) - before
    return Row(
        era=era,
        tools=tools,
        callers=callers,
        rate=round(through.rate, 1),
        p50_ms=through.p50_ms,
        p99_ms=through.p99_ms,
        direct_rate=round(direct.rate, 1),
        direct_p50_ms=direct.p50_ms,
        added_p50_ms=round(through.p50_ms - direct.p50_ms, 3),
        cpu_us=round(cpu / through.calls * 1e6, 1),
        rate_per_core=round(through.calls / cpu, 1),
        resident_mb=round(resident_mb(pid), 1),
    )


def load(url: str, headers: dict[str, str], era: str, tool: str, *, callers: int, seconds: float) -> Load:
    params: dict[str, Any] = {"name": tool, "arguments": {"text": "hello world"}}
    sent = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    if era == "modern":
        params["_meta"] = META
        sent |= {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return drive(url, sent, body, callers=callers, seconds=seconds, marker="hello world", cpu=LOAD_CPU)


def session(url: str, headers: dict[str, str]) -> dict[str, str]:
    """Headers of a new legacy session."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    accept = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    given = post(url, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, {**accept, **headers})
    made = {"mcp-session-id": given["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    post(url, {"jsonrpc": "2.0", "method": "notifications/initialized"}, {**accept, **headers, **made})
    return made


def post(url: str, body: object, headers: dict[str, str]) -> dict[str, str]:
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        answer.read()
        return {name.lower(): value for name, value in answer.headers.items()}


@contextmanager
def upstream(tools: int) -> Iterator[str]:
    port = free_port()
    arguments = ["benchmarks.echo_upstream:app", "--port", str(port), "--loop", "uvloop", "--http", "httptools"]
    command = [sys.executable, "-m", "uvicorn", *arguments, "--no-access-log", "--log-level", "warning"]
    with running(command, LOAD_CPU, {"TOOLS": str(tools)}):
        wait_for(port)
        yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def gateway(folder: Path, up: str, database: str) -> Iterator[tuple[subprocess.Popen[bytes], str, str]]:
    manifest = folder / "toolyard.yaml"
    manifest.write_text(f"providers:\n  - {{id: up, kind: mcp, url: '{up}', required: true}}\n")
    toolyard = str(Path(sys.executable).parent / "toolyard")
    data = folder / "data"
    data.mkdir()
    where = ["--data-dir", str(data), "--database", database or str(data / "toolyard.db")]
    made = subprocess.run(
        [toolyard, "keys", "create", "bench", "--json", *where[2:]], capture_output=True, text=True, check=True
    )
    port = free_port()
    command = [toolyard, "serve", str(manifest), "--port", str(port), *where]
    with running(command, GATEWAY_CPU, {}) as process:
        wait_for(port)
        yield process, f"http://127.0.0.1:{port}/mcp", json.loads(made.stdout)["key"]


@contextmanager
def running(command: list[str], cpu: int, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **env})
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, {cpu % (os.cpu_count() or 1)})
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
            if process.returncode not in (0, -15, 143):
                log.seek(0)
                print(log.read().decode(errors="replace")[-3000:], file=sys.stderr)


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"nothing listens on port {port}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def line(row: Row) -> str:
    return (
        f"{row.era:7} {row.tools:>6} tools {row.callers:>3} callers: {row.rate:>8.0f}/s  p50 {row.p50_ms:.2f} ms "
        f"(+{row.added_p50_ms:.2f})  p99 {row.p99_ms:.1f} ms  {row.cpu_us:.0f} us CPU/call"
    )


def table(rows: list[Row]) -> str:
    head = "| era | tools | callers | calls/s | added p50 ms | p99 ms | CPU us/call | calls/s/core | direct calls/s |"
    lines = [head, "|" + "---|" * 9]
    for row in rows:
        cells = (
            row.era,
            row.tools,
            row.callers,
            f"{row.rate:.0f}",
            f"{row.added_p50_ms:.2f}",
            f"{row.p99_ms:.1f}",
            f"{row.cpu_us:.0f}",
            f"{row.rate_per_core:.0f}",
            f"{row.direct_rate:.0f}",
        )
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
