"""What becomes of each schema keyword. A keyword that is not in `KEYWORDS` is left out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias, cast

import jsonschema_rs
import orjson

from toolyard.core.json import JsonObject, JsonValue
from toolyard.providers.openapi.nodes import Node, Place, as_list, as_object, texts
from toolyard.providers.openapi.report import Findings

TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
LONGEST_DEFAULT = 2_000


class Nested(Protocol):
    def nested(self, node: JsonValue, place: Place, refs: set[str], depth: int) -> JsonObject | bool: ...


class Conversion:
    """One schema on its way. Keyword functions read `source` and put what holds into `out`."""

    def __init__(
        self, source: Node, place: Place, *, schemas: Nested, findings: Findings, refs: set[str], depth: int
    ) -> None:
        self.source = source
        self.place = place
        self.out: Node = {}
        self._schemas = schemas
        self._findings = findings
        self._refs = refs
        self._depth = depth

    def repaired(self, keyword: str, what: str) -> None:
        self._findings.repaired(self.place.child(keyword), what)

    def schema(self, node: JsonValue, *path: str | int) -> JsonObject | bool:
        return self._schemas.nested(node, self.place.child(*path), self._refs, self._depth + 1)

    def finished(self) -> JsonObject:
        """The whole schema, after the rules that need several keywords at once."""
        _require_what_is_there(self)
        return (
            _nullable(self)
            if self.source.get("nullable") is True or self.source.get("x-nullable") is True
            else self.out
        )


Convert: TypeAlias = Callable[[Conversion, str, JsonValue], None]


def _text(to: Conversion, keyword: str, value: JsonValue) -> None:
    if isinstance(value, str):
        to.out[keyword] = value
    else:
        to.repaired(keyword, "left out: it is not text")


def _flag(to: Conversion, keyword: str, value: JsonValue) -> None:
    if isinstance(value, bool):
        to.out[keyword] = value
    else:
        to.repaired(keyword, "left out: it is neither true nor false")


def _number(to: Conversion, keyword: str, value: JsonValue) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        to.out.setdefault(keyword, value)
    else:
        to.repaired(keyword, "left out: it is not a number")


def _count(to: Conversion, keyword: str, value: JsonValue) -> None:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if whole and not isinstance(value, bool) and cast("float", value) >= 0:
        to.out[keyword] = int(cast("float", value))
    else:
        to.repaired(keyword, "left out: it is not a whole number from 0")


def _multiple(to: Conversion, keyword: str, value: JsonValue) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        to.out[keyword] = value
    else:
        to.repaired(keyword, "left out: it is not a number above 0")


def _exclusive(to: Conversion, keyword: str, value: JsonValue) -> None:
    if not isinstance(value, bool):
        _number(to, keyword, value)
        return
    plain = "minimum" if keyword == "exclusiveMinimum" else "maximum"
    bound = to.source.get(plain)
    if value and isinstance(bound, int | float) and not isinstance(bound, bool):
        to.out[keyword] = bound


def _bound(to: Conversion, keyword: str, value: JsonValue) -> None:
    exclusive = "exclusiveMinimum" if keyword == "minimum" else "exclusiveMaximum"
    if to.source.get(exclusive) is not True:
        _number(to, keyword, value)


def _type(to: Conversion, keyword: str, value: JsonValue) -> None:
    names = [value] if isinstance(value, str) else texts(value)
    if names == ["file"]:
        to.out["type"] = "string"
        to.out["format"] = "binary"
        return
    known = list(dict.fromkeys(name for name in names if name in TYPES))
    if known != names or not names:
        to.repaired(keyword, f"left out: {_shown(value)} is no type")
    if known and len(known) == len(set(names)):
        to.out[keyword] = known[0] if len(known) == 1 else known


def _enum(to: Conversion, keyword: str, value: JsonValue) -> None:
    if not isinstance(value, list) or not value:
        to.repaired(keyword, "left out: it is not a list of values")
        return
    distinct = {orjson.dumps(item): item for item in as_list(cast("JsonValue", value))}
    if len(distinct) < len(cast("list[object]", value)):
        to.repaired(keyword, "values that are there twice were left out")
    to.out[keyword] = list(distinct.values())


def _any_value(to: Conversion, keyword: str, value: JsonValue) -> None:
    try:
        short = len(orjson.dumps(value)) <= LONGEST_DEFAULT
    except TypeError:
        short = False
    if short:
        to.out[keyword] = value


def _pattern(to: Conversion, keyword: str, value: JsonValue) -> None:
    if isinstance(value, str) and compiles(value):
        to.out[keyword] = value
    else:
        to.repaired(keyword, "left out: it is no regular expression that can be used here")


@functools.lru_cache(maxsize=4096)
def compiles(pattern: str) -> bool:
    """Whether the validator takes this regular expression; Python's `re` is the wrong judge."""
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, offline=True)
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


