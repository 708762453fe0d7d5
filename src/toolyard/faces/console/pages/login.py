"""Coming in by a one-time link, going out, and the choice of light or dark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from toolyard.core.clock import SystemClock
from toolyard.core.errors import Forbidden
from toolyard.faces.console.rendering import render
from toolyard.faces.console.visit import Visit, theme_of
from toolyard.identity.cookies import clear_cookie, is_secure, set_cookie

if TYPE_CHECKING:
    from toolyard.app import App

_YEAR = 31_536_000


async def offer(request: Request, app: App) -> Response:
    """A button, not the login itself: a link preview or a prefetch must not use the link up."""
    return HTMLResponse(render("login.html", {"theme": theme_of(request)}))


async def log_in(request: Request, app: App) -> Response:
    """
    Raises:
        Forbidden: another site's page sent the form.
        Unauthenticated: the link is used up, expired or unknown.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("Another site's page may not log you in.", suggestion="Open the login link itself.")
    session = await app.operators.redeem(request.path_params["token"])
    cookie = set_cookie(session, app.settings.url, now=SystemClock().now())
    return RedirectResponse("/", 303, headers={"Set-Cookie": cookie})


async def log_out(visit: Visit) -> Response:
    if visit.caller.session is not None:
        await visit.app.operators.logout(visit.caller.session.cookie)
    page = HTMLResponse(render("logged_out.html", {"theme": theme_of(visit.request)}))
    page.headers["Set-Cookie"] = clear_cookie(visit.app.settings.url)
    return page


async def choose_theme(visit: Visit) -> Response:
    theme = visit.posted.get("theme")
    back = visit.posted.get("back")
    # Only a path of ours: `//host` and `/\\host` would leave.
    local = back.startswith("/") and not back.startswith(("//", "/\\"))
    response = RedirectResponse(back if local else "/", 303)
    if theme in ("light", "dark", "auto"):
        secure = is_secure(visit.app.settings.url)
        response.set_cookie("toolyard_theme", theme, max_age=_YEAR, httponly=True, samesite="lax", secure=secure)
    return response
