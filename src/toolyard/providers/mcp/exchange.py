"""One JSON-RPC message by HTTP POST, and its answer as JSON or as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from toolyard.core.errors import AddressRefused, EgressError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue
from toolyard.egress import Egress, StreamedResponse, without_secrets
from toolyard.providers.mcp.failures import BadAnswer, LinkLost, RpcFault, SessionLost
from toolyard.providers.mcp.sse import Event, Events, EventTooLong
from toolyard.providers.mcp.wire import MOST_BYTES, Message

OnMessage: TypeAlias = Callable[[Message], None]
_MOST_STREAMED = 10 * MOST_BYTES
"""Of one answer's whole stream, progress included."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `message` is None when the stream ended without the response (legacy servers may do that)."""

    headers: Mapping[str, str]
    message: Message | None
    resume_at: Event | None = None
    """The last event that had an id: where a broken-off stream is taken up again."""


async def post(
    egress: Egress,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    request_id: int | None,
    on_message: OnMessage,
    endless: bool = False,
) -> Answer:
    """Sends one message. `on_message` hears what else comes on the stream before the response.

    How long it may take is for the caller to say, by cancelling; `endless` streams may be of any length.

    Raises:
        RpcFault: an HTTP status below 500 that is no success.
        SessionLost: 404 without a JSON-RPC error, or 503.
        LinkLost: no answer, or an HTTP status of 500 and above.
        BadAnswer: too large, or neither JSON nor events.
    """
    try:
        async with egress.stream("POST", url, headers=headers, body=body, time_limit=None, idle_limit=None) as answer:
            if answer.status != 200:
                return Answer(answer.headers, await _refusal(answer, url))
            kind = answer.headers.get("Content-Type", "")
            if kind.startswith("application/json"):
                return Answer(answer.headers, parse(await _whole(answer)))
            if kind.startswith("text/event-stream"):
                return await _follow(answer, request_id=request_id, on_message=on_message, endless=endless)
            raise BadAnswer(f"{without_secrets(url)} answered with {kind or 'no content type'}, which is not MCP.")
    except AddressRefused:
        raise
    except EgressError as error:
        raise LinkLost(error.message, sent=error.sent, suggestion=error.suggestion) from error


async def resume(
    egress: Egress,
    url: str,
    headers: Mapping[str, str],
    *,
    request_id: int | None,
    on_message: OnMessage,
    resume_at: Event | None = None,
) -> Answer:
    """The GET stream of a legacy server: until the response to `request_id`, or until it ends.

    Raises:
        RpcFault, LinkLost, BadAnswer: as `post`.
    """
    try:
        async with egress.stream("GET", url, headers=headers, time_limit=None, idle_limit=None) as answer:
            if answer.status != 200:
                await _refusal(answer, url)
                raise RpcFault(f"{without_secrets(url)} answered with HTTP {answer.status}.", status=answer.status)
            return await _follow(
                answer, request_id=request_id, on_message=on_message, endless=request_id is None, resume_at=resume_at
            )
    except AddressRefused:
        raise
    except EgressError as error:
        raise LinkLost(error.message, sent=True, suggestion=error.suggestion) from error


async def _follow(
    answer: StreamedResponse,
    *,
    request_id: int | None,
    on_message: OnMessage,
    endless: bool,
    resume_at: Event | None = None,
) -> Answer:
    """Reads events until the response to `request_id` (None: until the stream ends)."""
    async for event in _events(answer.chunks, most=None if endless else _MOST_STREAMED):
        known = event.id or (resume_at.id if resume_at else None)
        if known and (event.id or event.retry is not None):
            resume_at = Event("", known, event.retry)
        if not event.data:
            continue
        message = parse(event.data)
        if request_id is not None and "method" not in message and message.get("id") == request_id:
            return Answer(answer.headers, message)
        on_message(message)
    return Answer(answer.headers, None, resume_at)


async def _events(chunks: AsyncIterator[bytes], *, most: int | None) -> AsyncIterator[Event]:
    """
    Raises:
        BadAnswer: an event is larger than one answer may be, or the stream is endless.
    """
    reader = Events(longest=MOST_BYTES)
    taken = 0
    async for chunk in chunks:
        taken += len(chunk)
        if most is not None and taken > most:
            raise BadAnswer("The MCP server's answer has no end.")
        try:
            found = reader.feed(chunk)
        except EventTooLong:
            raise _too_large() from None
        for event in found:
            yield event


def parse(text: bytes | str) -> Message:
    """
    Raises:
        BadAnswer: no JSON object, or nested without end.
    """
    try:
        message: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadAnswer(f"The MCP server's answer is not JSON: {error.msg}.") from error
    if not isinstance(message, dict):
        raise BadAnswer("The MCP server's answer is no JSON-RPC message.")
    return message


def result_of(message: Message | None) -> JsonObject:
    """
    Raises:
        RpcFault: it is an error.
        BadAnswer: it is neither a result nor an error.
    """
    if message is None:
        raise LinkLost("The MCP server ended its answer without a result.", sent=True)
    result = message.get("result")
    if isinstance(result, dict):
        return result
    if "error" in message:
        raise RpcFault.of(message["error"])
    raise BadAnswer("The MCP server's answer has neither a result nor an error.")


async def _whole(answer: StreamedResponse) -> bytes:
    body = await answer.read(MOST_BYTES)
    if body is None:
        raise _too_large()
    return body


async def _refusal(answer: StreamedResponse, url: str) -> Message | None:
    """An answer other than 200: a JSON-RPC error inside it says more than the status."""
    status, place = answer.status, without_secrets(url)
    if status in (202, 204):
        return None
    if status == 503:
        raise SessionLost(f"{place} is not available (HTTP 503).")
    if 300 <= status < 400:
        raise RpcFault(
            f"{place} redirects to {without_secrets(answer.headers.get('Location', 'nowhere'))}; use that address.",
            status=status,
        )
    error = await _inner_error(answer)
    if error is not None and (status < 500 or error.code):
        raise error
    if status >= 500:
        raise LinkLost(f"{place} failed with HTTP {status}.", sent=True)
    if status in (401, 403):
        raise RpcFault(f"{place} refused our credentials (HTTP {status}).", status=status)
    raise RpcFault(f"{place} answered with HTTP {status}.", status=status)


async def _inner_error(answer: StreamedResponse) -> RpcFault | None:
    if not answer.headers.get("Content-Type", "").startswith("application/json"):
        return None
    try:
        message = parse(await _whole(answer))
    except BadAnswer:
        return None
    return RpcFault.of(message["error"], answer.status) if isinstance(message.get("error"), dict) else None


def _too_large() -> BadAnswer:
    return BadAnswer(
        f"The MCP server's answer is larger than {MOST_BYTES // 1024 // 1024} MiB.",
        code=ErrorCode.TOO_LARGE,
        suggestion="Ask for less, with a filter or a limit.",
    )
