"""What the MCP edge costs: CPU of the server's process per request, beside a bare ASGI echo in the same process.

    python -m benchmarks.edge [--json out.json] [--seconds 4]

One process (uvicorn, uvloop, httptools) serves a bare echo (parse the body, answer with JSON) and the real App: 500
tools, SQLite in a temporary folder. "no-op call" is a whole governed and audited call of a tool that does nothing;
"edge alone" is the same request with the call path replaced by a ready outcome. wrk drives 32 connections. "inside"
is the same without HTTP server and socket (a list of 500 tools is 200 kB, which the kernel copies each time).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import orjson

from benchmarks.wrk import cpu_seconds, drive
from toolyard.app import App, Settings
from toolyard.core.call import CallOutcome, CallRequest, CallState, ToolResult
from toolyard.core.principal import Principal
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Kind, Tool
from toolyard.faces.mcp import build
from toolyard.faces.mcp.face import FaceApp
from toolyard.providers.base import Invocation
from toolyard.serving import listening_socket, serving

CALLERS = 32
TOOLS = 500
BASE = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CALL = {"name": "bench_noop000_action", "arguments": {"text": "hi"}}


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
IN_PROCESS = 3000


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    rate: float
    cpu_us: float
    ratio_to_bare: float
    cpu_beyond_bare_us: float
    in_process_us: float
    """Without HTTP server and socket: what our own code costs."""


@dataclass(frozen=True, slots=True)
class Case:
    what: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    marker: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        import uvloop

        uvloop.run(serve())
        return 0
    rows = measure(options.seconds)
    print(f"{'what':<34}{'req/s':>9}{'CPU us':>9}{'x bare':>8}{'- bare':>8}{'inside':>8}")
    for row in rows:
        numbers = f"{row.ratio_to_bare:>8.2f}{row.cpu_beyond_bare_us:>8.1f}{row.in_process_us:>8.1f}"
        print(f"{row.what:<34}{row.rate:>9.0f}{row.cpu_us:>9.1f}{numbers}")
    if options.json:
        result = {"callers": CALLERS, "tools": TOOLS, "seconds": options.seconds, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(result, indent=1))
    return 0


def measure(seconds: float) -> list[Row]:
    command = [sys.executable, "-m", "benchmarks.edge", "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            url = f"http://127.0.0.1:{port}"
            rows: list[Row] = []
            bare = 0.0
            found = cases(url)
            inside = asyncio.run(in_process(found))
            for case in found:
                drive(url + case.path, case.headers, case.body, callers=CALLERS, seconds=0.5, marker=case.marker)
                before = cpu_seconds(server.pid)
                load = drive(
                    url + case.path, case.headers, case.body, callers=CALLERS, seconds=seconds, marker=case.marker
                )
                cpu = (cpu_seconds(server.pid) - before) / load.calls * 1e6
                bare = bare or cpu
                numbers = (round(cpu, 1), round(cpu / bare, 2), round(cpu - bare, 1), round(inside[case.what], 1))
                rows.append(Row(case.what, round(load.rate), *numbers))
            return rows
        finally:
            server.terminate()


def cases(url: str) -> list[Case]:
    session = begin_session(url)
    legacy = {**BASE, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
    listing, call = modern("tools/list"), modern("tools/call", CALL)
    last = '"isError":false'
    return [
        Case("bare ASGI echo", "/bare", BASE, call[1], '"result"'),
        Case(f"tools/list, {TOOLS} tools, modern", "/mcp", *listing, "noop499"),
        Case(f"tools/list, {TOOLS} tools, legacy", "/mcp", legacy, rpc("tools/list"), "noop499"),
        Case("tools/call, edge alone, modern", "/alone/mcp", *call, last),
        Case("tools/call, no-op call, modern", "/mcp", *call, last),
        Case("tools/call, no-op call, legacy", "/mcp", legacy, rpc("tools/call", CALL), last),
    ]


def modern(method: str, params: Mapping[str, Any] | None = None) -> tuple[dict[str, str], dict[str, Any]]:
    headers = {**BASE, "mcp-protocol-version": "2026-07-28", "mcp-method": method}
    if params is not None:
        headers["mcp-name"] = params["name"]
    return headers, rpc(method, {**(params or {}), "_meta": META})


def rpc(method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}


def begin_session(url: str) -> str:
    body = orjson.dumps(INITIALIZE)
    with urllib.request.urlopen(urllib.request.Request(url + "/mcp", body, BASE), timeout=10) as answer:
        return str(answer.headers["mcp-session-id"])


# -- the server's process


class Noop:
    """Five hundred read-only tools of the size that real ones have."""

    id, kind, address = "bench", Kind.PYTHON, "benchmarks"
    schema = Schema(
        {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What to say."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many at most."},
            },
            "additionalProperties": False,
        }
    )

    async def start(self) -> None: ...
    async def tools(self) -> Sequence[Tool]:
        hints = Annotations(read_only=True)
        text = "Does nothing, with a description as long as most are, so that a list of these weighs what lists weigh."
        return [Tool("bench", f"noop{n:03}", text, self.schema, annotations=hints) for n in range(TOOLS)]

    async def call(self, invocation: Invocation) -> ToolResult:
        return ToolResult.of_text("done")

    async def health(self) -> None: ...
    def on_change(self, notify: object) -> None: ...
    async def close(self) -> None: ...


class ReadyCalls:
    """In place of the call path: an outcome that was there before."""

    async def invoke(self, request: CallRequest) -> CallOutcome:
        return CallOutcome(request.call_id, request.tool, CallState.COMPLETE, ToolResult.of_text("done"))

    async def cancel(self, call_id: str, principal: Principal) -> bool:
        return False


class WithReadyCalls:
    """The app, with nothing behind its face."""

    def __init__(self, app: FaceApp) -> None:
        self.store, self.catalog, self.servers = app.store, app.catalog, app.servers
        self.gate, self.settings, self.on_server_change = app.gate, app.settings, app.on_server_change
        self.calls = ReadyCalls()


async def bare(scope: Any, receive: Any, send: Any) -> None:
    message = orjson.loads((await receive())["body"])
    body = orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"echo": message["params"]["arguments"]}})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def benched_app() -> AsyncGenerator[Callable[[Any, Any, Any], Awaitable[None]]]:
    """The bare echo, the real edge, and the edge with nothing behind it, told apart by path."""
    with tempfile.TemporaryDirectory() as folder:
        async with App.running(Settings(data_dir=Path(folder), demo=True)) as app:
            await app.supervisor.add_and_start(Noop())
            edge, alone = build(app), build(cast("FaceApp", WithReadyCalls(app)))

            async def route(scope: Any, receive: Any, send: Any) -> None:
                if scope["path"] == "/bare":
                    await bare(scope, receive, send)
                elif scope["path"] == "/alone/mcp":
                    await alone({**scope, "path": "/mcp"}, receive, send)
                else:
                    await edge(scope, receive, send)

            yield route


async def serve() -> None:
    async with benched_app() as app:
        bound = listening_socket("127.0.0.1", 0)
        async with serving(app, bound):
            print(bound.getsockname()[1], flush=True)
            await asyncio.Event().wait()


async def in_process(found: list[Case]) -> dict[str, float]:
    """CPU microseconds for each request, one after the other, into a sink."""
    spent: dict[str, float] = {}
    async with benched_app() as app:
        welcome = await ask(app, "/mcp", BASE, orjson.dumps(INITIALIZE))
        session = dict(welcome["headers"])[b"mcp-session-id"].decode()
        for case in found:
            headers = case.headers | ({"mcp-session-id": session} if "mcp-session-id" in case.headers else {})
            body = orjson.dumps(case.body)
            for _ in range(200):
                await ask(app, case.path, headers, body)
            began = time.process_time()
            for _ in range(IN_PROCESS):
                await ask(app, case.path, headers, body)
            spent[case.what] = (time.process_time() - began) / IN_PROCESS * 1e6
    return spent


async def ask(app: Any, path: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """One request straight into an ASGI application; gives the start of its answer."""
    raw = [(b"host", b"127.0.0.1:8420"), *((name.encode(), value.encode()) for name, value in headers.items())]
    scope = {"type": "http", "method": "POST", "path": path, "headers": raw, "client": ("127.0.0.1", 1)}
    started: dict[str, Any] = {}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            started.update(message)

    await app(scope, receive, send)
    assert started["status"] == 200
    return started


if __name__ == "__main__":
    sys.exit(main())
