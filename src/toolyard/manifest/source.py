"""YAML into plain values, with the line of each, inside limits.

Scalars follow YAML 1.2's core schema: only `true` and `false` are booleans, so `codeMode: off` is a word
(docs/decisions/070).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import yaml
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, Event, ScalarEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from toolyard.manifest.problems import Field, Problem, Problems

LARGEST_FILE = 1_048_576
DEEPEST = 50
MOST_VALUES = 100_000

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

_NULL = re.compile(r"|~|null|Null|NULL")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


@dataclass(slots=True)
class Source:
    """One parsed file: its value, and where each field begins (lines count from 1)."""

    value: Plain
    lines: dict[Field, int] = field(default_factory=dict[Field, int])

    def line(self, place: Field) -> int | None:
        """The line of `place`, or of the nearest thing around it."""
        while place not in self.lines:
            if not place:
                return None
            place = place[:-1]
        return self.lines[place]


def read(data: bytes, problems: Problems) -> Source:
    """Parse one document. What is wrong goes to `problems`; the value is None when nothing can be read."""
    text = _decoded(data, problems)
    node = _composed(text, problems) if text is not None else None
    if node is not None:
        return _Builder(problems).build(node)
    if not problems:
        said, hint = "the file is empty.", "Begin with 'providers:' or 'agent_config:'."
        problems.add(Problem((), said, hint, line=1))
    return Source(None)


def _composed(text: str, problems: Problems) -> Node | None:
    try:
        if not _within_limits(_events(text), problems):
            return None
        return cast("Node | None", yaml.compose(text, Loader=yaml.CSafeLoader))  # pyright: ignore[reportUnknownMemberType]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        problems.add(Problem((), f"this is not YAML: {what}.", line=mark.line + 1 if mark else None))
    except yaml.reader.ReaderError as error:
        before = text.encode()[: error.position].decode(errors="ignore")
        code = ord(text[len(before)]) if len(before) < len(text) else 0
        said = f"this is not YAML: the character U+{code:04X} may not stand in it."
        problems.add(Problem((), said, line=before.count("\n") + 1))
    except (yaml.YAMLError, ValueError) as error:
        problems.add(Problem((), f"this is not YAML: {' '.join(str(error).split())}."))
    return None


def _decoded(data: bytes, problems: Problems) -> str | None:
    if len(data) > LARGEST_FILE:
        problems.add(Problem((), f"the file has {len(data):,} bytes; a manifest has at most {LARGEST_FILE:,}."))
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.add(Problem((), "the file is not UTF-8.", suggestion="Save it as UTF-8.", line=line))
        return None


def _events(text: str) -> Iterator[Event]:
    yield from cast("Iterator[Event]", yaml.parse(text, Loader=yaml.CSafeLoader))  # pyright: ignore[reportUnknownMemberType]


def _within_limits(events: Iterator[Event], problems: Problems) -> bool:
    """Composing recurses, so depth is looked at first, on the flat stream of events."""
    depth = aliases = 0
    for event in events:
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.tag is not None:
            said = f"the tag {event.tag} is not supported."
            problems.add(Problem((), said, suggestion="Write plain values only.", line=event.start_mark.line + 1))
            return False
        if isinstance(event, CollectionStartEvent):
            depth += 1
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        elif isinstance(event, AliasEvent):
            aliases += 1
        if depth > DEEPEST or aliases > MOST_VALUES:
            what = f"nested more than {DEEPEST} deep" if depth > DEEPEST else "full of aliases"
            problems.add(Problem((), f"the file is {what}.", line=event.start_mark.line + 1))
            return False
    return True


class _TooMuch(Exception):
    pass


class _Builder:
    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._lines: dict[Field, int] = {}
        self._left = MOST_VALUES

    def build(self, node: Node) -> Source:
        try:
            return Source(self._value(node, (), _line(node)), self._lines)
        except _TooMuch as error:
            suggestion = "Write it out without aliases (&name, *name)."
            self._problems.add(Problem((), f"the file {error}.", suggestion=suggestion, line=_line(node)))
            return Source(None)

    def _value(self, node: Node, place: Field, line: int) -> Plain:
        self._left -= 1
        if self._left < 0:
            raise _TooMuch(f"unfolds to more than {MOST_VALUES:,} values")
        if len(place) > DEEPEST:
            raise _TooMuch("contains itself")
        self._lines[place] = line
        if isinstance(node, MappingNode):
            return self._mapping(node, place)
        if isinstance(node, SequenceNode):
            return [self._value(item, (*place, index), _line(item)) for index, item in enumerate(node.value)]
        assert isinstance(node, ScalarNode)  # noqa: S101  (the only other kind of node there is)
        return str(node.value) if node.style else _plain(str(node.value))

    def _mapping(self, node: MappingNode, place: Field) -> dict[str, Plain]:
        found: dict[str, Plain] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._problems.add(Problem(place, "a field's name must be plain text.", line=_line(key_node)))
                continue
            key = str(key_node.value)
            if key == "<<" and not key_node.style:
                self._problems.add(Problem(place, "merge keys (<<) are not supported.", line=_line(key_node)))
            elif key in found:
                first = self._lines[(*place, key)]
                said = f"this field was given already in line {first}."
                self._problems.add(Problem((*place, key), said, line=_line(key_node)))
            else:
                found[key] = self._value(value_node, (*place, key), _line(key_node))
        return found


def _line(node: Node) -> int:
    return node.start_mark.line + 1


def _plain(text: str) -> Plain:
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if _FLOAT.fullmatch(text):
        word = text.lower().lstrip("+-")
        if word in (".inf", ".nan"):
            return math.nan if word == ".nan" else math.copysign(math.inf, -1 if text.startswith("-") else 1)
        return float(text)
    return text
