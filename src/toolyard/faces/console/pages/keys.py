"""`/keys`: API keys. The secret is shown once, on the page that answers the form."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from toolyard.core.clock import SystemClock
from toolyard.core.errors import BadInput, Conflict, NotFound
from toolyard.core.principal import Scope
from toolyard.faces.console.visit import Visit
from toolyard.identity.keys import KeyInfo

LIFETIMES = {"30": "30 days", "90": "90 days", "365": "1 year", "": "Never"}
SCOPES = {
    Scope.CALL: "See the catalog and call tools",
    Scope.READ: "Read the call log, metrics and provider state",
    Scope.MANAGE: "Import and remove tools, change settings",
    Scope.APPROVE: "Decide the approvals of calls",
    Scope.ADMIN: "Everything, also making keys",
}


async def index(visit: Visit) -> Response:
    return visit.page("keys.html", **await _state(visit))


async def _state(visit: Visit, **more: Any) -> dict[str, Any]:
    now = SystemClock().now()
    known = sorted(await visit.app.keys.list(), key=lambda key: (not key.is_live(now), -key.created))
    blank = {"name": "", "scopes": ["call"], "lifetime": "90"}
    state = {"keys": known, "now": now, "scopes": SCOPES, "lifetimes": LIFETIMES, "kept": blank}
    return state | {"made": None, "secret": "", "error": None} | more


async def create(visit: Visit) -> Response:
    posted = visit.posted
    kept = {"name": posted.get("name"), "scopes": posted.all("scope"), "lifetime": posted.get("lifetime")}
    try:
        scopes = [Scope(name) for name in posted.all("scope")]
        days = int(posted.get("lifetime") or 0)
    except ValueError:
        raise BadInput("There is no such scope or lifetime.", suggestion="Choose from the form.") from None
    expires = SystemClock().now() + days * 86_400 if days else None
    try:
        made, secret = await visit.app.keys.create(posted.get("name"), scopes, expires)
    except (BadInput, Conflict) as error:
        told = {"message": error.message, "suggestion": error.suggestion, "where": getattr(error, "where", "name")}
        return visit.page("keys.html", code=422, **await _state(visit, error=told, kept=kept))
    return visit.page("keys.html", code=201, **await _state(visit, made=made, secret=secret))


async def ask_to_revoke(visit: Visit) -> Response:
    return visit.page("revoke_key.html", key=await _key(visit))


async def revoke(visit: Visit) -> Response:
    await visit.app.keys.revoke((await _key(visit)).id)
    return visit.go("/keys?notice=key-revoked")


async def _key(visit: Visit) -> KeyInfo:
    wanted = visit.part("key")
    found = next((key for key in await visit.app.keys.list() if key.id == wanted), None)
    if found is None:
        raise NotFound(f"There is no key {wanted[:40]!r}.")
    return found
