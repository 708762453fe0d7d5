"""Request bodies: read once, within a limit, after the caller is known."""

from __future__ import annotations

from starlette.types import Message, Receive, Scope

from toolyard.core.errors import BadInput, TooLarge

MIB = 1024 * 1024
USUAL_LIMIT = 4 * MIB
RESPONSE_LIMIT = 10 * MIB
"""What a client's tool may answer: as much as any other provider."""
IMPORT_LIMIT = 70 * MIB
"""An API document of up to 64 MiB, with room for its wrapping."""
SKILL_LIMIT = 20 * MIB
"""A zip of a skill, whose files are at most 16 MiB."""
_RESPONSES, _INJECTED = "/v1/tools/response/", "/tool_events"


class Disconnected(Exception):
    """The client went away before its request was whole. Nobody is left to be answered."""


def limit_for(path: str) -> int:
    if path.endswith("/tools/import-openapi"):
        return IMPORT_LIMIT
    if path.startswith("/v1/skills"):
        return SKILL_LIMIT
    return RESPONSE_LIMIT if path.startswith(_RESPONSES) or path.endswith(_INJECTED) else USUAL_LIMIT


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """
    Raises:
        TooLarge: more than the path takes, by its announced length or by what came.
        BadInput: a Content-Length that is no number.
        Disconnected: the client is gone.
    """
    limit = limit_for(scope["path"])
    announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if not announced.isdigit():
        raise BadInput("The Content-Length header is no number.", where="header:Content-Length")
    if int(announced) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read, then what the connection says."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return receive_again


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"The request is larger than the {limit // MIB} MiB that are taken here.",
        suggestion="Send less; a large API document can be imported by URL, a large result named by one.",
    )
