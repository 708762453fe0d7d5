"""`/blobs/{name}`: images of results, for those who may see the call they belong to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from toolyard.core.errors import NotFound
from toolyard.core.principal import Scope

if TYPE_CHECKING:
    from toolyard.app import App

_IMAGE = re.compile(r"calls/\d{4}-\d{2}-\d{2}/(?P<call>call_[0-9a-f]{32})-\d+\.(?P<ending>png|jpg|gif|webp|svg|bin)")
_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "bin": "application/octet-stream",
}
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Cache-Control": "private, max-age=86400, immutable",
}


async def blob(app: App, request: Request) -> Response:
    """What a tool made is never trusted: its type is one of ours, and a browser runs nothing in it.

    Raises:
        NotFound: no such image, or an image of somebody else's call. Long results and documents are blobs too and are
            not served here.
    """
    principal = await app.gate.principal(request.scope)
    if request.method not in ("GET", "HEAD"):
        raise NotFound("There is nothing to change about a blob.")
    name: str = request.scope["path"].removeprefix("/blobs/")
    match = _IMAGE.fullmatch(name)
    if match is None:
        raise _unknown()
    if not principal.may(Scope.READ):
        record = await app.calls.get(match["call"])
        if record.principal != principal.label:
            raise _unknown()
    ending = match["ending"]
    headers = _HEADERS if ending != "bin" else {**_HEADERS, "Content-Disposition": "attachment"}
    return Response(await app.blobs.get(name), headers=headers, media_type=_TYPES[ending])


def _unknown() -> NotFound:
    return NotFound("There is no such image.", suggestion="Images are deleted with the call they belong to.")
