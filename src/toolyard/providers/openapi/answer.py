"""From an HTTP answer to a result, or to the failure that a model is told."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import urlsplit

import orjson

from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue
from toolyard.egress import MIB, Response
from toolyard.providers.openapi.media import bare, kind_of

LONGEST_QUOTE = 500
_KEPT_HEADERS = re.compile(
    r"location|content-location|link|etag|last-modified|retry-after|(x-)?rate-?limit.*|x-request-id|x-total-count",
    re.IGNORECASE,
)
_CHARSET = re.compile(r"charset=\"?([A-Za-z0-9_.:-]+)", re.IGNORECASE)


def result_of(answer: Response) -> ToolResult:
    """An answer below 400, by its actual Content-Type and never by the document's.

    Status and the headers worth keeping are in `details`; `Link` is shown to the model too, because pages are there.
    """
    details: JsonObject = {"status": answer.status, "headers": kept_headers(answer.headers)}
    result = replace(_content(answer), details=details)
    link = answer.headers.get("Link")
    if link is None or not answer.body:
        return result
    return replace(result, content=(*result.content, {"type": "text", "text": f"Link: {link}"}))


def _content(answer: Response) -> ToolResult:
    if not answer.body or 300 <= answer.status < 400:
        return ToolResult.of_value(_nothing(answer))
    content_type = answer.headers.get("Content-Type", "")
    media_type = bare(content_type)
    if answer.truncated:
        return ToolResult.of_text(_text(answer.body, content_type) + _marker(answer))
    if kind_of(media_type) == "json":
        return _json(answer, content_type)
    if media_type.startswith("image/"):
        data = b64encode(answer.body).decode()
        return ToolResult(content=({"type": "image", "data": data, "mimeType": media_type},))
    text = _is_text(media_type, answer.body)
    return ToolResult.of_text(_text(answer.body, content_type)) if text else _resource(answer, media_type)


def _json(answer: Response, content_type: str) -> ToolResult:
    """A body that says it is JSON and is not stays readable as text: the call was made."""
    try:
        return ToolResult.of_value(orjson.loads(answer.body))
    except orjson.JSONDecodeError:
        return ToolResult.of_text(_text(answer.body, content_type))


def _nothing(answer: Response) -> JsonValue:
    told: dict[str, JsonValue] = {"status": answer.status}
    for name in ("Location", "Link"):
        if name in answer.headers:
            told[name.lower()] = answer.headers[name]
    if answer.cut_by == "time":
        told["note"] = "the answer had begun, but nothing of it came in time"
    return told


def _resource(answer: Response, media_type: str) -> ToolResult:
    """Bytes as an embedded resource (MCP `resource` block with a `blob`)."""
    name = urlsplit(answer.url).path.rpartition("/")[2] or "answer"
    resource = {
        "uri": f"attachment:{name}",
        "mimeType": media_type or "application/octet-stream",
        "blob": b64encode(answer.body).decode(),
    }
    return ToolResult(content=({"type": "resource", "resource": resource},))


def _is_text(media_type: str, body: bytes) -> bool:
    if kind_of(media_type) in ("text", "ndjson", "form", "multipart"):
        return True
    return not media_type and b"\0" not in body[:1024]


def _text(body: bytes, content_type: str) -> str:
    charset = _CHARSET.search(content_type)
    try:
        return body.decode(charset[1] if charset else "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def _marker(answer: Response) -> str:
    if answer.cut_by == "time":
        return "\n[cut: the answer did not end within the time limit; this is what came]"
    return f"\n[cut: the answer is longer than {len(answer.body) / MIB:.3g} MiB; this is its beginning]"


def kept_headers(headers: Mapping[str, str]) -> dict[str, JsonValue]:
    return {name.lower(): value for name, value in headers.items() if _KEPT_HEADERS.fullmatch(name)}


# --- failures

_SUGGESTIONS: Mapping[int, str] = {
    400: "Check the arguments against the tool's schema.",
    403: "The credentials of this provider may not do that.",
    404: "Check the identifiers in the arguments; what they name may not exist.",
    405: "The API does not offer this operation; its document may be out of date.",
    409: "The state at the API is another one by now; read it again first.",
    413: "Send less at once.",
    422: "Check the arguments against the tool's schema.",
}


def failure_of(answer: Response) -> CallError:
    """A status of 400 or more: status, host and the first 500 characters of what the API says."""
    host = urlsplit(answer.url).netloc.rpartition("@")[2]
    try:
        phrase = f"{answer.status} {HTTPStatus(answer.status).phrase}"
    except ValueError:
        phrase = str(answer.status)
    said = _quote(answer)
    message = f"{host} answered {phrase}{f': {said}' if said else '.'}"
    if answer.status == HTTPStatus.UNAUTHORIZED:
        return CallError(
            ErrorCode.REAUTH_REQUIRED,
            message,
            suggestion="An operator has to set or renew this provider's credentials.",
        )
    return CallError(ErrorCode.UPSTREAM, message, suggestion=_suggestion(answer))


def _suggestion(answer: Response) -> str:
    wait = answer.headers.get("Retry-After")
    if answer.status in (429, 503) and wait:
        return f"Try again after {wait} s." if wait.isdecimal() else f"Try again after {wait}."
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        return "Wait before calling it again."
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "The failure is on the API's side; try again later."
    return _SUGGESTIONS.get(answer.status, _SUGGESTIONS[400])


def _quote(answer: Response) -> str:
    content_type = answer.headers.get("Content-Type", "")
    if not _is_text(bare(content_type), answer.body) and kind_of(content_type) != "json":
        return ""
    text = _text(answer.body[: LONGEST_QUOTE * 40], content_type)
    if "html" in content_type or text.lstrip()[:1] == "<":
        text = re.sub(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", " ", text, flags=re.DOTALL | re.IGNORECASE)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"
