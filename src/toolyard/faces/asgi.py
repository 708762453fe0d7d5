"""One ASGI application for all faces; each face is built on its first request, so that a start stays quick."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from toolyard.app import App
from toolyard.faces.http.counters import Counters

ASGIScope: TypeAlias = MutableMapping[str, Any]
ASGIReceive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
ASGISend: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[ASGIScope, ASGIReceive, ASGISend], Awaitable[None]]

_HTTP_ROOTS = frozenset({"v1", "api", "sessions", "healthz", "readyz", "metrics", "docs", "openapi.json", "blobs"})


def build(app: App) -> ASGIApp:
    """Route by the first segment of the path: /mcp, the HTTP API, and the console for everything else."""
    faces: dict[str, ASGIApp] = {}
    counters = Counters(app.bus)  # counts from the start; the face that shows them may come much later

    def face(name: str) -> ASGIApp:
        known = faces.get(name)
        if known is None:
            known = faces[name] = _build_face(name, app, counters)
        return known

    async def asgi(scope: ASGIScope, receive: ASGIReceive, send: ASGISend) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        root = scope["path"].split("/", 2)[1]
        if root in ("mcp", ".well-known"):
            await face("mcp")(scope, receive, send)
        elif root in _HTTP_ROOTS:
            await face("http")(scope, receive, send)
        else:
            await face("console")(scope, receive, send)

    return asgi


def _build_face(name: str, app: App, counters: Counters) -> ASGIApp:
    if name == "mcp":
        from toolyard.faces.mcp import build as build_mcp

        return build_mcp(app)
    if name == "http":
        from toolyard.faces.http import build as build_http

        return build_http(app, counters)
    from toolyard.faces.console import build as build_console

    return build_console(app)


async def _lifespan(receive: ASGIReceive, send: ASGISend) -> None:
    """The app is started and stopped by whoever built it; nothing is left to do here."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
