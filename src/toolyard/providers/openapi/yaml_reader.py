"""YAML to plain JSON values: the 1.2 core types only, string keys, and no way to blow up.

Built on libyaml's event stream instead of PyYAML's loaders: their composer recurses in C and dies of a segmentation
fault on deep nesting, and `safe_load` reads `200:` as an integer key, `NO` as false, `2020-01-01` as a date and
`12:30:45` as 45045.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from toolyard.core.errors import DocumentError
from toolyard.core.json import JsonValue

MOST_NODES = 20_000_000
"""Counted with aliases expanded: an alias bomb is a few hundred bytes that walk as billions of nodes."""
DEEPEST = 1_000

_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, JsonValue] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_MAY_BE_NUMBER = frozenset("0123456789+-.")
_PARSER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_STRING_TAG = "tag:yaml.org,2002:str"


@dataclass(slots=True)
class _Frame:
    """A collection being filled. `size` counts its nodes with aliases expanded."""

    value: dict[str, JsonValue] | list[JsonValue]
    anchor: str | None
    size: int = 1
    key: str | None = None
    merges: list[JsonValue] = field(default_factory=list[JsonValue])


class _Stream:
    """libyaml's events, with its errors as ours."""

    def __init__(self, text: str) -> None:
        try:
            self._next = cast("Any", _PARSER(text)).get_event
        except yaml.YAMLError as error:
            raise _broken(error) from error

    def next(self) -> Any:
        try:
            return self._next()
        except (yaml.YAMLError, ValueError) as error:
            raise _broken(error) from error


def read_yaml(text: str, *, repaired: Callable[[str], None] = lambda _: None) -> JsonValue:
    """The first document of `text` as JSON values; keys are strings, integers beyond 64 bits become floats.

    Args:
        repaired: told in words of each duplicate key (the last one counts).

    Raises:
        DocumentError: no YAML (with line and column), nested too deeply, or an alias bomb.
    """
    return _Reader(_Stream(text), repaired).read()


class _Reader:
    def __init__(self, stream: _Stream, repaired: Callable[[str], None]) -> None:
        self._stream = stream
        self._repaired = repaired
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[JsonValue, int]] = {}
        self._root: JsonValue = None
        self._done = False

    def read(self) -> JsonValue:
        while not self._done:
            event = self._stream.next()
            match event:
                case None | yaml.StreamEndEvent() | yaml.DocumentEndEvent():
                    self._done = True
                case yaml.ScalarEvent():
                    self._scalar(event)
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self._open(event)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._close(event)
                case yaml.AliasEvent():
                    self._alias(event)
                case _:
                    pass
        return self._root

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        text = cast("str", event.value)
        if not text.isascii():
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        frame = self._stack[-1] if self._stack else None
        if frame is not None and isinstance(frame.value, dict) and frame.key is None:
            frame.key = text
            return
        plain = event.implicit[0] and cast("str | None", event.tag) != _STRING_TAG
        value = _plain(text) if plain else text
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, 1, event)

    def _open(self, event: Any) -> None:
        if len(self._stack) >= DEEPEST:
            raise DocumentError(
                f"The document is nested more than {DEEPEST:,} levels deep ({_where(event)}).",
                suggestion="No real API description is; check where it comes from.",
            )
        frame = self._stack[-1] if self._stack else None
        if frame is not None and isinstance(frame.value, dict) and frame.key is None:
            raise DocumentError(f"A list or object is used as a key ({_where(event)}).", suggestion="Keys are text.")
        value: dict[str, JsonValue] | list[JsonValue] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._stack.append(_Frame(value, event.anchor))

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        if isinstance(frame.value, dict):
            for merged in frame.merges:
                for key, value in _mappings(merged):
                    frame.value.setdefault(key, value)
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, frame.size)
        self._put(frame.value, frame.size, event)

    def _alias(self, event: yaml.AliasEvent) -> None:
        name = cast("str", event.anchor)
        if name not in self._anchors:
            inside = any(frame.anchor == name for frame in self._stack)
            what = "refers to something that contains it" if inside else "is not defined before its use"
            raise DocumentError(f"The alias *{name} {what} ({_where(event)}).", suggestion="Correct it, or use $ref.")
        value, size = self._anchors[name]
        frame = self._stack[-1] if self._stack else None
        if frame is not None and isinstance(frame.value, dict) and frame.key is None:
            frame.key = str(value)
            return
        self._put(value, size, event)

    def _put(self, value: JsonValue, size: int, event: Any) -> None:
        if not self._stack:
            self._root = value
            return
        frame = self._stack[-1]
        frame.size += size
        if frame.size > MOST_NODES:
            raise DocumentError(
                f"With its aliases expanded the document has more than {MOST_NODES:,} values ({_where(event)}).",
                suggestion="This is how a YAML bomb looks; check where the document comes from.",
            )
        if isinstance(frame.value, list):
            frame.value.append(value)
            return
        key, frame.key = frame.key or "", None
        if key == "<<" and isinstance(value, dict | list):
            frame.merges.append(value)
            return
        if key in frame.value:
            self._repaired(f"the key {key!r} is there twice ({_where(event)}); the last one counts")
        frame.value[key] = value


def _plain(text: str) -> JsonValue:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _MAY_BE_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        return _integer(text)
    return float(text) if _FLOAT.fullmatch(text) and abs(float(text)) != float("inf") else text


def _integer(text: str) -> JsonValue:
    if len(text) > 300:
        return text
    number = int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    return number if -(2**63) <= number < 2**64 else float(number)


def _mappings(merged: JsonValue) -> list[tuple[str, JsonValue]]:
    sources = cast("list[object]", merged if isinstance(merged, list) else [merged])
    return [
        pair for source in sources if isinstance(source, dict) for pair in cast("dict[str, JsonValue]", source).items()
    ]


def _where(event: Any) -> str:
    return f"line {event.start_mark.line + 1}, column {event.start_mark.column + 1}"


def _broken(error: yaml.YAMLError | ValueError) -> DocumentError:
    place, problem = "", str(error)
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = ", ".join(part for part in (error.context, error.problem) if part)
    return DocumentError(f"The document is no valid YAML{place}: {problem}.", suggestion="Correct it and import again.")
