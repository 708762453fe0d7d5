"""Our stylesheet, script, icons, and the vendored htmx: read once, cached for good under their hash."""

from __future__ import annotations

from functools import cache

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from toolyard.faces.console.rendering import HERE

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_NAMES = frozenset({"console.css", "console.js", "icons.svg", "mark.svg", "vendor/htmx.min.js", "vendor/hx-sse.min.js"})


async def static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _NAMES:
        raise HTTPException(404)
    kind = _TYPES[name.rpartition(".")[2]]
    kept = "public, max-age=31536000, immutable" if "v" in request.query_params else "no-cache"
    return Response(_content(name), media_type=f"{kind}; charset=utf-8", headers={"Cache-Control": kept})


@cache
def _content(name: str) -> bytes:
    return (HERE / "static" / name).read_bytes()
