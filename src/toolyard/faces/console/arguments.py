"""Arguments for people: one row per value, what an edit changed, and the request that an imported operation makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.tool import Tool
from toolyard.faces.console.forms.harvest import parse_json
from toolyard.faces.console.forms.shapes import obj, words

MOST_ROWS = 80
DEEPEST = 6
LONGEST_VALUE = 600
_SHORT_LIST = 120
_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}")


@dataclass(frozen=True, slots=True)
class ArgumentRow:
    """`value` is None for an object or a list whose parts follow; `more` counts the characters that are not shown."""

    name: str
    depth: int
    value: str | None
    described: str
    more: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs; None where there is none. `place` is dotted: `pet.tags.0`."""

    place: str
    before: str | None
    after: str | None


def read_arguments(text: str | None) -> JsonObject:
    """The object that a record keeps as text."""
    try:
        return obj(parse_json(text or "{}"))
    except ValueError:
        return {}


def argument_rows(arguments: JsonObject, schema: JsonObject) -> tuple[list[ArgumentRow], int]:
    """At most 80 rows, and how many values were left out."""
    rows = list(_rows(arguments, schema, 0))
    return rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS)


def _rows(arguments: Mapping[str, JsonValue], schema: JsonObject, depth: int) -> Iterator[ArgumentRow]:
    properties = obj(schema.get("properties"))
    for name, value in arguments.items():
        inner = obj(properties.get(name))
        described = words(inner.get("description"))[:200]
        text = _in_one_line(value) if depth < DEEPEST else dumps(value).decode()
        if text is not None:
            yield ArgumentRow(name, depth, text[:LONGEST_VALUE], described, max(0, len(text) - LONGEST_VALUE))
            continue
        yield ArgumentRow(name, depth, None, described)
        if isinstance(value, Mapping):
            yield from _rows(value, inner, depth + 1)
        elif isinstance(value, list | tuple):
            numbered = {str(number): one for number, one in enumerate(value, 1)}
            items: dict[str, JsonValue] = dict.fromkeys(numbered, inner.get("items"))
            yield from _rows(numbered, {"properties": items}, depth + 1)


def _in_one_line(value: JsonValue) -> str | None:
    """Text as it is, other plain values and short lists of them as JSON; None for what needs rows of its own."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return None if value else "{}"
    text = dumps(value).decode()
    if isinstance(value, list | tuple) and value:
        plain = not any(isinstance(one, Mapping | list | tuple) for one in value)
        return text if plain and len(text) <= _SHORT_LIST else None
    return text


def changes(before: JsonObject, after: JsonObject) -> list[Change]:
    """Value by value, in the order of the first and then of the second."""
    old, new = dict(_leaves(before, ())), dict(_leaves(after, ()))
    return [
        Change(".".join(place), old.get(place), new.get(place))
        for place in dict.fromkeys([*old, *new])
        if old.get(place) != new.get(place)
    ]


def _leaves(value: JsonValue, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*place, name))
    elif isinstance(value, list | tuple) and value:
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*place, str(number)))
    elif place:
        yield place, dumps(value).decode()[:LONGEST_VALUE]


def request_line(tool: Tool, arguments: JsonObject) -> str:
    """`DELETE /pets/17` for an imported operation; empty for other tools. A missing value leaves its placeholder."""
    method, path = tool.origin.get("method", ""), tool.origin.get("path", "")
    if not (method and path):
        return ""
    found = {**obj(arguments.get("path")), **arguments}

    def filled(match: re.Match[str]) -> str:
        value = found.get(match[1])
        known = isinstance(value, str | int | float) and value != ""
        return quote(str(value), safe="")[:100] if known else match[0]

    return f"{method.upper()} {_PLACEHOLDER.sub(filled, path)}"
