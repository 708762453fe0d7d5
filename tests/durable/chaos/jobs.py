"""Plain durable jobs for the storm: steps with an effect each, half of the jobs waiting in the middle for somebody.

They are asked for at `/chaos/jobs` of each node, beside its own faces, because nothing public makes plain jobs yet.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any

import orjson

from tests.durable.chaos.effects import Effect, append
from toolyard.durable import jobs, log
from toolyard.durable.engine import Engine
from toolyard.durable.jobs import NewJob
from toolyard.durable.running import RunningJob
from toolyard.store.base import Connection

KIND = "chaos"
WAIT_SECONDS = 3.0
"""How long a job waits for its wake-up before it goes on without."""
Asgi = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]


async def run_job(job: RunningJob) -> None:
    """Every step's effect is one line; the end is said in the session, in the transaction that ends the job."""
    steps, seconds = int(job.input["steps"]), float(job.input["seconds"])  # type: ignore[arg-type]
    for n in range(steps):
        if job.input["waits"] and n == steps // 2:
            deadline = float(await job.step("deadline", partial(_deadline, job)))  # type: ignore[arg-type]
            await job.park(_key(job.id), deadline, partial(_still_waiting, job.id, deadline))
        await job.step(f"step-{n}", partial(_effect, job.id, n, seconds))
    done = {"job": job.id}
    session = str(job.session_id)
    await job.finish(within=lambda c: _say(c, session, done))


def _say(c: Connection, session: str, done: dict[str, Any]) -> None:
    log.append(c, session, "status", "chaos_done", done)


async def _effect(job_id: str, n: int, seconds: float) -> str:
    await asyncio.sleep(seconds / 2)
    append(Effect("step", job_id, str(n), os.getpid()))
    await asyncio.sleep(seconds / 2)
    return str(n)


async def _deadline(job: RunningJob) -> float:
    return await job.tx(lambda c: c.now()) + WAIT_SECONDS


def _key(job_id: str) -> str:
    return f"go:{job_id}"


def _still_waiting(job_id: str, deadline: float, c: Connection) -> bool:
    woken = c.execute("SELECT 1 FROM chaos_woken WHERE id = ?", job_id).fetchone()
    return woken is None and c.now() < deadline


def _insert(new: NewJob, c: Connection) -> None:
    """With its session, where the client made none."""
    jobs.insert(c, new)
    c.execute(
        "INSERT INTO sessions (id, principal, created) VALUES (?, 'chaos', ?) ON CONFLICT DO NOTHING",
        new.session_id,
        c.now(),
    )


def _wake(job_id: str, c: Connection) -> None:
    jobs.lock(c, job_id)
    c.execute("INSERT INTO chaos_woken (id) VALUES (?) ON CONFLICT DO NOTHING", job_id)
    jobs.wake(c, job_id, _key(job_id))


def beside(engine: Engine, faces: Asgi) -> Asgi:
    """`POST /chaos/jobs/<id>` with its input, `.../wake`, `.../cancel`; `GET` answers its state."""

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/chaos/jobs/"):
            await faces(scope, receive, send)
            return
        job_id, _, verb = scope["path"].removeprefix("/chaos/jobs/").partition("/")
        try:
            answer = await _answer(engine, scope["method"], job_id, verb, (await receive()).get("body", b""))
            status = 200
        except Exception as error:  # noqa: BLE001 - the top of a request
            answer, status = {"error": repr(error)}, 500
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]}
        )
        await send({"type": "http.response.body", "body": orjson.dumps(answer)})

    return asgi


async def _answer(engine: Engine, method: str, job_id: str, verb: str, body: bytes) -> dict[str, Any]:
    store = engine.store
    if method == "GET":
        job = await store.read(lambda c: jobs.get(c, job_id))
        return {"state": job.state if job else None}
    if verb == "wake":
        await store.tx(partial(_wake, job_id))
    elif verb == "cancel":
        await store.tx(lambda c: jobs.cancel(c, job_id))
    else:
        given = orjson.loads(body)
        await store.tx(partial(_insert, NewJob(job_id, KIND, given, session_id=given["session"])))
    engine.hint(f"job:{job_id}")
    return {"id": job_id}
