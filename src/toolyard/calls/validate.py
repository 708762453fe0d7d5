"""Step 2: arguments against the tool's full schema. Nothing has run when this says no."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import orjson

from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue, canonical
from toolyard.core.names import did_you_mean
from toolyard.core.schema import Schema
from toolyard.core.tool import Kind, Tool

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

_MOST_VALIDATORS = 20_000
_MOST_PROBLEMS = 5
_LONGEST_VALUE = 80
_HINTED_FORMATS = frozenset({Kind.MCP, Kind.OPENAPI})
"""Kinds whose `format` keywords are hints: the definition is somebody else's, and its formats are often wrong."""


class ArgumentValidator:
    """Compiles each schema once, on its first call."""

    def __init__(self) -> None:
        self._compiled: OrderedDict[tuple[str, bool], Validator] = OrderedDict()

    def check(self, tool: Tool, arguments: JsonObject) -> bytes:
        """The arguments as JSON bytes, once they fit.

        Raises:
            CallError: `invalid_arguments`, naming field, expectation and value; `upstream` when the tool's own schema
                is broken.
        """
        encoded = encode(arguments)
        validator = self._validator(tool)
        if not validator.is_valid(arguments):
            raise _refusal(tool, validator.iter_errors(arguments))
        return encoded

    def _validator(self, tool: Tool) -> Validator:
        strict_formats = tool.kind not in _HINTED_FORMATS
        key = (tool.input_schema.hash, strict_formats)
        known = self._compiled.get(key)
        if known is None:
            known = self._compiled[key] = compile_schema(tool.id, tool.input_schema, strict_formats=strict_formats)
            if len(self._compiled) > _MOST_VALIDATORS:
                self._compiled.popitem(last=False)
        return known


def compile_schema(tool_id: str, schema: Schema, *, strict_formats: bool) -> Validator:
    """
    Raises:
        CallError: `upstream`, the schema is not valid JSON Schema or refers to something outside itself.
    """
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            cast("dict[str, object]", schema.document()), validate_formats=strict_formats, offline=True
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        reason = str(error).splitlines()[0][:300]
        raise CallError(
            ErrorCode.UPSTREAM,
            f"The input schema of {tool_id} is broken, so nothing can be checked against it: {reason}",
            suggestion="Its provider has to correct the definition.",
        ) from error


def encode(arguments: JsonObject) -> bytes:
    """
    Raises:
        CallError: `invalid_arguments`, for nesting, keys or characters that JSON cannot carry.
    """
    try:
        return orjson.dumps(arguments)
    except TypeError:
        pass
    try:
        return canonical(arguments)
    except RecursionError:
        problem = "The arguments are nested too deeply."
    except ValueError as error:
        problem = f"The arguments are no JSON: {error}."
    raise CallError(ErrorCode.INVALID_ARGUMENTS, problem, suggestion="Send a plain JSON object.")


def _refusal(tool: Tool, errors: Iterator[ValidationError]) -> CallError:
    problems: list[str] = []
    suggestions: list[str] = []
    for error in errors:
        if len(problems) == _MOST_PROBLEMS:
            problems.append("and more")
            break
        problem, suggestion = explain(tool, error)
        problems.append(problem)
        if suggestion and suggestion not in suggestions:
            suggestions.append(suggestion)
    return CallError(
        ErrorCode.INVALID_ARGUMENTS,
        f"Invalid arguments for {tool.id}: {'; '.join(problems)}.",
        suggestion=" ".join(suggestions[:3]) or None,
    )


def explain(tool: Tool, error: ValidationError) -> tuple[str, str | None]:
    where = pointer(error.instance_path)
    details = error.kind.as_dict()
    unexpected = cast("Sequence[str]", details.get("unexpected") or ())
    if unexpected:
        known = _fields_at(tool.input_schema, error.instance_path)
        hints = [hint for name in unexpected if (hint := did_you_mean(name, known))]
        suggestion = " ".join(hints) or (f"Known fields: {', '.join(list(known)[:20])}." if known else None)
        names = ", ".join(f"{_join(where, name)!r}" for name in unexpected[:5])
        return f"unknown field {names}", suggestion
    if error.kind.name == "required":
        return f"{_join(where, str(details.get('property')))!r} is required", None
    given = _shown(cast("JsonValue", error.instance))
    expected = _one_line(error.message)
    shown = f"{where or 'the arguments'}: {expected}"
    return (shown if given in expected else f"{shown} (given {given})"), None


def _fields_at(schema: Schema, path: Sequence[str | int]) -> Mapping[str, JsonValue]:
    """The declared properties at `path`, as far as plain `properties` and `items` lead."""
    node: object = schema.document()
    for part in path:
        key = "items" if isinstance(part, int) else "properties"
        node = cast("Mapping[str, object]", node).get(key) if isinstance(node, Mapping) else None
        if isinstance(part, str) and isinstance(node, Mapping):
            node = cast("Mapping[str, object]", node).get(part)
    properties = cast("Mapping[str, object]", node).get("properties") if isinstance(node, Mapping) else None
    return cast("Mapping[str, JsonValue]", properties) if isinstance(properties, Mapping) else {}


def pointer(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _shown(value: JsonValue) -> str:
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _one_line(message: str) -> str:
    text = " ".join(message.split())
    return text if len(text) <= 300 else f"{text[:300]}..."
