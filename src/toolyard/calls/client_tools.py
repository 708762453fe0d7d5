"""The tools that a session's client brings along: read from `customizations`, checked, given their injected fields.

```
customizations = {agentId?, extensions?: {tools?: {name: ToolDefinition}, mcpProviders?: [name]}}
ToolDefinition = {name, description, requestArgs: {properties, required?}, responseShape: {properties}}
```
`sessionId` (required) is added to the arguments and `state` (COMPLETE | FAILED | PENDING) to the response shape. A
definition that names them already keeps its descriptions of them; their types are ours.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from toolyard.calls.validate import compile_schema
from toolyard.core.errors import BadInput, CallError
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.names import ToolClass, did_you_mean, tool_classification
from toolyard.core.schema import Schema
from toolyard.core.session import CLIENT_NAMESPACE, ClientTool
from toolyard.core.tool import Kind, Tool

MOST_TOOLS = 500
LONGEST_DESCRIPTION = 20_000
RESPONSE_STATES = ("COMPLETE", "FAILED", "PENDING")
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
_RESERVED = {ToolClass.INTERNAL: "_", ToolClass.PRIVATE: "priv_", ToolClass.MCP: "mcp_"}


@dataclass(frozen=True, slots=True)
class Customizations:
    agent_id: str | None
    tools: Mapping[str, ClientTool]
    mcp_providers: tuple[str, ...]
    wire: JsonObject
    """What was given, to be kept."""


def read_customizations(given: JsonObject) -> Customizations:
    """
    Raises:
        BadInput: a field that is unknown, missing or of the wrong kind, a name that is reserved, invalid or not its
            key, a schema that is none; `where` is its path.
    """
    _known(given, ("agentId", "extensions"), "customizations")
    agent = given.get("agentId")
    if agent is not None and not isinstance(agent, str):
        raise BadInput("agentId must be a string.", where="customizations.agentId")
    extensions = _object(given.get("extensions", {}), "customizations.extensions")
    _known(extensions, ("tools", "mcpProviders"), "customizations.extensions")
    where = "customizations.extensions.tools"
    definitions = _object(extensions.get("tools", {}), where)
    if len(definitions) > MOST_TOOLS:
        raise BadInput(f"A session takes at most {MOST_TOOLS} tools; these are {len(definitions)}.", where=where)
    tools = {key: _tool(key, definition, f"{where}.{key}") for key, definition in definitions.items()}
    return Customizations(agent, tools, _provider_names(extensions.get("mcpProviders", [])), given)


def _provider_names(value: JsonValue) -> tuple[str, ...]:
    where = "customizations.extensions.mcpProviders"
    names = cast("Sequence[JsonValue]", value) if isinstance(value, Sequence) and not isinstance(value, str) else None
    if names is None or not all(isinstance(name, str) and name for name in names):
        raise BadInput("mcpProviders must be a list of provider names.", where=where)
    return tuple(cast("Sequence[str]", names))


def _tool(key: str, value: JsonValue, where: str) -> ClientTool:
    definition = _object(value, where)
    _known(definition, ("name", "description", "requestArgs", "responseShape"), where)
    for field in ("name", "description", "requestArgs", "responseShape"):
        if field not in definition:
            raise BadInput(f"{where}.{field} is required.", where=f"{where}.{field}")
    name, description = definition["name"], definition["description"]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        _refuse_reserved(name, where)
        raise BadInput(
            f"{name!r} cannot be a tool's name.",
            where=f"{where}.name",
            suggestion="Use 1 to 64 of a-z, A-Z, 0-9, '_' and '-', beginning with a letter.",
        )
    _refuse_reserved(name, where)
    if name != key:
        raise BadInput(
            f"The tool under {key!r} is named {name!r}.",
            where=f"{where}.name",
            suggestion="The record's key and the definition's name must be equal.",
        )
    if not isinstance(description, str) or len(description) > LONGEST_DESCRIPTION:
        raise BadInput(
            f"The description must be a string of at most {LONGEST_DESCRIPTION:,} characters.",
            where=f"{where}.description",
        )
    arguments = _shape(definition["requestArgs"], f"{where}.requestArgs", "sessionId", {"type": "string"})
    response = _shape(
        definition["responseShape"],
        f"{where}.responseShape",
        "state",
        {"type": "string", "enum": list(RESPONSE_STATES)},
    )
    tool = Tool(
        namespace=CLIENT_NAMESPACE,
        name=name,
        description=description,
        input_schema=Schema(arguments),
        output_schema=response,
        kind=Kind.CLIENT,
    )
    for schema, field in ((arguments, "requestArgs"), (response, "responseShape")):
        try:
            compile_schema(tool.id, Schema(schema), strict_formats=True)
        except CallError as error:
            raise BadInput(f"{where}.{field} is no JSON Schema: {error.message}", where=f"{where}.{field}") from error
    return ClientTool(tool=tool, response_shape=response)


def _refuse_reserved(name: JsonValue, where: str) -> None:
    kind = tool_classification(name) if isinstance(name, str) else ToolClass.STANDARD
    if kind in _RESERVED:
        raise BadInput(
            f"{name!r} begins with {_RESERVED[kind]!r}, which is reserved for tools that the server runs.",
            where=f"{where}.name",
            suggestion="Choose a name without that prefix.",
        )


def _shape(value: JsonValue, where: str, injected: str, schema: JsonObject) -> JsonObject:
    """An object's schema with one more required property."""
    given = _object(value, where)
    properties = _object(given.get("properties", {}), f"{where}.properties")
    for name, member in properties.items():
        if not isinstance(member, Mapping | bool):
            raise BadInput(f"{where}.properties.{name} must be a JSON Schema.", where=f"{where}.properties.{name}")
    if given.get("type", "object") != "object":
        raise BadInput(f"{where} must describe an object.", where=f"{where}.type")
    required = given.get("required", [])
    names = cast("Sequence[JsonValue]", required) if isinstance(required, Sequence) else ()
    if isinstance(required, str) or not all(isinstance(name, str) for name in names):
        raise BadInput(f"{where}.required must be a list of names.", where=f"{where}.required")
    for name in cast("Sequence[str]", names):
        if name not in properties and name != injected:
            raise BadInput(
                f"{where}.required names {name!r}, which is not among the properties.",
                where=f"{where}.required",
                suggestion=did_you_mean(name, properties),
            )
    theirs = properties.get(injected)
    described = theirs.get("description") if isinstance(theirs, Mapping) else None
    ours = {**schema, "description": described} if isinstance(described, str) else schema
    return {
        **given,
        "type": "object",
        "properties": {**properties, injected: ours},
        "required": [*(name for name in cast("Sequence[str]", names) if name != injected), injected],
    }


def _object(value: JsonValue, where: str) -> JsonObject:
    if not isinstance(value, Mapping):
        raise BadInput(f"{where} must be an object.", where=where)
    return cast("JsonObject", value)


def _known(given: JsonObject, known: Collection[str], where: str) -> None:
    for name in given:
        if name not in known:
            raise BadInput(
                f"{where} has an unknown field {name!r}.",
                where=f"{where}.{name}",
                suggestion=did_you_mean(name, known) or f"Known here: {', '.join(known)}.",
            )
