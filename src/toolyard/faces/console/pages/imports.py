"""`/import`: an API document by URL, file or paste becomes tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.responses import Response

from toolyard.core.errors import BadInput, ToolyardError
from toolyard.faces.console.live import event_stream, frame
from toolyard.faces.console.visit import Visit

if TYPE_CHECKING:
    from toolyard.providers.openapi import ImportedApi

_NUDGE = 0.5
_SHOWN_TOOLS = 100
_running: set[asyncio.Task[ImportedApi]] = set()
"""An import goes on when its browser has gone; this keeps it from being collected."""


async def show(visit: Visit) -> Response:
    return visit.page("import.html", **_fields(visit, visit.query.get("way", "url")))


async def run(visit: Visit) -> Response:
    fields = _fields(visit, visit.posted.get("way") or "url")
    try:
        source = _source(visit)
    except BadInput as error:
        return _refused(visit, fields, error)
    task = asyncio.create_task(
        visit.app.import_openapi(
            **source,
            cluster=visit.posted.get("cluster") or None,
            provider_id=visit.posted.get("provider_id") or None,
            base_url=visit.posted.get("base_url") or None,
        )
    )
    _running.add(task)
    task.add_done_callback(_ended)
    if visit.by_htmx:
        return event_stream(_progress(visit, task))
    try:
        api = await asyncio.shield(task)
    except ToolyardError as error:
        return _refused(visit, fields, error)
    fields["api"] = await _report(visit, api)
    return visit.page("import.html", **fields)


def _ended(task: asyncio.Task[ImportedApi]) -> None:
    _running.discard(task)
    if not task.cancelled():
        task.exception()  # the report told it, or there is nobody left to tell


async def _progress(visit: Visit, task: asyncio.Task[ImportedApi]) -> AsyncIterator[bytes]:
    begun = time.monotonic()
    while not task.done():
        yield frame(visit.html("parts/import_progress.html", passed=int(time.monotonic() - begun)))
        await asyncio.wait({task}, timeout=_NUDGE)
    try:
        html = visit.html("parts/import_report.html", api=await _report(visit, task.result()))
    except ToolyardError as error:
        html = visit.html("parts/problem.html", title="Nothing was imported", **_told(error))
    yield frame(html)


async def _report(visit: Visit, api: ImportedApi) -> dict[str, Any]:
    ids = [tool.id for tool in api.tools]
    found = [entry for entry in map(visit.app.catalog.snapshot.get, ids[:_SHOWN_TOOLS]) if entry is not None]
    return {"api": api, "report": api.report, "entries": found, "more": len(ids) - len(found)}


def _source(visit: Visit) -> dict[str, Any]:
    """
    Raises:
        BadInput: the chosen way holds nothing, or no address.
    """
    posted = visit.posted
    way = posted.get("way")
    if way == "file":
        content = posted.files.get("file", b"")
        if not content:
            raise BadInput(
                "No file was chosen, or it is empty.", where="file", suggestion="Choose a JSON or YAML file."
            )
        return {"document": content}
    if way == "paste":
        if not posted.get("text"):
            raise BadInput("There is no text to import.", where="text", suggestion="Paste the whole document.")
        return {"document": posted.get("text").encode()}
    url = posted.get("url")
    if urlsplit(url).scheme not in ("http", "https"):
        raise BadInput(
            f"{url[:200]!r} is no address of a document." if url else "There is no address to import from.",
            where="url",
            suggestion="Give one that begins with http:// or https://.",
        )
    return {"url": url}


def _fields(visit: Visit, way: str) -> dict[str, Any]:
    kept = {name: visit.posted.get(name) for name in ("url", "text", "cluster", "provider_id", "base_url")}
    return {"way": way if way in ("url", "file", "paste") else "url", "kept": kept, "api": None, "error": None}


def _refused(visit: Visit, fields: dict[str, Any], error: ToolyardError) -> Response:
    if visit.by_htmx:
        return visit.page("parts/problem.html", code=422, title="Nothing was imported", **_told(error))
    fields["error"] = _told(error)
    return visit.page("import.html", code=422, **fields)


def _told(error: ToolyardError) -> dict[str, Any]:
    return {"message": error.message, "suggestion": error.suggestion}
