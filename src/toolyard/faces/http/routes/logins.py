"""Login links for operators: one more person, or one whose session has ended."""

from __future__ import annotations

from fastapi import APIRouter, Response

from toolyard.core.clock import SystemClock, rfc3339
from toolyard.core.principal import Scope
from toolyard.faces.http.access import Yard, needs
from toolyard.faces.http.models import LoginLink
from toolyard.identity.operators import LINK_LIFETIME

router = APIRouter(tags=["Keys"])


@router.post("/login-links", **needs(Scope.ADMIN), status_code=201)
async def make_login_link(yard: Yard, response: Response) -> LoginLink:
    """Make a link that logs an operator in to the console, once, within the hour."""
    response.headers["Cache-Control"] = "no-store"
    url = await yard.operators.new_link(yard.settings.url)
    return LoginLink(url=url, expires=rfc3339(SystemClock().now() + LINK_LIFETIME))
