"""The tree of fields -> JSON, with what could not be read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from toolyard.core.json import JsonValue
from toolyard.faces.console.forms.sources import ABSENT, Absent, Maybe
from toolyard.faces.console.forms.tree import Choice, Group, Leaf, Node, Raw, Rows

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,400})")
_LONG_DIGITS = re.compile(r"\d{19}")
_LONGEST_NUMBER = 400


@dataclass(frozen=True, slots=True)
class Harvest:
    """`value` is always there: what cannot be read stays in it as text, so that nothing typed is lost."""

    value: Maybe
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    """Form name of the field (`Spot.name`) -> what is wrong and what to do."""


def harvest(node: Node) -> Harvest:
    problems: dict[str, str] = {}
    return Harvest(_value(node, problems), problems)


def parse_json(text: str) -> JsonValue:
    """JSON as orjson understands it, but integers of any length keep their digits.

    Raises:
        ValueError: not JSON; the message says at which line and column.
    """
    if not text.strip():
        raise ValueError("This is empty. Write a JSON value, such as {}.")
    try:
        value: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"This is not JSON: {error.msg} (line {error.lineno}, column {error.colno}).") from None
    return json.loads(text) if _LONG_DIGITS.search(text) else value


def _value(node: Node, problems: dict[str, str]) -> Maybe:
    match node:
        case Leaf():
            return _leaf(node, problems)
        case Raw():
            return _json(node.text, node.spot.name, problems)
        case Group():
            return _group(node, problems)
        case Rows():
            return _rows(node, problems)
        case Choice():
            if node.child is not None:
                return _value(node.child, problems)
            return None if node.spot.required and node.nullable else ABSENT


def _leaf(leaf: Leaf, problems: dict[str, str]) -> Maybe:
    if leaf.text == "":
        return None if leaf.nullable and leaf.spot.required else ABSENT
    if leaf.kind == "string":
        return leaf.text
    if leaf.control == "select":
        return _json(leaf.text, leaf.spot.name, problems)
    text = leaf.text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and len(text) <= _LONGEST_NUMBER:
        return float(text)
    word = "a whole number, such as 12" if leaf.integer else "a number, such as 12 or 0.5"
    problems[leaf.spot.name] = f"Enter {word}."
    return leaf.text


def _json(text: str, name: str, problems: dict[str, str]) -> Maybe:
    if not text.strip():
        return ABSENT
    try:
        return parse_json(text)
    except ValueError as error:
        problems[name] = str(error)
        return text


def _group(group: Group, problems: dict[str, str]) -> Maybe:
    found: dict[str, JsonValue] = {}
    for key, child in zip(group.keys, group.children, strict=True):
        value = _value(child, problems)
        if not isinstance(value, Absent):
            found[key] = value
    if group.more:
        more = _json(group.more, f"{group.spot.name}~more", problems)
        if isinstance(more, Mapping):
            found.update({key: value for key, value in more.items() if key not in found})
        elif not isinstance(more, Absent):
            problems.setdefault(f"{group.spot.name}~more", 'Write a JSON object, such as {"name": "value"}.')
    return found if found or group.spot.required else ABSENT


def _rows(rows: Rows, problems: dict[str, str]) -> Maybe:
    found: list[JsonValue] = []
    for row in rows.rows:
        value = _value(row, problems)
        if isinstance(value, Absent):
            problems.setdefault(row.spot.name, "Fill this in, or remove the row.")
        else:
            found.append(value)
    return found if found or rows.spot.required else ABSENT


def same(one: Maybe, other: Maybe) -> bool:
    """Equal as JSON: true is not 1, and 1 is not 1.0."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and one == other


def locate(node: Node, steps: Sequence[str]) -> Node:
    """The field nearest to the place in the value that `steps` (keys and indexes) name."""
    here = node
    for step in steps:
        while isinstance(here, Choice) and here.child is not None:
            here = here.child
        if isinstance(here, Group) and step in here.keys:
            here = here.children[here.keys.index(step)]
        elif isinstance(here, Rows) and step.isdecimal() and int(step) < len(here.rows):
            here = here.rows[int(step)]
        else:
            break
    return here
