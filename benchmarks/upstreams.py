"""What a call to an MCP server over HTTP costs this process: CPU per call, ours beside the SDK's client.

`python -m benchmarks.upstreams [--seconds 2] [--json FILE]`

The upstream is a raw ASGI echo in a process of its own; all clients run in this one, on uvloop, one after the other.
`egress` is a bare POST of the same bytes: what HTTP alone costs here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
import uvloop

from toolyard.core.principal import LOCAL_OPERATOR
from toolyard.egress import Egress
from toolyard.providers.base import Invocation
from toolyard.providers.mcp import McpHttpProvider

ECHO = {"name": "echo", "description": "Echoes.", "inputSchema": {"type": "object"}}
CACHING = {"ttlMs": 0, "cacheScope": "public"}
ARGUMENTS = {"message": "hello", "n": 1}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Row:
    client: str
    callers: int
    calls: int
    cpu_us: float
    p50_us: float
    calls_per_second: float


async def upstream(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    """The echo server: just enough MCP, both eras, no checks."""
    if scope["type"] != "http":
        return
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            break
    message = orjson.loads(body) if body else {}
    answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": _result(message)}
    status = 200 if "id" in message else 405 if not message else 202
    content = orjson.dumps(answer) if status == 200 else b""
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _result(message: dict[str, Any]) -> dict[str, Any]:
    match message.get("method"):
        case "server/discover":
            extra = {"supportedVersions": ["2026-07-28"], "serverInfo": {"name": "echo", "version": "1"}}
            return {
                "resultType": "complete",
                "capabilities": {"tools": {}},
                "ttlMs": 0,
                "cacheScope": "public",
                **extra,
            }
        case "initialize":
            server = {"name": "echo", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"resultType": "complete", "tools": [ECHO], **CACHING}
        case _:
            text = {"type": "text", "text": str(message.get("params", {}).get("arguments"))}
            return {"resultType": "complete", "content": [text]}


async def measure(client: str, callers: int, seconds: float, call: Callable[[], Awaitable[object]]) -> Row:
    for _ in range(50):
        await call()
    times: list[float] = []
    deadline = time.perf_counter() + seconds

    async def caller() -> None:
        while (began := time.perf_counter()) < deadline:
            await call()
            times.append(time.perf_counter() - began)

    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - began
    times.sort()
    n = len(times)
    return Row(client, callers, n, round(cpu / n * 1e6, 1), round(times[n // 2] * 1e6, 1), round(n / wall))


async def run(url: str, seconds: float) -> list[Row]:
    rows: list[Row] = []
    egress = Egress()
    params = {"name": "echo", "arguments": ARGUMENTS, "_meta": META}
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "echo",
    }
    for callers in (1, 32):
        bare = lambda: egress.request("POST", url, headers=headers, body=body)  # noqa: E731
        rows.append(await measure("egress", callers, seconds, bare))
        for era in ("modern", "legacy"):
            provider = McpHttpProvider("bench", url, egress=egress, era=era)
            await provider.start()
            (tool,) = await provider.tools()
            invocation = Invocation("call", tool, ARGUMENTS, LOCAL_OPERATOR, 30)
            ours = lambda provider=provider, invocation=invocation: provider.call(invocation)  # noqa: E731
            rows.append(await measure(f"toolyard {era}", callers, seconds, ours))
            await provider.close()
        rows += [await _sdk(url, callers, seconds, mode) for mode in ("2026-07-28", "legacy")]
    await egress.close()
    return rows


async def _sdk(url: str, callers: int, seconds: float, mode: str) -> Row:
    import mcp

    async with mcp.Client(url, mode=mode, cache=None) as client:
        await client.list_tools()
        return await measure(f"mcp.Client {mode}", callers, seconds, lambda: client.call_tool("echo", ARGUMENTS))


def table(rows: list[Row]) -> str:
    lines = [f"{'client':22}{'callers':>8}{'CPU us/call':>13}{'p50 us':>9}{'calls/s':>9}{'ratio':>7}"]
    for row in rows:
        ours = next(r.cpu_us for r in rows if r.client == "toolyard modern" and r.callers == row.callers)
        lines.append(
            f"{row.client:22}{row.callers:>8}{row.cpu_us:>13}{row.p50_us:>9}{row.calls_per_second:>9.0f}"
            f"{row.cpu_us / ours:>7.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    serve = (
        "import socket, uvicorn; from benchmarks.upstreams import upstream;"
        "s = socket.socket(proto=socket.IPPROTO_TCP);"
        "s.bind(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True);"
        "uvicorn.Server(uvicorn.Config(upstream, log_level='error', lifespan='off')).run(sockets=[s])"
    )
    server = subprocess.Popen([sys.executable, "-c", serve], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        rows = uvloop.run(run(f"http://127.0.0.1:{port}/mcp", options.seconds))
    finally:
        server.terminate()
        server.wait(10)
    print(table(rows))
    if options.json:
        setting = {"python": platform.python_version(), "machine": platform.machine(), "seconds": options.seconds}
        options.json.write_text(json.dumps({"setting": setting, "rows": [asdict(row) for row in rows]}, indent=2))


if __name__ == "__main__":
    main()
