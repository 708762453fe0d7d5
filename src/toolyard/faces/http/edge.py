"""The outer edge of this face: who is calling, how much is sent, and which part answers.

Raw ASGI, so that probes and scrapes cost nothing and FastAPI is only imported for those who use it.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolyard.core.clock import SystemClock
from toolyard.core.errors import ToolyardError
from toolyard.faces.http.beats import answer_beat, is_beat
from toolyard.faces.http.blobs import blob
from toolyard.faces.http.body import Disconnected, read_body, replayed
from toolyard.faces.http.counters import Counters
from toolyard.faces.http.health import alive, metrics, ready
from toolyard.faces.http.idempotency import Idempotency
from toolyard.faces.http.problems import problem, problem_of
from toolyard.identity.gate import SAFE_METHODS

if TYPE_CHECKING:
    from toolyard.app import App

_log = structlog.stdlib.get_logger("toolyard.http")
_KEEPS_ITS_OWN_KEY = "/call"
"""`POST /tools/{id}/call` hands its Idempotency-Key to the call path, which keeps it for every face alike."""
_DEFAULT_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
Plain = Callable[[Request], Awaitable[Response]]


class Edge:
    def __init__(self, app: App, counters: Counters) -> None:
        self._app = app
        self._idempotency = Idempotency(app.store, SystemClock(), app.engine.node_id)
        self._control_plane: ASGIApp | None = None
        self._importing = asyncio.Lock()
        self._plain: Mapping[str, Plain] = {
            "/healthz": alive,
            "/readyz": lambda request: ready(app, request),
            "/metrics": lambda request: metrics(app, counters, request),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scope = _without_alias(scope)
        if is_beat(scope):
            await self._beat(scope, receive, send)
        else:
            await self._guarded(scope, receive, send)

    async def _beat(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Before everything else, because nothing else comes as often."""
        try:
            ordinary = await answer_beat(self._app, scope, receive, send)
        except Disconnected:
            return
        except ToolyardError as error:
            await problem_of(error)(scope, receive, send)
            return
        if ordinary is not None:
            await self._guarded(scope, ordinary, send)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = complete = False

        async def send_noting(message: Message) -> None:
            nonlocal started, complete
            started = True
            complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(_careful(message))

        try:
            await self._answer(scope, receive, send_noting)
        except Disconnected:
            return
        except ToolyardError as error:
            if started:
                raise
            await problem_of(error)(scope, receive, send_noting)
        except Exception as error:
            # Formatted here: a pretty traceback would print local variables, and with them keys and bodies.
            told = "".join(traceback.format_exception(error))
            _log.error("request failed", method=scope["method"], path=scope["path"], traceback=told)
            if complete:
                return
            if started:
                raise
            answer = problem(500, "internal", "Something went wrong here.", suggestion="The server's log says what.")
            await answer(scope, receive, send_noting)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        plain = self._plain.get(path)
        if plain is not None:
            response = await plain(Request(scope, receive))
            await response(scope, receive, send)
        elif path.startswith("/blobs/"):
            response = await blob(self._app, Request(scope, receive))
            await response(scope, receive, send)
        else:
            await self._answer_known_caller(scope, receive, send)

    async def _answer_known_caller(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The caller is known before the first byte of a body is read."""
        caller = await self._app.gate.caller(scope)
        scope = {**scope, "state": {**scope.get("state", {}), "caller": caller}}
        control_plane = self._control_plane or await self._import_control_plane()
        if scope["method"] in SAFE_METHODS:
            await control_plane(scope, receive, send)
            return
        body = await read_body(scope, receive)
        key = Request(scope).headers.get("idempotency-key")
        if key is None or scope["path"].endswith(_KEEPS_ITS_OWN_KEY):
            await control_plane(scope, replayed(body, receive), send)
            return
        await self._idempotency.answer(control_plane, scope, body, receive, send, principal=caller.principal, key=key)

    async def _import_control_plane(self) -> ASGIApp:
        """Once, and beside the event loop: the import takes more than half a second."""
        async with self._importing:
            if self._control_plane is None:
                self._control_plane = await asyncio.to_thread(_build_control_plane, self._app)
            return self._control_plane


def _build_control_plane(app: App) -> ASGIApp:
    from toolyard.faces.http.api import control_plane

    return control_plane(app)


def _careful(message: Message) -> Message:
    """Nothing here is guessed at by a browser, and nothing that needed a key is kept by a cache unless it says so."""
    if message["type"] != "http.response.start":
        return message
    headers = list(message["headers"])
    present = {name.lower() for name, _ in headers}
    headers += [(name, value) for name, value in _DEFAULT_HEADERS if name not in present]
    return {**message, "headers": headers}


def _without_alias(scope: Scope) -> Scope:
    """`/api/...` and `/sessions/...` are other names: the one place that knows the other prefixes of the contract."""
    path: str = scope["path"]
    if path.startswith("/api/"):
        return {**scope, "path": "/v1" + path.removeprefix("/api")}
    return {**scope, "path": f"/v1{path}"} if path.startswith("/sessions/") else scope
