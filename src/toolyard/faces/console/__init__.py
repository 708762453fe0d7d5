"""The web console: Starlette routes, Jinja2 pages, htmx. No rules of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from toolyard.app import App
    from toolyard.catalog import Server
    from toolyard.core.json import JsonObject
    from toolyard.core.principal import Principal
    from toolyard.faces.console.visit import AskMcp


async def no_mcp(server: Server, principal: Principal, method: str, params: JsonObject) -> JsonObject:
    """Where the console stands alone, nobody knows what MCP clients see."""
    return {"error": {"message": "MCP is not served here."}}


def build(app: App, *, ask_mcp: AskMcp = no_mcp) -> ASGIApp:
    """The console as an ASGI app. Templates and pages are imported with the first request."""
    site: ASGIApp | None = None

    async def console(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal site
        if site is None:
            from toolyard.faces.console.site import site_of

            site = site_of(app, ask_mcp)
        await site(scope, receive, send)

    return console