def _required(to: Conversion, keyword: str, value: JsonValue) -> None:
    names = list(dict.fromkeys(texts(value)))
    if not isinstance(value, list) or len(names) < len(cast("list[object]", value)):
        to.repaired(keyword, "what is not a name, or is there twice, was left out")
    if names:
        to.out[keyword] = names


def _properties(to: Conversion, keyword: str, value: JsonValue) -> None:
    if not isinstance(value, dict):
        to.repaired(keyword, "left out: it is not an object of schemas")
        return
    to.out[keyword] = {
        name: to.schema(node, keyword, name)
        for name, node in value.items()
        if as_object(node).get("readOnly") is not True
    }


def _schema(to: Conversion, keyword: str, value: JsonValue) -> None:
    to.out[keyword] = to.schema(value, keyword)


def _named_schemas(to: Conversion, keyword: str, value: JsonValue) -> None:
    if not isinstance(value, dict):
        to.repaired(keyword, "left out: it is not an object of schemas")
        return
    kept: Node = {}
    for name, node in value.items():
        if keyword == "patternProperties" and not compiles(name):
            to.repaired(keyword, f"{name!r} was left out: it is no regular expression that can be used here")
        else:
            kept[name] = to.schema(node, keyword, name)
    to.out[keyword] = kept


def _items(to: Conversion, keyword: str, value: JsonValue) -> None:
    if isinstance(value, list):
        _schema_list(to, "prefixItems", cast("JsonValue", value))
    else:
        to.out[keyword] = to.schema(value, keyword)


def _schema_list(to: Conversion, keyword: str, value: JsonValue) -> None:
    if not isinstance(value, list) or not value:
        to.repaired(keyword, "left out: it is not a list of schemas")
        return
    to.out[keyword] = [to.schema(node, keyword, index) for index, node in enumerate(as_list(cast("JsonValue", value)))]


def _alternatives(to: Conversion, keyword: str, value: JsonValue) -> None:
    """`oneOf` and `anyOf` alike, with the discriminator's mapping made visible in each branch."""
    if not isinstance(value, list) or not value:
        to.repaired(keyword, "left out: it is not a list of schemas")
        return
    discriminator = as_object(to.source.get("discriminator"))
    field, mapping = discriminator.get("propertyName"), as_object(discriminator.get("mapping"))
    branches: list[JsonValue] = []
    for index, node in enumerate(as_list(cast("JsonValue", value))):
        branch = to.schema(node, keyword, index)
        names = _mapped(as_object(node).get("$ref"), mapping) if isinstance(field, str) else []
        if names and isinstance(field, str):
            branches.append({"allOf": [branch, {"properties": {field: {"enum": names}}}]})
        else:
            branches.append(branch)
    if "anyOf" in to.out:
        to.out["allOf"] = [*as_list(to.out.get("allOf")), {"anyOf": branches}]
    else:
        to.out["anyOf"] = branches


def _mapped(reference: JsonValue, mapping: Mapping[str, JsonValue]) -> list[JsonValue]:
    if not isinstance(reference, str):
        return []
    name = reference.rpartition("/")[2]
    return [value for value, target in mapping.items() if target in (reference, name)]


