"""What heartbeats cost: CPU of the server's process for single beats and for the batch endpoint, end to end.

    python -m benchmarks.heartbeats [--json out.json] [--seconds 4] [--calls 10000]

One process (uvicorn, uvloop, httptools) serves the real App on SQLite in a temporary folder, with `--calls` client
calls in flight, each taken up by a first beat; requests carry an API key. wrk drives 32 connections for the single
beat and the batches. "at 4 Hz" beats for every call four times a second through the batch endpoint, in real time: its
CPU includes the flush of beats to the database every two seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import orjson

from benchmarks.wrk import cpu_seconds, drive
from toolyard.app import App, Settings
from toolyard.core.call import CallRequest, Origin
from toolyard.core.principal import Scope
from toolyard.faces import asgi
from toolyard.serving import listening_socket, serving

CALLERS = 32
BATCH = 1000
HERTZ = 4
IN_PROCESS = 5000
BEAT = {"state": "PROCESSING", "heartbeat": 1_700_000_000_000}
TOOL = {"name": "work", "description": "Works for long.", "requestArgs": {"properties": {}}, "responseShape": {}}


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    requests_per_second: float
    beats_per_second: float
    cpu_us_per_beat: float
    beats_per_core_second: float
    percent_of_a_core: float | None = None
    """Only for the run in real time."""


@dataclass(frozen=True, slots=True)
class Yard:
    """What the server's process has prepared."""

    port: int
    key: str
    session: str
    requests: list[str]
    in_process_us: float

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}", "content-type": "application/json"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        import uvloop

        uvloop.run(serve(options.calls))
        return 0
    rows, inside = measure(options.seconds, options.calls)
    print(f"{'what':<38}{'req/s':>9}{'beats/s':>10}{'us/beat':>9}{'beats/s/core':>14}{'% core':>8}")
    for row in rows:
        share = "" if row.percent_of_a_core is None else f"{row.percent_of_a_core:.1f}"
        print(
            f"{row.what:<38}{row.requests_per_second:>9.0f}{row.beats_per_second:>10.0f}{row.cpu_us_per_beat:>9.2f}"
            f"{row.beats_per_core_second:>14.0f}{share:>8}"
        )
    print(f"a single beat without HTTP server and socket: {inside:.1f} us")
    if options.json:
        result = {
            "callers": CALLERS,
            "calls": options.calls,
            "seconds": options.seconds,
            "single_beat_inside_us": inside,
        }
        options.json.write_text(json.dumps({**result, "rows": [asdict(row) for row in rows]}, indent=1))
    return 0


