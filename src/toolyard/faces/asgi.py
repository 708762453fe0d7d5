"""One ASGI application for all faces; each face is built on its first request, so that a start stays quick."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from toolyard.app import App
from toolyard.catalog import Server
from toolyard.core.json import JsonObject
from toolyard.core.principal import Principal
from toolyard.faces.http.counters import Counters

ASGIScope: TypeAlias = MutableMapping[str, Any]
ASGIReceive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
ASGISend: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[ASGIScope, ASGIReceive, ASGISend], Awaitable[None]]

_HTTP_ROOTS = frozenset({"v1", "api", "sessions", "healthz", "readyz", "metrics", "docs", "openapi.json", "blobs"})


class Faces:
    """Routes by the first segment of the path: /mcp, the HTTP API, and the console for everything else."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._built: dict[str, ASGIApp] = {}
        self._counters = Counters(app.bus)  # counts from the start; the face that shows them may come much later
        self._end_streams: list[Callable[[], None]] = [app.bus.close]

    async def __call__(self, scope: ASGIScope, receive: ASGIReceive, send: ASGISend) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        root = scope["path"].split("/", 2)[1]
        if root in ("mcp", ".well-known"):
            await self._face("mcp")(scope, receive, send)
        elif root in _HTTP_ROOTS:
            await self._face("http")(scope, receive, send)
        else:
            await self._face("console")(scope, receive, send)

    def close(self) -> None:
        """End every standing stream. Called before the HTTP server stops, which otherwise waits for them in vain."""
        for end in self._end_streams:
            end()

    def _face(self, name: str) -> ASGIApp:
        known = self._built.get(name)
        if known is None:
            known = self._built[name] = self._build(name)
        return known

    def _build(self, name: str) -> ASGIApp:
        if name == "mcp":
            from toolyard.faces.mcp import build as build_mcp

            edge = build_mcp(self._app, allowed_hosts=self._app.manifest.settings.allowed_hosts)
            self._end_streams.append(edge.close)
            return edge
        if name == "http":
            from toolyard.faces.http import build as build_http

            return build_http(self._app, self._counters)
        from toolyard.faces.console import build as build_console

        return build_console(self._app, ask_mcp=self._ask_mcp)

    async def _ask_mcp(self, server: Server, principal: Principal, method: str, params: JsonObject) -> JsonObject:
        """The faces do not know each other: what a client of a server sees is asked of that face here."""
        from toolyard.faces.mcp import Edge

        edge = self._face("mcp")
        assert isinstance(edge, Edge)  # noqa: S101
        return await edge.asked(server, principal, method, params)


def build(app: App) -> Faces:
    """The whole yard as an ASGI application."""
    return Faces(app)


async def _lifespan(receive: ASGIReceive, send: ASGISend) -> None:
    """The app is started and stopped by whoever built it; nothing is left to do here."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
