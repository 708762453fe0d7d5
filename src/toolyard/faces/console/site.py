"""The console's routes, and what holds for all of them: who may come in, headers, and errors as pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from toolyard.core import errors
from toolyard.core.principal import Scope as Allowed
from toolyard.faces.console import inbox
from toolyard.faces.console.pages import (
    approvals,
    calls,
    connect,
    edited,
    files,
    imports,
    keys,
    login,
    overview,
    providers,
    servers,
    settings,
    skills,
    tools,
    tryit,
)
from toolyard.faces.console.rendering import render
from toolyard.faces.console.visit import AskMcp, Posted, Visit, check_csrf, read_posted, theme_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from toolyard.app import App

Handler: TypeAlias = Callable[[Visit], Awaitable[Response]]

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: with it, browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

_READS: tuple[tuple[str, Handler, Allowed], ...] = (
    ("/", overview.show, Allowed.READ),
    ("/live/overview", overview.live, Allowed.READ),
    ("/tools", tools.index, Allowed.CALL),
    ("/tools/{tool:path}", tools.show, Allowed.CALL),
    ("/clusters/{cluster:path}", tools.cluster_rows, Allowed.CALL),
    ("/delete-cluster/{cluster:path}", tools.ask_to_delete, Allowed.MANAGE),
    ("/cluster-policy/{cluster:path}", tools.ask_for_policy, Allowed.MANAGE),
    ("/outcomes/{call}", tryit.outcome, Allowed.CALL),
    ("/import", imports.show, Allowed.MANAGE),
    ("/calls", calls.index, Allowed.READ),
    ("/calls/export", calls.export, Allowed.READ),
    ("/live/calls", calls.live, Allowed.READ),
    ("/live/calls/{call}", calls.live_call, Allowed.READ),
    ("/calls/{call}", calls.show, Allowed.READ),
    ("/calls/{call}/{part}", calls.full, Allowed.READ),
    ("/approvals", approvals.index, Allowed.APPROVE),
    ("/approvals/history", approvals.history, Allowed.APPROVE),
    ("/live/approvals", approvals.live, Allowed.APPROVE),
    ("/live/approvals/{approval}", approvals.live_one, Allowed.APPROVE),
    ("/live/inbox", inbox.live, Allowed.CALL),
    ("/approvals/{approval}", approvals.show, Allowed.APPROVE),
    ("/approvals/{approval}/edit", edited.show, Allowed.APPROVE),
    ("/providers", providers.index, Allowed.READ),
    ("/live/providers", providers.live, Allowed.READ),
    ("/remove-provider/{provider}", providers.ask_to_remove, Allowed.MANAGE),
    ("/servers", servers.index, Allowed.READ),
    ("/servers/{server}", servers.show, Allowed.READ),
    ("/remove-server/{server}", servers.ask_to_remove, Allowed.MANAGE),
    ("/skills", skills.index, Allowed.READ),
    ("/skills/{skill}", skills.show, Allowed.READ),
    ("/edit-skill/{skill}", skills.edit, Allowed.MANAGE),
    ("/remove-skill/{skill}", skills.ask_to_remove, Allowed.MANAGE),
    ("/keys", keys.index, Allowed.ADMIN),
    ("/revoke-key/{key}", keys.ask_to_revoke, Allowed.ADMIN),
    ("/connect", connect.show, Allowed.CALL),
)
_WRITES: tuple[tuple[str, Handler, Allowed], ...] = (
    ("/try/{tool:path}", tryit.call, Allowed.CALL),
    ("/try-form/{tool:path}", tryit.redraw, Allowed.CALL),
    ("/tool-settings/{tool:path}", settings.save, Allowed.MANAGE),
    ("/delete-cluster/{cluster:path}", tools.delete, Allowed.MANAGE),
    ("/cluster-policy/{cluster:path}", tools.set_policy, Allowed.MANAGE),
    ("/import", imports.run, Allowed.MANAGE),
    ("/calls/{call}/cancel", calls.cancel, Allowed.CALL),
    ("/approvals/{approval}/decide", approvals.decide, Allowed.APPROVE),
    ("/approvals/{approval}/edit", edited.approve, Allowed.APPROVE),
    ("/approvals/{approval}/edit-form", edited.redraw, Allowed.APPROVE),
    ("/approvals/{approval}/changes", edited.differences, Allowed.APPROVE),
    ("/providers", providers.add, Allowed.MANAGE),
    ("/refresh-provider/{provider}", providers.refresh, Allowed.MANAGE),
    ("/remove-provider/{provider}", providers.remove, Allowed.MANAGE),
    ("/servers", servers.create, Allowed.MANAGE),
    ("/server-matches", servers.matches, Allowed.READ),
    ("/servers/{server}", servers.save, Allowed.MANAGE),
    ("/servers/{server}/try", servers.attempt, Allowed.CALL),
    ("/remove-server/{server}", servers.remove, Allowed.MANAGE),
    ("/skills", skills.create, Allowed.MANAGE),
    ("/edit-skill/{skill}", skills.save, Allowed.MANAGE),
    ("/remove-skill/{skill}", skills.remove, Allowed.MANAGE),
    ("/keys", keys.create, Allowed.ADMIN),
    ("/revoke-key/{key}", keys.revoke, Allowed.ADMIN),
    ("/logout", login.log_out, Allowed.CALL),
    ("/theme", login.choose_theme, Allowed.CALL),
)


def site_of(app: App, ask_mcp: AskMcp) -> ASGIApp:
    """All routes over `app`."""
    door = _Door(app, ask_mcp)
    routes = [
        Route("/static/{name:path}", files.static),
        Route("/login/{token}", door.unguarded(login.offer), methods=["GET"]),
        Route("/login/{token}", door.unguarded(login.log_in), methods=["POST"]),
        *(Route(path, door.reading(handler, scope), methods=["GET"]) for path, handler, scope in _READS),
        *(Route(path, door.writing(handler, scope), methods=["POST"]) for path, handler, scope in _WRITES),
    ]
    return _with_headers(
        Starlette(
            routes=routes,
            exception_handlers={
                errors.ToolyardError: _refused,
                HTTPException: _refused,
                Exception: _broken,
            },
        )
    )


class _Door:
    """Makes an endpoint from a page: authenticate, authorize, read the form, check its token."""

    def __init__(self, app: App, ask_mcp: AskMcp) -> None:
        self._app = app
        self._ask_mcp = ask_mcp

    def reading(self, handler: Handler, needed: Allowed) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            caller = await self._app.gate.caller(request.scope)
            caller.principal.require(needed)
            visit = Visit(request, self._app, caller, Posted(), self._ask_mcp)
            visit.pending = 0 if visit.by_htmx else await inbox.pending_of(visit)
            return await handler(visit)

        return endpoint

    def writing(self, handler: Handler, needed: Allowed) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            # First who it is, so that strangers cannot make us read their uploads; then the token within the form.
            caller = await self._app.gate.caller({**request.scope, "method": "GET"})
            caller.principal.require(needed)
            posted = await read_posted(request)
            token = request.headers.get("x-csrf-token") or posted.get("csrf")
            check_csrf(caller, token)
            caller = await self._app.gate.caller(request.scope, csrf=token)
            visit = Visit(request, self._app, caller, posted, self._ask_mcp)
            visit.pending = 0 if visit.by_htmx else await inbox.pending_of(visit)
            return await handler(visit)

        return endpoint

    def unguarded(
        self, handler: Callable[[Request, App], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return await handler(request, self._app)

        return endpoint


_STATUS: tuple[tuple[type[errors.ToolyardError], int], ...] = (
    (errors.Unauthenticated, 401),
    (errors.Forbidden, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.TooLarge, 413),
    (errors.BadInput, 422),
    (errors.ProviderError, 422),
    (errors.EgressError, 502),
    (errors.StoreError, 503),
)


async def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        if error.status_code == 404:
            return _problem(request, 404, "There is no page at this address.", "Check the address, or use the menu.")
        return _problem(request, error.status_code, f"{error.detail}.", None)
    assert isinstance(error, errors.ToolyardError)  # noqa: S101
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return _problem(request, status, error.message, error.suggestion)


async def _broken(request: Request, error: Exception) -> Response:
    return _problem(
        request,
        500,
        "Something went wrong on our side.",
        "Nothing you entered caused this; the server's log says more.",
    )


_TITLES = {
    401: "Log in to continue",
    403: "Not allowed",
    404: "Nothing here",
    409: "Somebody was first",
    413: "Too large",
    422: "That cannot be accepted",
    502: "No answer from there",
    503: "The store is not available",
}


def _problem(request: Request, status: int, message: str, suggestion: str | None) -> Response:
    part = request.headers.get("hx-request") == "true"
    context = {
        "status": status,
        "title": _TITLES.get(status, "Something went wrong"),
        "message": message,
        "suggestion": suggestion,
        "theme": theme_of(request),
    }
    return HTMLResponse(render("parts/problem.html" if part else "error.html", context), status)


def _with_headers(inner: ASGIApp) -> ASGIApp:
    async def with_headers(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await inner(scope, receive, send_with_headers)

    return with_headers
