"""What probes and collectors ask: alive, ready, metrics."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from toolyard.core.errors import StoreError, Unauthenticated
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.principal import Scope
from toolyard.faces.http.counters import Counters, exposition

if TYPE_CHECKING:
    from toolyard.app import App

STORE_ANSWERS_WITHIN = 3.0
MIB = 1024 * 1024
LEAST_FREE = 64 * MIB
"""Below this, the next large result or the next checkpoint of the database may not fit."""


async def alive(request: Request) -> Response:
    """The process answers; nothing else is asked."""
    return _json({"status": "ok"})


async def ready(app: App, request: Request) -> Response:
    """200 when the store answers and takes writes, the disk has room and every required provider is up, else 503.

    Nothing is written to find that out: every node renews its lease all the time.

    Probes come without a key and learn the status only; the reasons name providers and need the scope `read`.
    """
    reasons = await _reasons(app)
    answer: dict[str, JsonValue] = {"status": "unready" if reasons else "ready"}
    if await _may_read(app, request):
        answer["reasons"] = reasons
    return _json(answer, status=503 if reasons else 200)


async def metrics(app: App, counters: Counters, request: Request) -> Response:
    """
    Raises:
        Unauthenticated, Forbidden: the scope `read` is needed.
    """
    (await app.gate.principal(request.scope)).require(Scope.READ)
    text = await asyncio.to_thread(exposition, counters, app.supervisor.statuses(), app.catalog.snapshot)
    return Response(text, media_type="text/plain; version=1.0.0; charset=utf-8")


async def _reasons(app: App) -> list[JsonObject]:
    reasons: list[JsonObject] = []
    try:
        async with asyncio.timeout(STORE_ANSWERS_WITHIN):
            await app.store.read(lambda connection: connection.now())
    except (StoreError, TimeoutError) as error:
        why = str(error) or f"no answer within {STORE_ANSWERS_WITHIN:g} s"
        reasons.append({"part": "store", "reason": why})
    if not app.engine.lease.fresh:
        reasons.append(
            {"part": "store", "reason": "Nothing could be written of late: this node's lease was not renewed."}
        )
    free = await asyncio.to_thread(_free_bytes, app.settings.data_dir)
    if free < LEAST_FREE:
        reasons.append({"part": "disk", "reason": f"only {free // MIB} MiB are free where the data is kept."})
    reasons.extend(
        {"part": f"provider:{status.id}", "reason": status.last_error or f"it is {status.state}"}
        for status in app.supervisor.statuses()
        if status.required and status.state != "up"
    )
    return reasons


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


async def _may_read(app: App, request: Request) -> bool:
    try:
        return (await app.gate.principal(request.scope)).may(Scope.READ)
    except (Unauthenticated, StoreError):
        return False


def _json(value: JsonObject, *, status: int = 200) -> Response:
    return Response(
        dumps(value), status_code=status, media_type="application/json", headers={"Cache-Control": "no-store"}
    )
