"""The way of heartbeats: many a second for each open call, so nothing is done here that a beat does not need.

Only the plain case is answered: well-formed beats of calls that this node knows to be running. Everything else (a
first beat, an error, a mistake) goes the ordinary way through the control plane, which explains itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard, cast

import orjson
from starlette.types import Message, Receive, Scope, Send

from toolyard.core import principal
from toolyard.faces.http.body import read_body, replayed

if TYPE_CHECKING:
    from toolyard.app import App

_BATCH = "/v1/tools/heartbeats"
_ROOT, _END = "/v1/tools/request/", "/heartbeat"
MOST_BEATS = 10_000
"""In one request."""


def is_beat(scope: Scope) -> bool:
    path: str = scope["path"]
    return path.startswith("/v1/tools/") and (path == _BATCH or (path.startswith(_ROOT) and path.endswith(_END)))


async def answer_beat(app: App, scope: Scope, receive: Receive, send: Send) -> Receive | None:
    """Answer plain beats; else give a `receive` with which the request can go the ordinary way.

    Raises:
        Unauthenticated, Forbidden: as everywhere.
        TooLarge: the body.
    """
    if scope["method"] != "POST":
        return receive
    caller = (await app.gate.caller(scope)).principal
    caller.require(principal.Scope.CALL)
    body = await read_body(scope, receive)
    try:
        sent: object = orjson.loads(body)
    except ValueError:
        return replayed(body, receive)
    path: str = scope["path"]
    if path == _BATCH:
        pairs = _pairs(sent)
        if pairs is None:
            return replayed(body, receive)
        start, end = _answer(b'{"gone":%b}' % orjson.dumps(app.client_calls.beat_many(caller, pairs)))
    else:
        session_id, _, request_id = path[len(_ROOT) : -len(_END)].partition("/")
        if not (_is_plain(sent) and app.client_calls.beat_known(caller, session_id, request_id)):
            return replayed(body, receive)
        start, end = _BEATING
    await send(start)
    await send(end)
    return None


def _answer(body: bytes) -> tuple[Message, Message]:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    start = {"type": "http.response.start", "status": 200, "headers": headers}
    return start, {"type": "http.response.body", "body": body}


_BEATING = _answer(b'{"state":"PROCESSING"}')


def _is_plain(beat: object) -> bool:
    """`{"state": "PROCESSING", "heartbeat": <milliseconds>}` and nothing else."""
    if not isinstance(beat, dict):
        return False
    fields = cast("dict[str, object]", beat)
    at = fields.get("heartbeat", 0)
    known = len(fields) == 1 + ("heartbeat" in fields)
    return known and fields.get("state") == "PROCESSING" and type(at) in (int, float) and cast("float", at) >= 0


def _pairs(sent: object) -> list[list[str]] | None:
    """`{"requests": [[sessionId, requestId], ...]}`."""
    fields = cast("dict[str, object]", sent) if isinstance(sent, dict) else {}
    requests = fields.get("requests")
    if len(fields) != 1 or not isinstance(requests, list):
        return None
    found = cast("list[Any]", requests)
    return found if len(found) <= MOST_BEATS and _are_pairs(found) else None


def _are_pairs(requests: list[Any]) -> TypeGuard[list[list[str]]]:
    return all(
        type(pair) is list and len(pair) == 2 and type(pair[0]) is str and type(pair[1]) is str for pair in requests
    )
