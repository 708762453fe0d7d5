"""Modern requests mirror parts of their body in headers; here both sides are compared (notes: the edge, step 4).

`Mcp-Param-*` names come from `x-mcp-header` annotations in a tool's input schema: on string, integer or boolean
properties that are reached from the root through `properties` alone, each name once.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolyard.core.schema import Schema
from toolyard.faces.mcp.wire import H_METHOD, H_NAME, H_VERSION, HEADER_MISMATCH, PARAM_PREFIX, RpcError

RawHeaders = Sequence[tuple[bytes, bytes]]
Headers = Mapping[bytes, bytes]

ANNOTATION = "x-mcp-header"
_NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
_ROUTING = frozenset({H_VERSION, H_METHOD, H_NAME})
_SENTINEL = re.compile(rb"=\?base64\?(.*)\?=")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DECIMAL = re.compile(r"(-?[0-9]{1,400})(?:\.0+)?")
_ONE_SCHEMA = (
    "items",
    "contains",
    "unevaluatedItems",
    "additionalProperties",
    "propertyNames",
    "not",
    "unevaluatedProperties",
    "if",
    "then",
    "else",
    "contentSchema",
)
_REMEMBERED = 20_000
_SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMA_MAPS = ("patternProperties", "dependentSchemas", "$defs", "definitions")


@dataclass(frozen=True, slots=True)
class ParamHeader:
    """One annotated argument: the header's name and the path of property names that leads to the value."""

    header: str
    path: tuple[str, ...]
    is_integer: bool

    @property
    def key(self) -> bytes:
        return self.header.lower().encode()


class InvalidAnnotation(ValueError):
    """An `x-mcp-header` that the specification forbids; a modern client drops such a tool."""


def decode(value: bytes) -> str | None:
    """A header's text; the `=?base64?...?=` sentinel is undone. None for a sentinel that cannot be undone."""
    value = value.strip(b" \t")
    found = _SENTINEL.fullmatch(value)
    if found is None:
        return value.decode("latin-1")
    try:
        decoded = base64.b64decode(found[1], validate=True)
        return decoded.decode() if base64.b64encode(decoded) == found[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def check_routing(
    method: str, version: str | None, params: Mapping[str, Any], headers: Headers, raw: RawHeaders
) -> None:
    """`MCP-Protocol-Version`, `Mcp-Method` and `Mcp-Name` say what the body says.

    Raises:
        RpcError: -32020.
    """
    if len(headers) != len(raw):
        _refuse_duplicates(raw)
    if version is None or not _says(headers.get(H_VERSION), version):
        raise mismatch("MCP-Protocol-Version", "the version in params._meta")
    if not _says(headers.get(H_METHOD), method):
        raise mismatch("Mcp-Method", "the body's method")
    named_by = _NAMED_BY.get(method)
    if named_by is None:
        return
    name = params.get(named_by)
    header = headers.get(H_NAME)
    if isinstance(name, str) and not _says(header, name) and (header is None or decode(header) != name):
        raise mismatch("Mcp-Name", f"params.{named_by}")


def check_params(
    declared: Sequence[ParamHeader], arguments: Mapping[str, Any], headers: Headers, raw: RawHeaders
) -> None:
    """Every declared `Mcp-Param-*` header equals its argument, or both are absent.

    Raises:
        RpcError: -32020.
    """
    for param in declared:
        copies = sum(1 for name, _ in raw if name == param.key)
        if copies > 1:
            raise RpcError(HEADER_MISMATCH, f"{param.header} is sent more than once.", status=400)
        given = headers.get(param.key)
        value = _at(arguments, param.path)
        rendered = _rendered(value)
        if given is None and rendered is None:
            continue
        if given is None or rendered is None or not _same(param, value, rendered, decode(given)):
            raise mismatch(param.header, f"the argument {'.'.join(param.path)!r}")


def declared(schema: Schema) -> tuple[ParamHeader, ...]:
    """The annotated arguments of a schema.

    Raises:
        InvalidAnnotation: in the wrong place, of the wrong type, or a name used twice.
    """
    found: dict[str, ParamHeader] = {}
    for path, node in _positions(schema.root):
        if ANNOTATION not in node:
            continue
        token, kind = node[ANNOTATION], node.get("type")
        where = "/".join(path or ())
        if not path:
            raise InvalidAnnotation(f"{ANNOTATION} is not on a property reached through 'properties' alone")
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise InvalidAnnotation(f"{ANNOTATION} of {where!r} is no header name")
        if kind not in ("string", "integer", "boolean"):
            raise InvalidAnnotation(f"{ANNOTATION} of {where!r} is on a property that is no string, integer or boolean")
        if token.lower() in found:
            raise InvalidAnnotation(f"{ANNOTATION} {token!r} is used twice")
        found[token.lower()] = ParamHeader(PARAM_PREFIX + token, path, kind == "integer")
    return tuple(found.values())


class ParamHeaders:
    """The annotated arguments of each schema, walked once for each schema hash."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[ParamHeader, ...]] = {}

    def of(self, schema: Schema) -> tuple[ParamHeader, ...]:
        """Empty for a schema with a forbidden annotation: a modern client was never shown that tool."""
        known = self._known.get(schema.hash)
        if known is None:
            try:
                known = declared(schema)
            except InvalidAnnotation:
                known = ()
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[schema.hash] = known
        return known


def mismatch(header: str, what: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"The header {header} does not match {what}.", status=400)


def _says(header: bytes | None, text: str) -> bool:
    """Whitespace around a value is none of it, and not every HTTP parser takes it away."""
    expected = text.encode("utf-8", "replace")
    return header is not None and (header == expected or header.strip(b" \t") == expected)


def _refuse_duplicates(raw: RawHeaders) -> None:
    seen: set[bytes] = set()
    for name, _ in raw:
        if name in _ROUTING and name in seen:
            raise RpcError(HEADER_MISMATCH, f"The header {name.decode()} is sent more than once.", status=400)
        seen.add(name)


def _positions(root: object) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Every subschema with its path of property names, or None once anything but `properties` was crossed."""
    waiting: list[tuple[tuple[str, ...] | None, object]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        if not isinstance(node, Mapping):
            continue
        schema = cast("Mapping[str, Any]", node)
        yield path, schema
        for name, child in _mapping(schema.get("properties")).items():
            waiting.append((None if path is None else (*path, name), child))
        waiting.extend((None, schema[key]) for key in _ONE_SCHEMA if key in schema)
        for key in _SCHEMA_LISTS:
            children = schema.get(key)
            if isinstance(children, list):
                waiting.extend((None, child) for child in cast("list[object]", children))
        for key in _SCHEMA_MAPS:
            waiting.extend((None, child) for child in _mapping(schema.get(key)).values())


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _at(arguments: Mapping[str, Any], path: tuple[str, ...]) -> object:
    node: object = arguments
    for name in path:
        if not isinstance(node, Mapping):
            return None
        node = cast("Mapping[str, object]", node).get(name)
    return node


def _rendered(value: object) -> str | None:
    """The text a client mirrors; None for an absent value and for one that no header can carry."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _same(param: ParamHeader, value: object, rendered: str, given: str | None) -> bool:
    if given is None:
        return False
    if param.is_integer and isinstance(value, int | float) and not isinstance(value, bool) and value == int(value):
        decimal = _DECIMAL.fullmatch(given)
        return decimal is not None and int(decimal[1]) == int(value)
    return given == rendered
