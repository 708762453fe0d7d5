"""Tool definitions as an MCP server sent them: kept verbatim, or left out with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.names import LONGEST_TOOL_NAME
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Kind, Tool
from toolyard.providers.mcp.wire import header_value

LARGEST_DEFINITION = 1024 * 1024
HEADER_KEY = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_TYPES = ("string", "integer", "boolean")
_ONE = frozenset(
    (
        *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties"),
        *("not", "if", "then", "else", "contentSchema"),
    )
)
_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_MAPS = frozenset(("patternProperties", "dependentSchemas", "$defs", "definitions"))

Path: TypeAlias = tuple[str, ...]
HeaderMap: TypeAlias = Mapping[Path, str]


class Unusable(Exception):
    """This definition is left out; the text says why."""


@dataclass(frozen=True, slots=True)
class Definition:
    tool: Tool
    header_map: HeaderMap
    """Path of an argument -> the rest of its `Mcp-Param-` header (modern HTTP)."""


def read_definition(namespace: str, wire: JsonValue, *, modern: bool, time_limit: float | None = None) -> Definition:
    """
    Raises:
        Unusable: it is no tool definition, too large, too deep, or its schemas are invalid.
    """
    if not isinstance(wire, dict):
        raise Unusable(f"an entry of the list is no object but {type(wire).__name__}")
    definition: JsonObject = wire
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        raise Unusable("an entry of the list has no name")
    if len(name) > LONGEST_TOOL_NAME:
        raise Unusable(f"{name[:60]!r}...: the name is longer than {LONGEST_TOOL_NAME} characters")
    _check_size(definition, name)
    input_schema = _schema(definition.get("inputSchema"), name, "inputSchema")
    output = definition.get("outputSchema")
    output_schema = None if output is None else _schema(output, name, "outputSchema", must_be_object=False)
    header_map: HeaderMap = {}
    if modern:
        header_map = _header_map(input_schema, name)
    annotations = definition.get("annotations")
    hints: JsonObject = annotations if isinstance(annotations, dict) else {}
    return Definition(
        Tool(
            namespace=namespace,
            name=name,
            description=_text(definition.get("description")) or "",
            input_schema=_hashed(input_schema, name),
            output_schema=output_schema,
            annotations=Annotations.from_wire(hints),
            kind=Kind.MCP,
            title=_text(definition.get("title")) or _text(hints.get("title")),
            wire=definition,
            time_limit=time_limit,
        ),
        header_map,
    )


def param_headers(header_map: HeaderMap, arguments: JsonObject) -> dict[str, str]:
    """The `Mcp-Param-*` headers of one call; absent and null arguments have none."""
    headers: dict[str, str] = {}
    for path, token in header_map.items():
        value: JsonValue = arguments
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            headers[f"Mcp-Param-{token}"] = "true" if value else "false"
        elif isinstance(value, str | int):
            headers[f"Mcp-Param-{token}"] = header_value(str(value))
        elif isinstance(value, float) and value.is_integer():
            headers[f"Mcp-Param-{token}"] = str(int(value))
    return headers


def _check_size(definition: JsonObject, name: str) -> None:
    try:
        size = len(orjson.dumps(definition))
    except TypeError as error:
        raise Unusable(f"{name[:60]!r}: its definition is nested too deeply or holds what is no JSON") from error
    if size > LARGEST_DEFINITION:
        raise Unusable(f"{name[:60]!r}: its definition is larger than 1 MiB")


def _schema(value: JsonValue, name: str, field: str, *, must_be_object: bool = True) -> JsonObject:
    import jsonschema_rs

    if not isinstance(value, dict):
        raise Unusable(f"{name!r}: {field} is no object")
    if must_be_object and value.get("type", "object") != "object":
        raise Unusable(f"{name!r}: {field} describes {value.get('type')!r}, not an object")
    try:
        jsonschema_rs.validator_for(value, retriever=_refuse)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise Unusable(f"{name!r}: {field} is no valid JSON Schema: {str(error).splitlines()[0][:200]}") from error
    return value


def _refuse(uri: str) -> dict[str, object]:
    raise ValueError(f"it refers to {uri[:100]}, and schemas are not fetched")


def _hashed(schema: JsonObject, name: str) -> Schema:
    """With its hash made now: what is nested too deeply for that would fail in the catalog."""
    made = Schema(schema)
    try:
        _ = made.hash
    except (RecursionError, ValueError) as error:
        raise Unusable(f"{name!r}: inputSchema is nested too deeply or holds what is no JSON") from error
    return made


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _header_map(schema: JsonObject, name: str) -> HeaderMap:
    """
    Raises:
        Unusable: an annotation is misplaced or malformed (the specification says to leave such a tool out).
    """
    found: dict[Path, str] = {}
    for path, position in _positions(schema):
        if HEADER_KEY not in position:
            continue
        token = position[HEADER_KEY]
        if not path:
            raise Unusable(f"{name!r}: {HEADER_KEY} stands where no plain property is")
        where = ".".join(path)
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise Unusable(f"{name!r}: {HEADER_KEY} of {where!r} is no header name")
        if position.get("type") not in _HEADER_TYPES:
            raise Unusable(f"{name!r}: {HEADER_KEY} of {where!r} is on neither a string, an integer nor a boolean")
        if token.lower() in (other.lower() for other in found.values()):
            raise Unusable(f"{name!r}: {HEADER_KEY} {token!r} is used twice")
        found[path] = token
    return found


def _positions(root: JsonObject) -> Iterator[tuple[Path | None, JsonObject]]:
    """Every subschema, with its path of `properties` keys, or None once another keyword was crossed."""
    stack: list[tuple[Path | None, JsonValue]] = [((), root)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, dict):
            continue
        yield path, node
        for keyword, value in node.items():
            if keyword == "properties" and isinstance(value, dict):
                stack.extend(((*path, key) if path is not None else None, sub) for key, sub in value.items())
            elif keyword in _ONE:
                stack.append((None, value))
            elif keyword in _LISTS and isinstance(value, list):
                stack.extend((None, sub) for sub in value)
            elif keyword in _MAPS and isinstance(value, dict):
                stack.extend((None, sub) for sub in value.values())
