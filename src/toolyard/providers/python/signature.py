"""From a function's type hints to JSON Schemas, and from JSON arguments back to Python values."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_type_hints

from toolyard.core.errors import CallError, ErrorCode, ProviderError
from toolyard.core.json import JsonObject
from toolyard.providers.python.context import Context
from toolyard.providers.python.docstring import Docstring


@dataclass(frozen=True, slots=True)
class Signature:
    """How to call one function with JSON."""

    input_schema: JsonObject
    output_schema: JsonObject | None
    convert: Callable[[JsonObject], dict[str, Any]]
    """Python keyword arguments from JSON ones; raises `CallError` invalid_arguments naming the field."""
    context_parameter: str | None


def read_signature(function: Callable[..., Any], doc: Docstring, name: str) -> Signature:
    """
    Raises:
        ProviderError: a parameter cannot be given by name, or a hint is not understood; names function and parameter.
    """
    hints = _hints(function, name)
    fields: dict[str, Any] = {}
    optional: set[str] = set()
    context_parameter: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ProviderError(
                f"Tool {name!r}: parameter {str(parameter)!r} cannot be given by name.",
                suggestion="Use plain named parameters; for free-form input take one `dict[str, object]`.",
            )
        hint = hints.get(parameter.name, Any)
        if hint is Context or Context in typing.get_args(hint):
            context_parameter = parameter.name
            continue
        fields[parameter.name] = _field(hint, parameter, doc.arguments.get(parameter.name))
        if parameter.default is not parameter.empty:
            optional.add(parameter.name)
    adapter = _arguments_adapter(name, fields, optional)
    return Signature(
        input_schema=_schema_of(adapter, "validation", name),
        output_schema=_output_schema(hints.get("return"), name),
        convert=_converter(adapter, name),
        context_parameter=context_parameter,
    )


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        raise ProviderError(
            f"Tool {name!r}: its type hints cannot be read: {error}",
            suggestion="Import the types it names at the module's top, not inside a function or TYPE_CHECKING.",
        ) from error


def _field(hint: object, parameter: inspect.Parameter, text: str | None) -> object:
    from pydantic import Field

    extra: dict[str, Any] = {}
    if parameter.default is not parameter.empty:
        plain = _plain(parameter.default)
        if plain is not _NOT_JSON:
            extra["default"] = plain
    told = Field(json_schema_extra=extra or None)
    if text and not _has_description(hint):
        told = Field(description=text, json_schema_extra=extra or None)
    return typing.Annotated[hint, told]


_NOT_JSON = object()


def _plain(default: object) -> object:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(default)
    except PydanticSerializationError:
        return _NOT_JSON


def _has_description(hint: object) -> bool:
    return any(getattr(item, "description", None) for item in getattr(hint, "__metadata__", ()))


def _arguments_adapter(name: str, fields: Mapping[str, Any], optional: set[str]) -> Any:
    from pydantic import ConfigDict, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter
    from typing_extensions import TypedDict

    members = {key: typing.NotRequired[hint] if key in optional else hint for key, hint in fields.items()}
    make_typed_dict = cast("Callable[[str, Mapping[str, Any]], type]", TypedDict)
    arguments = make_typed_dict(f"{name}_arguments", members)
    setattr(arguments, "__pydantic_config__", ConfigDict(extra="forbid"))  # noqa: B010  TypedDicts take no config else
    try:
        return TypeAdapter(arguments)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        raise ProviderError(
            f"Tool {name!r}: no schema can be made from its type hints: {str(error).splitlines()[0]}",
            suggestion="Use JSON-like types: str, int, float, bool, list, dict, dataclasses, TypedDicts, models.",
        ) from error


def _schema_of(adapter: Any, mode: str, name: str) -> JsonObject:
    from pydantic.errors import PydanticInvalidForJsonSchema
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Without the titles that pydantic makes up from names: they cost tokens and say nothing new."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    try:
        schema: dict[str, Any] = adapter.json_schema(mode=mode, schema_generator=Untitled)
    except PydanticInvalidForJsonSchema as error:
        raise ProviderError(
            f"Tool {name!r}: its type hints have no JSON Schema: {str(error).splitlines()[0]}"
        ) from error
    schema.pop("title", None)
    for definition in schema.get("$defs", {}).values():
        definition.pop("title", None)
    return schema


def _output_schema(hint: Any, name: str) -> JsonObject | None:
    """Only for values that are JSON objects: MCP's structured content is one."""
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

    if hint is None or hint is Any or hint is type(None):
        return None
    try:
        schema = _schema_of(TypeAdapter(hint), "serialization", name)
    except (PydanticSchemaGenerationError, PydanticUserError, ProviderError):
        return None
    resolved = schema
    if isinstance(reference := schema.get("$ref"), str):
        definitions = cast("Mapping[str, JsonObject]", schema.get("$defs", {}))
        resolved = definitions.get(reference.removeprefix("#/$defs/"), schema)
    if resolved.get("type") != "object":
        return None
    return schema if schema is resolved else {**schema, "type": "object"}


def _converter(adapter: Any, name: str) -> Callable[[JsonObject], dict[str, Any]]:
    from pydantic import ValidationError

    def convert(arguments: JsonObject) -> dict[str, Any]:
        try:
            return adapter.validate_python(arguments)
        except ValidationError as error:
            raise CallError(ErrorCode.INVALID_ARGUMENTS, _first_problem(error, name)) from error

    return convert


def _first_problem(error: Any, name: str) -> str:
    problem = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in problem["loc"]) or "arguments"
    given = repr(problem.get("input"))
    return f"{name}: {field}: {problem['msg']} (given: {given if len(given) <= 80 else given[:77] + '...'})"
