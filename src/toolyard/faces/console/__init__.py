"""The web console: Starlette routes, Jinja2 pages, htmx. No rules of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from toolyard.app import App


def build(app: App) -> ASGIApp:
    """The console as an ASGI app. Templates and pages are imported with the first request."""
    site: ASGIApp | None = None

    async def console(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal site
        if site is None:
            from toolyard.faces.console.site import site_of

            site = site_of(app)
        await site(scope, receive, send)

    return console
