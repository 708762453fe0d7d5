"""From a URL, a file, an upload or pasted text to plain values."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import orjson

from toolyard.core.errors import DocumentError
from toolyard.core.json import JsonValue
from toolyard.providers.openapi.yaml_reader import read_yaml

LARGEST_DOCUMENT = 64 * 1024 * 1024
_SAVE_AS_UTF8 = "Save it as UTF-8 and import it again."


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """Where a document comes from. `value` is the URL, the path, the text or the bytes, by `kind`."""

    kind: Literal["url", "file", "text", "bytes"]
    value: str | builtins.bytes

    @staticmethod
    def url(url: str) -> DocumentSource:
        return DocumentSource("url", url)

    @staticmethod
    def file(path: str | Path) -> DocumentSource:
        return DocumentSource("file", str(Path(path).absolute()))

    @staticmethod
    def text(text: str) -> DocumentSource:
        return DocumentSource("text", text)

    @staticmethod
    def bytes(data: builtins.bytes) -> DocumentSource:
        return DocumentSource("bytes", data)

    @property
    def location(self) -> str:
        """The URL or the path; `""` for what was given as it is."""
        return self.value if self.kind in ("url", "file") and isinstance(self.value, str) else ""

    @property
    def given(self) -> builtins.bytes | None:
        """The document itself, when it was given as it is."""
        if self.kind in ("url", "file"):
            return None
        return self.value.encode("utf-8", "replace") if isinstance(self.value, str) else self.value


def read_file(path: Path) -> bytes:
    """
    Raises:
        DocumentError: no such file, no right to read it, or larger than 64 MiB.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_DOCUMENT + 1)
    except OSError as error:
        raise DocumentError(
            f"{path} cannot be read: {error.strerror}.", suggestion="Check the path and its permissions."
        ) from error
    return check_size(data, str(path))


def check_size(data: bytes, name: str) -> bytes:
    """
    Raises:
        DocumentError: larger than 64 MiB.
    """
    if len(data) > LARGEST_DOCUMENT:
        raise too_large(name)
    return data


def too_large(name: str) -> DocumentError:
    return DocumentError(
        f"{name or 'The document'} is larger than {LARGEST_DOCUMENT // 1024 // 1024} MiB.",
        suggestion="Import a smaller document, or one file per part of the API.",
    )


def parse(data: bytes, *, repaired: Callable[[str], None] = lambda _: None) -> JsonValue:
    """JSON when it begins with `{` or `[`, else YAML.

    Raises:
        DocumentError: not UTF-8, neither JSON nor YAML (with line and column), or an HTML page.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    start = data[:1024].lstrip()
    if not start:
        raise DocumentError("The document is empty.", suggestion="Check the address or file it comes from.")
    if start[:1] == b"<":
        raise _markup(start)
    if start[:1] in (b"{", b"["):
        return _parse_json(data, repaired)
    return read_yaml(_decode(data), repaired=repaired)


def _parse_json(data: bytes, repaired: Callable[[str], None]) -> JsonValue:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        broken = DocumentError(
            f"The document is no valid JSON at line {error.lineno}, column {error.colno}: {error.msg}.",
            suggestion="Correct it and import again.",
        )
    text = _decode(data)
    if re.match(r"\s*(\[|\{\s*[\"}]|\{$)", text):
        raise broken
    try:
        value = read_yaml(text, repaired=repaired)  # YAML in flow style begins with a brace, and a bare key
    except DocumentError:
        raise broken from None
    repaired("the document is YAML, though it begins like JSON")
    return value


def _decode(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DocumentError("The document is UTF-16, not UTF-8.", suggestion=_SAVE_AS_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(
            f"The document is not UTF-8: line {line} has the byte 0x{data[error.start]:02x}.", suggestion=_SAVE_AS_UTF8
        ) from error


def _markup(start: bytes) -> DocumentError:
    if re.match(rb"<!doctype html|<html|<head|<body|<!--", start, re.IGNORECASE):
        return DocumentError(
            "This is an HTML page, not an OpenAPI document.",
            suggestion="Use the address of the JSON or YAML itself; documentation pages usually link to it.",
        )
    return DocumentError(
        "This is XML, not an OpenAPI document.", suggestion="OpenAPI documents are JSON or YAML; WSDL is not supported."
    )