def measure(seconds: float, calls: int) -> tuple[list[Row], float]:
    command = [sys.executable, "-m", "benchmarks.heartbeats", "--serve", "--calls", str(calls)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yard = Yard(**json.loads(server.stdout.readline()))
            beat = f"/v1/tools/request/{yard.session}/{yard.requests[0]}/heartbeat"
            pairs = [[yard.session, request] for request in yard.requests]
            how: Any = {"pid": server.pid, "seconds": seconds}
            rows = [
                loaded("bare ASGI, JSON in and out", yard, "/bare", BEAT, marker='"state"', **how),
                loaded("single beats", yard, beat, BEAT, marker='"PROCESSING"', **how),
            ]
            for size in (100, BATCH):
                batch = {"requests": pairs[:size]}
                what = f"batches of {size}"
                path = "/v1/tools/heartbeats"
                rows.append(loaded(what, yard, path, batch, marker='"gone":[]', beats=size, **how))
            rows.append(in_real_time(server.pid, yard, pairs, max(seconds, 8)))
            return rows, yard.in_process_us
        finally:
            server.terminate()


def loaded(
    what: str, yard: Yard, path: str, body: object, *, pid: int, marker: str, beats: int = 1, seconds: float
) -> Row:
    """As many requests as 32 connections can send; each holds `beats` beats."""
    drive(yard.url + path, yard.headers, body, callers=CALLERS, seconds=0.5, marker=marker)
    before = cpu_seconds(pid)
    load = drive(yard.url + path, yard.headers, body, callers=CALLERS, seconds=seconds, marker=marker)
    cpu = cpu_seconds(pid) - before
    each = cpu / (load.calls * beats)
    return Row(what, round(load.rate, 1), round(load.rate * beats), round(each * 1e6, 3), round(1 / each))


def in_real_time(pid: int, yard: Yard, pairs: list[list[str]], seconds: float) -> Row:
    """Every call beats `HERTZ` times a second, in batches."""
    batches = [orjson.dumps({"requests": pairs[at : at + BATCH]}) for at in range(0, len(pairs), BATCH)]
    connection = HTTPConnection("127.0.0.1", yard.port, timeout=10)
    began, before, rounds, requests = time.monotonic(), cpu_seconds(pid), 0, 0
    while (due := began + rounds / HERTZ) < began + seconds:
        time.sleep(max(0.0, due - time.monotonic()))
        for batch in batches:
            connection.request("POST", "/v1/tools/heartbeats", batch, yard.headers)
            answer = json.loads(connection.getresponse().read())
            if answer != {"gone": []}:
                raise RuntimeError(f"calls are gone while they beat: {str(answer)[:300]}")
            requests += 1
        rounds += 1
    took, cpu = time.monotonic() - began, cpu_seconds(pid) - before
    connection.close()
    beats = rounds * len(pairs)
    return Row(
        f"{len(pairs)} calls at {HERTZ} Hz, batches of {BATCH}",
        round(requests / took, 1),
        round(beats / took),
        round(cpu / beats * 1e6, 3),
        round(beats / cpu),
        round(cpu / took * 100, 2),
    )


# -- the server's process


async def serve(calls: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with App.running(Settings(data_dir=Path(folder))) as app:
            _, key = await app.keys.create("client", [Scope.CALL])
            session, requests = await calls_in_flight(app, key, calls)
            face = asgi.build(app)

            async def route(scope: Any, receive: Any, send: Any) -> None:
                await (bare if scope["path"] == "/bare" else face)(scope, receive, send)

            bound = listening_socket("127.0.0.1", 0)
            async with serving(route, bound):
                inside = await in_process(face, key, f"/v1/tools/request/{session}/{requests[0]}/heartbeat")
                yard = Yard(bound.getsockname()[1], key, session, requests, inside)
                print(json.dumps(asdict(yard)), flush=True)
                await asyncio.Event().wait()


async def calls_in_flight(app: App, key: str, count: int) -> tuple[str, list[str]]:
    """A session and its calls, each taken up by a first beat."""
    principal = await app.keys.verify(key)
    customizations = {"extensions": {"tools": {"work": TOOL}}}
    session = await app.sessions.create(principal, customizations)

    async def begin() -> str:
        request = CallRequest(
            tool="client:work", arguments={}, principal=principal, origin=Origin.HTTP, session=session.id, hold=0.0
        )
        outcome = await app.calls.invoke(request)
        assert outcome.waiting is not None, outcome
        await app.client_calls.beat(session.id, outcome.waiting.id, principal, 0)
        return outcome.waiting.id

    requests: list[str] = []
    for at in range(0, count, 500):
        requests += await asyncio.gather(*(begin() for _ in range(min(500, count - at))))
    return session.id, requests


async def bare(scope: Any, receive: Any, send: Any) -> None:
    body = orjson.dumps({"state": orjson.loads((await receive())["body"])["state"]})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def in_process(face: Any, key: str, path: str) -> float:
    """CPU microseconds for each beat, one after the other, into a sink."""
    raw = [(b"host", b"127.0.0.1:8420"), (b"authorization", f"Bearer {key}".encode())]
    body = orjson.dumps(BEAT)
    statuses: set[int] = set()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.add(message["status"])

    async def beat(count: int) -> None:
        for _ in range(count):
            scope = {"type": "http", "method": "POST", "path": path, "headers": raw, "client": ("127.0.0.1", 1)}
            await face(scope, receive, send)

    await beat(200)
    began = time.process_time()
    await beat(IN_PROCESS)
    spent = (time.process_time() - began) / IN_PROCESS * 1e6
    assert statuses == {200}, statuses
    return spent


if __name__ == "__main__":
    sys.exit(main())
