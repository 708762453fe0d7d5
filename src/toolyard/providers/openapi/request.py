"""From arguments to a request: target, headers and body, exactly as they go on the wire."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote

from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue
from toolyard.providers.openapi.model import Argument, Operation
from toolyard.providers.openapi.payload import Field, Payload, write_body
from toolyard.providers.openapi.wire import in_cookie, in_header, in_path, in_query

_HOLE = re.compile(r"(\{[^{}]*\})")
_LITERAL_SAFE = "/:@!$&'()*+,;=-._~%"
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Request:
    """`target` is path and query, percent-encoded, to be joined to the server's address as it is."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None


def build_request(
    operation: Operation, arguments: JsonObject, *, idempotency_key: str = "", boundary: str | None = None
) -> Request:
    """
    Raises:
        CallError: `invalid_arguments`, when a value cannot be put where it belongs.
    """
    by_place: dict[str, list[Field]] = {"path": [], "query": [], "header": [], "cookie": [], "body": []}
    for argument in operation.arguments:
        if argument.key in arguments:
            by_place[argument.place].append(Field(argument, arguments[argument.key]))
    payload = write_body(operation.body, by_place["body"], boundary=boundary) if operation.body else None
    return Request(
        method=operation.method,
        target=_path(operation, by_place["path"]) + _query(operation, by_place["query"]),
        headers=tuple(_headers(operation, by_place["header"], by_place["cookie"], payload, idempotency_key)),
        body=payload.content if payload else None,
    )


@lru_cache(maxsize=4096)
def _template(path: str) -> tuple[str, ...]:
    """A path cut at its holes: encoded literal, `{name}`, literal, ... so that every second part is a hole.

    A `#` and what follows only tells operations apart.
    """
    parts = _HOLE.split(path.partition("#")[0].partition("?")[0])
    return tuple(part if index % 2 else quote(part, safe=_LITERAL_SAFE) for index, part in enumerate(parts))


def _path(operation: Operation, fields: Sequence[Field]) -> str:
    by_name = {field.argument.name: field for field in fields}
    path = "".join(
        [_filled(part[1:-1], by_name) if index % 2 else part for index, part in enumerate(_template(operation.path))]
    )
    if "/." in path or "%2" in path:
        _check_segments(path, operation, by_name)
    return path


def _check_segments(path: str, operation: Operation, by_name: Mapping[str, Field]) -> None:
    for segment in path.split("/"):
        if unquote(segment) in (".", ".."):
            raise _refused(next(iter(by_name), operation.path), f"would make the path segment {segment!r}")


def _filled(hole: str, by_name: Mapping[str, Field]) -> str:
    """What goes into one hole. An empty one is refused: `DELETE /users/` would hit the whole collection."""
    name = hole.removeprefix("+").removesuffix("*")
    field = by_name.get(name)
    if field is None or field.value is None:
        raise CallError(ErrorCode.INVALID_ARGUMENTS, f"{name!r} is missing: it is part of the path.")
    if hole.startswith("+") and isinstance(field.value, str):
        text = quote(field.value, safe="/")
    else:
        text = in_path(field.argument, field.value)
    if not text.strip("/"):
        raise _refused(field.argument.key, "is empty")
    return text


def _refused(key: str, why: str) -> CallError:
    return CallError(
        ErrorCode.INVALID_ARGUMENTS,
        f"{key!r} {why}, which would call another address.",
        suggestion="Give the identifier of one thing.",
    )


def _query(operation: Operation, fields: Sequence[Field]) -> str:
    fixed = operation.path.partition("#")[0].partition("?")[2]
    pieces = [quote(fixed, safe=_LITERAL_SAFE + "?")] if fixed else []
    for field in fields:
        pieces += in_query(field.argument, field.value)
    return f"?{'&'.join(pieces)}" if pieces else ""


def _headers(
    operation: Operation,
    headers: Sequence[Field],
    cookies: Sequence[Field],
    payload: Payload | None,
    idempotency_key: str,
) -> list[tuple[str, str]]:
    made = [("Accept", operation.accept), *operation.fixed_headers]
    if payload is not None:
        made.append(("Content-Type", payload.content_type))
    made += [
        (field.argument.name, _header_value(field.argument, field.value))
        for field in headers
        if field.value is not None and field.value != []
    ]
    key_header = operation.idempotency_header
    if key_header and idempotency_key and not any(name == key_header for name, _ in made):
        made.append((key_header, idempotency_key))
    pairs = [pair for field in cookies for pair in in_cookie(field.argument, field.value)]
    if pairs:
        made.append(("Cookie", "; ".join(f"{name}={value}" for name, value in pairs)))
    return made


def _header_value(argument: Argument, value: JsonValue) -> str:
    text = in_header(argument, value)
    if _CONTROL.search(text):
        raise CallError(
            ErrorCode.INVALID_ARGUMENTS,
            f"{argument.key!r} holds a line break or another control character, which no header may.",
        )
    return text
