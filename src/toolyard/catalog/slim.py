"""A tool's input schema as short as a list of candidates can bear: without references, and at most so long and deep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.schema import Schema

LONGEST_SCHEMA = 6_000
"""Bytes of JSON."""
DEEPEST = 10
_KEPT_ALWAYS = ("type", "enum", "const", "format", "default")
_CUT_DESCRIPTION = 120
_MAPS = ("properties", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not")
_NO_INPUT: JsonObject = {}


@lru_cache(maxsize=4096)
def slim_schema(schema: Schema) -> JsonObject:
    """`{}` for a tool without inputs. A short schema without references stays as it is; a long one loses what lies
    deep and long descriptions, so it may allow more than the tool does: the whole one validates all the same."""
    root = schema.root
    if not any(root.get(key) for key in ("properties", "patternProperties", "$ref", "required", *_LISTS)):
        return root if root.get("additionalProperties") else _NO_INPUT
    document = {key: value for key, value in schema.document().items() if key != "$schema"}
    if "$defs" not in document and "definitions" not in document and len(dumps(document)) <= LONGEST_SCHEMA:
        return document
    for depth in range(DEEPEST, 0, -1):
        slim = _Pruner(document, depth).pruned()
        if len(dumps(slim)) <= LONGEST_SCHEMA:
            return slim
    return _names_only(document)


class _Pruner:
    """Writes a schema out to a depth, references opened. Gives up on one as soon as it is far too long."""

    def __init__(self, document: JsonObject, depth: int) -> None:
        self._document = document
        self._depth = depth
        self._left = 4 * LONGEST_SCHEMA // 20

    def pruned(self) -> JsonObject:
        root = self._schema(self._document, self._depth, frozenset())
        return root if isinstance(root, Mapping) else {}

    def _schema(self, value: JsonValue, depth: int, opened: frozenset[str]) -> JsonValue:
        if not isinstance(value, Mapping):
            return value
        self._left -= 1
        reference = value.get("$ref")
        if isinstance(reference, str):
            target = None if reference in opened else _at(self._document, reference)
            if target is None:
                return {"description": _short(value.get("description"))} if value.get("description") else {}
            beside = {key: item for key, item in value.items() if key != "$ref"}
            return self._schema({**target, **beside}, depth, opened | {reference})
        if depth <= 0 or self._left <= 0:
            return {key: value[key] for key in _KEPT_ALWAYS if key in value}
        slim: dict[str, JsonValue] = {}
        for key, item in value.items():
            if key in ("$defs", "definitions", "$schema", "examples", "example", "title"):
                continue
            if key in _MAPS and isinstance(item, Mapping):
                slim[key] = {name: self._schema(one, depth - 1, opened) for name, one in item.items()}
            elif key in _LISTS and isinstance(item, Sequence) and not isinstance(item, str):
                slim[key] = [self._schema(one, depth - 1, opened) for one in item]
            elif key in _SINGLE:
                slim[key] = self._schema(item, depth - 1, opened)
            elif key == "description":
                slim[key] = _short(item)
            else:
                slim[key] = item
        return slim


def _names_only(document: JsonObject) -> JsonObject:
    """The last resort: names and types of the inputs, as many as there is room for, required ones first."""
    properties = cast("Mapping[str, JsonValue]", document.get("properties") or {})
    required = [name for name in cast("Sequence[str]", document.get("required") or ()) if name in properties]
    kept: dict[str, JsonValue] = {}
    room = LONGEST_SCHEMA - 200
    for name in [*required, *(name for name in properties if name not in required)]:
        of_one = properties[name]
        brief: JsonObject = {"type": of_one["type"]} if isinstance(of_one, Mapping) and "type" in of_one else {}
        room -= len(dumps({name: brief})) + (len(name) + 3 if name in required else 0)
        if room < 0:
            break
        kept[name] = brief
    return {"type": "object", "properties": kept, "required": [name for name in required if name in kept]}


def _at(document: JsonObject, reference: str) -> JsonObject | None:
    if not reference.startswith("#/"):
        return None
    found: JsonValue = document
    for step in reference[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _short(text: JsonValue) -> JsonValue:
    if isinstance(text, str) and len(text) > _CUT_DESCRIPTION:
        return f"{text[:_CUT_DESCRIPTION].rstrip()}..."
    return text