def _all_of(to: Conversion, keyword: str, value: JsonValue) -> None:
    if not isinstance(value, list) or not value:
        to.repaired(keyword, "left out: it is not a list of schemas")
        return
    parts = [to.schema(node, keyword, index) for index, node in enumerate(as_list(cast("JsonValue", value)))]
    to.out[keyword] = [*as_list(to.out.get(keyword)), *parts]


def _not(to: Conversion, keyword: str, value: JsonValue) -> None:
    converted = to.schema(value, keyword)
    # Widening oneOf to anyOf inside a negation would narrow the whole: then rather refuse nothing.
    if isinstance(converted, dict) and not {"anyOf", "$ref", "allOf"} & converted.keys():
        to.out[keyword] = converted


def _additional(to: Conversion, keyword: str, value: JsonValue) -> None:
    if isinstance(value, bool | dict):
        to.out[keyword] = to.schema(cast("JsonValue", value), keyword)
    else:
        to.repaired(keyword, "left out: it is neither a schema nor true or false")


def _dependent_required(to: Conversion, keyword: str, value: JsonValue) -> None:
    if isinstance(value, dict):
        to.out[keyword] = {name: list(dict.fromkeys(texts(names))) for name, names in value.items()}
    else:
        to.repaired(keyword, "left out: it is not an object of lists")


def _nothing(to: Conversion, keyword: str, value: JsonValue) -> None:
    """Read together with another keyword."""


def _nullable(to: Conversion) -> JsonObject:
    out = to.out
    if {"allOf", "anyOf", "oneOf", "const", "not"} & out.keys():
        outer: Node = {key: out.pop(key) for key in ("title", "description", "default", "deprecated") if key in out}
        return {**outer, "anyOf": [out, {"type": "null"}]}
    declared = out.get("type")
    if isinstance(declared, str) and declared != "null":
        out["type"] = [declared, "null"]
    elif isinstance(declared, list) and "null" not in declared:
        out["type"] = [*as_list(cast("JsonValue", declared)), "null"]
    values = as_list(out.get("enum"))
    if values and None not in values:
        out["enum"] = [*values, None]
    return out


def _require_what_is_there(to: Conversion) -> None:
    """A read-only property is not sent, so it cannot be required."""
    hidden = {
        name for name, node in as_object(to.source.get("properties")).items() if as_object(node).get("readOnly") is True
    }
    if hidden and "required" in to.out:
        kept = [name for name in texts(to.out["required"]) if name not in hidden]
        if kept:
            to.out["required"] = kept
        else:
            del to.out["required"]


def _shown(value: JsonValue) -> str:
    return repr(value) if isinstance(value, str) else type(value).__name__


KEYWORDS: Mapping[str, Convert] = {
    "type": _type,
    "enum": _enum,
    "const": _any_value,
    "default": _any_value,
    "title": _text,
    "description": _text,
    "format": _text,
    "contentEncoding": _text,
    "contentMediaType": _text,
    "deprecated": _flag,
    "writeOnly": _flag,
    "pattern": _pattern,
    "minLength": _count,
    "maxLength": _count,
    "minItems": _count,
    "maxItems": _count,
    "minContains": _count,
    "maxContains": _count,
    "minProperties": _count,
    "maxProperties": _count,
    "uniqueItems": _flag,
    "multipleOf": _multiple,
    "minimum": _bound,
    "maximum": _bound,
    "exclusiveMinimum": _exclusive,
    "exclusiveMaximum": _exclusive,
    "required": _required,
    "properties": _properties,
    "patternProperties": _named_schemas,
    "dependentSchemas": _named_schemas,
    "dependentRequired": _dependent_required,
    "additionalProperties": _additional,
    "unevaluatedProperties": _additional,
    "unevaluatedItems": _additional,
    "propertyNames": _schema,
    "contains": _schema,
    "if": _schema,
    "then": _schema,
    "else": _schema,
    "not": _not,
    "items": _items,
    "prefixItems": _schema_list,
    "allOf": _all_of,
    "anyOf": _alternatives,
    "oneOf": _alternatives,
    "nullable": _nothing,
    "x-nullable": _nothing,
}
