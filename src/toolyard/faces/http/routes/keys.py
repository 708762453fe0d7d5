"""API keys. The secret is in one answer, once."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from toolyard.core.clock import SystemClock, rfc3339
from toolyard.core.principal import Scope
from toolyard.faces.http.access import Yard, needs
from toolyard.faces.http.models import KeyBody, KeyMade, KeyOut, Listed
from toolyard.faces.http.paging import Page, cut
from toolyard.identity.keys import KeyInfo

router = APIRouter(tags=["Keys"])


@router.get("/keys", **needs(Scope.ADMIN))
async def list_keys(yard: Yard, page: Annotated[Page, Query()]) -> Listed[KeyOut]:
    """Every key, newest first, revoked ones included. Never a secret."""
    keys = sorted(await yard.keys.list(), key=_newest_first)
    found, next_cursor = cut(keys, page, key=_newest_first)
    return Listed(items=[_key_out(info) for info in found], next_cursor=next_cursor)


@router.post("/keys", **needs(Scope.ADMIN), status_code=201)
async def make_key(yard: Yard, body: KeyBody, response: Response) -> KeyMade:
    """Make a key. `key` is its only copy."""
    expires = body.expires.timestamp() if body.expires else None
    info, key = await yard.keys.create(body.name, body.scopes, expires)
    response.headers["Cache-Control"] = "no-store"
    response.headers["Location"] = f"/v1/keys/{info.id}"
    return KeyMade(**_key_out(info).model_dump(), key=key)


@router.get("/keys/{key_id}", **needs(Scope.ADMIN))
async def get_key(yard: Yard, key_id: str) -> KeyOut:
    """One key."""
    return _key_out(await yard.keys.get(key_id))


@router.delete("/keys/{key_id}", **needs(Scope.ADMIN))
async def revoke_key(yard: Yard, key_id: str) -> KeyOut:
    """Revoke a key: at once on this node, within two seconds on any other."""
    return _key_out(await yard.keys.revoke(key_id))


def _newest_first(info: KeyInfo) -> str:
    """Sorts by time going down, then by id: microseconds until a far day, in equal width."""
    return f"{int((1e11 - info.created) * 1e6):020d}-{info.id}"


def _key_out(info: KeyInfo) -> KeyOut:
    def time(seconds: float | None) -> str | None:
        return None if seconds is None else rfc3339(seconds)

    return KeyOut(
        id=info.id,
        name=info.name,
        scopes=sorted(info.scopes),
        created=rfc3339(info.created),
        expires=time(info.expires),
        last_used=time(info.last_used),
        revoked=time(info.revoked),
        live=info.is_live(SystemClock().now()),
    )
