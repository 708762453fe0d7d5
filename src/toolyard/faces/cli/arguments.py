"""A tool's arguments from a command line: `--arg name=value`, typed by the tool's schema, or JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import orjson

from toolyard.core.errors import BadInput
from toolyard.core.json import JsonValue

Arguments = dict[str, JsonValue]


def arguments_from(pairs: Sequence[str], document: str | None, schema: Mapping[str, JsonValue]) -> Arguments:
    """`document` (JSON text, `@file`, or `-` for stdin) first, then each `name=value` on top of it.

    `origin.country=PT` sets a field inside an object; a name given twice makes a list where the schema takes one.

    Raises:
        BadInput: no `=`, a name given twice, or JSON that is none.
    """
    arguments = _document(document) if document is not None else {}
    set_here: set[str] = set()
    for pair in pairs:
        path, equals, text = pair.partition("=")
        if not equals or not all(path.split(".")):
            raise BadInput(f"{pair!r} is no argument.", where="--arg", suggestion="Write it as name=value.")
        _put(arguments, path, text, schema, again=path in set_here)
        set_here.add(path)
    return arguments


def _put(arguments: Arguments, path: str, text: str, schema: Mapping[str, JsonValue], *, again: bool) -> None:
    *outer, name = [path] if path in _properties(schema, schema) else path.split(".")
    target, expected = arguments, schema
    for part in outer:
        expected = _property(schema, expected, part)
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):
            raise BadInput(f"{part!r} is not an object, so {path!r} cannot be set.", where="--arg")
        target = inner
    expected = _property(schema, expected, name)
    if "array" in _types(schema, expected) and not text.startswith("["):
        before = _list(target.get(name) if again else None)
        item = typed(text, schema, _resolved(schema, _object(expected.get("items"))))
        target[name] = [*before, item]
    elif again:
        raise BadInput(f"{path!r} is given twice.", where="--arg")
    else:
        target[name] = typed(text, schema, expected)


def typed(text: str, root: Mapping[str, JsonValue], expected: Mapping[str, JsonValue]) -> JsonValue:
    """The value that `text` means for a schema: text where text is expected, else JSON, else text."""
    types = _types(root, expected)
    if types and types <= {"string"}:
        return text
    try:
        value = cast("JsonValue", orjson.loads(text))
    except orjson.JSONDecodeError:
        return text
    if (
        "string" in types
        and _json_type(value) not in types
        and not (_json_type(value) == "integer" and "number" in types)
    ):
        return text
    return value


def _document(text: str) -> Arguments:
    if text == "-":
        data, where = sys.stdin.buffer.read(), "stdin"
    elif text.startswith("@"):
        where = text[1:]
        try:
            data = Path(where).read_bytes()
        except OSError as error:
            raise BadInput(f"{where} cannot be read: {(error.strerror or '').lower()}.", where="--data") from None
    else:
        data, where = text.encode(), "--data"
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{where} holds no JSON: {error}.", where="--data") from None
    if not isinstance(value, dict):
        raise BadInput(f"{where} must hold a JSON object.", where="--data", suggestion='Such as {"name": "value"}.')
    return cast("Arguments", value)


def _property(root: Mapping[str, JsonValue], schema: Mapping[str, JsonValue], name: str) -> Mapping[str, JsonValue]:
    return _resolved(root, _properties(root, schema).get(name, {}))


def _properties(root: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> dict[str, Mapping[str, JsonValue]]:
    """Of the schema and of what it is composed of."""
    resolved = _resolved(root, schema)
    found: dict[str, Mapping[str, JsonValue]] = {}
    for keyword in ("allOf", "oneOf", "anyOf"):
        for part in _list(resolved.get(keyword)):
            found |= _properties_of_one(_resolved(root, _object(part)))
    return found | _properties_of_one(resolved)


def _properties_of_one(schema: Mapping[str, JsonValue]) -> dict[str, Mapping[str, JsonValue]]:
    return {name: _object(value) for name, value in _object(schema.get("properties")).items()}


def _types(root: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> set[str]:
    given = schema.get("type")
    types = {given} if isinstance(given, str) else {item for item in _list(given) if isinstance(item, str)}
    if not types:
        values = [*_list(schema.get("enum")), *([schema["const"]] if "const" in schema else [])]
        types = {_json_type(value) for value in values}
        for keyword in ("oneOf", "anyOf"):
            for part in _list(schema.get(keyword)):
                one = _resolved(root, _object(part)).get("type")
                types |= {one} if isinstance(one, str) else set()
    return types


def _resolved(root: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    for _ in range(20):
        ref = schema.get("$ref")
        if not isinstance(ref, str) or not ref.startswith("#/$defs/"):
            return schema
        schema = _object(_object(root.get("$defs")).get(ref.removeprefix("#/$defs/")))
    return schema


def _json_type(value: JsonValue) -> str:
    names: Mapping[type, str] = {
        bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", list: "array",
    }  # fmt: skip
    return names.get(type(value), "object")


def _object(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, Mapping) else {}


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list | tuple) else []
