"""Request bodies as bytes: one writer per kind."""

from __future__ import annotations

import secrets
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonValue, dumps
from toolyard.providers.openapi.media import bare
from toolyard.providers.openapi.model import Argument, Body, BodyKind
from toolyard.providers.openapi.wire import as_text, encode, in_query

_OCTETS = "application/octet-stream"


class Payload(NamedTuple):
    content: bytes
    content_type: str


class File(NamedTuple):
    """Bytes that came as an argument, with the type and name that came along."""

    content: bytes
    content_type: str
    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """One argument of the body with its value."""

    argument: Argument
    value: JsonValue


def write_body(body: Body, fields: Sequence[Field], *, boundary: str | None = None) -> Payload | None:
    """The body of a request; None when nothing was given and nothing has to be sent.

    Raises:
        CallError: `invalid_arguments`, when what should be base64 is not.
    """
    given = [field for field in fields if field.value is not None]
    if not given and not (body.required and not body.whole):
        # `null` is a JSON document of its own where the whole body is one argument.
        if not (body.whole and fields and body.kind == "json"):
            return None
        given = list(fields)
    if body.kind == "multipart":
        return _multipart(body, given, boundary or f"toolyard-{secrets.token_hex(16)}")
    if body.kind == "form":
        return _form(body, given)
    if body.whole:
        return _WHOLE[body.kind](body, given[0].value)
    # Fields of a JSON body: null is a value there, and is kept.
    return Payload(dumps({field.argument.name: field.value for field in fields}), body.media_type)


def _json(body: Body, value: JsonValue) -> Payload:
    return Payload(dumps(value), _patch_type(body, value) or body.media_type)


def _patch_type(body: Body, value: JsonValue) -> str | None:
    """Several patch types: a list is a JSON patch, an object a merge patch."""
    wanted = "json-patch" if isinstance(value, Sequence) and not isinstance(value, str) else "merge-patch"
    ranked = sorted((name for name in body.choices if wanted in name), key=len)
    return ranked[0] if ranked else None


def _ndjson(body: Body, value: JsonValue) -> Payload:
    lines = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return Payload(b"".join(dumps(line) + b"\n" for line in lines), body.media_type)


def _text(body: Body, value: JsonValue) -> Payload:
    media_type = body.media_type if "charset" in body.media_type else f"{body.media_type}; charset=utf-8"
    return Payload(as_text(value).encode(), media_type)


def _bytes(body: Body, value: JsonValue) -> Payload:
    file = as_file(value, WHOLE_BODY)
    return Payload(file.content, file.content_type or _OCTETS if "*" in body.media_type else body.media_type)


def _base64(body: Body, value: JsonValue) -> Payload:
    return Payload(as_text(value).encode(), body.media_type)


def _any(body: Body, value: JsonValue) -> Payload:
    if isinstance(value, str):
        return Payload(value.encode(), "text/plain; charset=utf-8")
    return Payload(dumps(value), "application/json")


WHOLE_BODY = "body"
_WHOLE: Mapping[BodyKind, Callable[[Body, JsonValue], Payload]] = {
    "json": _json,
    "ndjson": _ndjson,
    "text": _text,
    "bytes": _bytes,
    "base64": _base64,
    "any": _any,
}


# --- forms


def _form(body: Body, fields: Sequence[Field]) -> Payload:
    """Space is `+`; a list repeats the name; an object is JSON text unless its encoding names a style."""
    pieces: list[str] = []
    for field in _spread(body, fields):
        argument, value = field.argument, field.value
        if argument.style:
            pieces += in_query(argument, value)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            pieces += [f"{encode(argument.name)}={encode(as_text(item))}" for item in value if item is not None]
        else:
            pieces.append(f"{encode(argument.name)}={encode(as_text(value))}")
    return Payload("&".join(pieces).replace("%20", "+").encode(), body.media_type)


def _spread(body: Body, fields: Sequence[Field]) -> list[Field]:
    """The fields of a form; those of one whole `body` argument have no encoding of their own."""
    if not body.whole:
        return [field for field in fields if field.value is not None]
    value = fields[0].value
    if not isinstance(value, Mapping):
        raise CallError(ErrorCode.INVALID_ARGUMENTS, "The body must be an object: it is sent as a form.")
    return [Field(Argument(name, "body", name), item) for name, item in value.items() if item is not None]


# --- multipart


def _multipart(body: Body, fields: Sequence[Field], boundary: str) -> Payload:
    parts: list[bytes] = []
    for field in _spread(body, fields):
        argument, value = field.argument, field.value
        items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        parts += [_part(argument, item, boundary) for item in items if item is not None]
    content = b"".join(parts) + f"--{boundary}--\r\n".encode()
    return Payload(content, f"{bare(body.media_type)}; boundary={boundary}")


def _part(argument: Argument, value: JsonValue, boundary: str) -> bytes:
    declared = argument.media_type.partition(",")[0].strip()
    concrete = declared if declared and "*" not in declared else ""
    disposition = f'form-data; name="{_quoted(argument.name)}"'
    if argument.raw == "bytes":
        file = as_file(value, argument.key)
        content, content_type = file.content, concrete or file.content_type or _OCTETS
        disposition += f'; filename="{_quoted(file.name or argument.name)}"'
    elif isinstance(value, Mapping):
        content, content_type = dumps(value), concrete or "application/json"
    else:
        content, content_type = as_text(value).encode(), concrete or "text/plain; charset=utf-8"
    head = f"--{boundary}\r\nContent-Disposition: {disposition}\r\nContent-Type: {content_type}\r\n\r\n"
    return head.encode() + content + b"\r\n"


def _quoted(name: str) -> str:
    """As browsers write names of fields and files (HTML, multipart/form-data encoding algorithm)."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def as_file(value: JsonValue, key: str) -> File:
    """Base64, or `data:<type>;name=<file>;base64,<...>`.

    Raises:
        CallError: `invalid_arguments`.
    """
    text = value if isinstance(value, str) else ""
    content_type = name = ""
    if text.startswith("data:"):
        head, _, text = text.removeprefix("data:").partition(",")
        content_type, *parameters = head.split(";")
        name = next((unquote(each[5:]) for each in parameters if each.startswith("name=")), "")
        if "base64" not in parameters:
            return File(unquote(text).encode(), _header_safe(content_type), name)
    try:
        return File(b64decode("".join(text.split()), validate=True), _header_safe(content_type), name)
    except (NoBase64, ValueError) as error:
        raise CallError(
            ErrorCode.INVALID_ARGUMENTS,
            f"{key!r} must hold bytes as base64, and does not.",
            suggestion="Give plain base64, or data:<type>;name=<file>;base64,<...>.",
        ) from error


def _header_safe(content_type: str) -> str:
    return content_type if content_type.isprintable() and content_type.isascii() else ""
