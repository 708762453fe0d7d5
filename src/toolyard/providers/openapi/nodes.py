"""Reading a stranger's document: a value of the wrong type is an empty one, never an exception."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from toolyard.core.json import JsonValue

Node = dict[str, JsonValue]
"""A JSON object as the loaders make it."""


DAMAGE = (TypeError, ValueError, LookupError, AttributeError, RecursionError)
"""What code that expects a sound document may raise on a damaged one."""


def as_object(value: object) -> Node:
    return cast("Node", value) if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[JsonValue]:
    return cast("list[JsonValue]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts(value: object) -> list[str]:
    return [item for item in as_list(value) if isinstance(item, str)]


class Place(NamedTuple):
    """Where a node stands: its file (`""` for the root document) and the JSON pointer in it."""

    uri: str
    pointer: str

    def child(self, *tokens: str | int) -> Place:
        pointer = self.pointer
        for token in tokens:
            pointer = f"{pointer}/{token if isinstance(token, int) else escape(token)}"
        return Place(self.uri, pointer)

    def __str__(self) -> str:
        return f"{self.uri}#{self.pointer}"


ROOT = Place("", "")


def escape(token: str) -> str:
    """A key as a step of a JSON pointer (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token
