"""The resources and prompts of a Python provider: their definitions, and what their functions return as MCP has it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolyard.core.errors import BadInput, CallError, ErrorCode, ProtocolError
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.offer import NO_OFFERS, Offers
from toolyard.core.uri_template import UriTemplate, uri_template
from toolyard.providers.python.docstring import parse
from toolyard.providers.python.offers import PythonCompletion, PythonOffer, PythonPrompt, PythonResource
from toolyard.providers.python.results import Image
from toolyard.providers.python.running import Runnable

_INVALID_PARAMS = -32602
MOST_COMPLETIONS = 100
"""MCP's own limit."""


@dataclass(frozen=True, slots=True)
class PreparedResource:
    resource: PythonResource
    runnable: Runnable
    definition: JsonObject
    template: UriTemplate | None = None


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    prompt: PythonPrompt
    runnable: Runnable
    definition: JsonObject


class PythonOffers:
    """What was prepared, and which of it a request means."""

    def __init__(self, offers: Sequence[PythonOffer]) -> None:
        """
        Raises:
            ProviderError: a function cannot be one; names it.
            BadInput: a template that cannot be matched.
        """
        self._resources: dict[str, PreparedResource] = {}
        self._templates: list[PreparedResource] = []
        self._prompts: dict[str, PreparedPrompt] = {}
        self._completions = {(one.of, one.argument): one for one in offers if isinstance(one, PythonCompletion)}
        for offer in offers:
            if isinstance(offer, PythonResource):
                self._add_resource(offer)
            elif isinstance(offer, PythonPrompt):
                self._prompts[offer.name] = _prepared_prompt(offer)
        self.listed = self._list()

    def resource(self, uri: str) -> tuple[PreparedResource, JsonObject]:
        """The resource of a URI, and the arguments for its function.

        Raises:
            ProtocolError: there is none (-32602).
        """
        if (exact := self._resources.get(uri)) is not None:
            return exact, {}
        for template in self._templates:
            values = template.template.values(uri) if template.template is not None else None
            if values is not None:
                return template, values
        raise ProtocolError(_INVALID_PARAMS, f"There is no resource {uri[:200]!r}.", {"uri": uri[:2000]})

    def prompt(self, name: str) -> PreparedPrompt:
        """
        Raises:
            ProtocolError: there is none (-32602).
        """
        if (found := self._prompts.get(name)) is not None:
            return found
        raise ProtocolError(_INVALID_PARAMS, f"There is no prompt {name[:200]!r}.")

    def completer(self, reference: JsonObject, argument: str) -> Callable[..., Any] | Sequence[str]:
        """What completes an argument: a function, or all the values that there are.

        Raises:
            ProtocolError: there is no such prompt or template (-32602).
        """
        prepared: PreparedPrompt | PreparedResource
        if reference.get("type") == "ref/prompt":
            prepared = self.prompt(str(reference.get("name")))
        else:
            uri = str(reference.get("uri"))
            among = [*self._templates, *self._resources.values()]
            named = next((one for one in among if one.resource.uri == uri), None)
            prepared = named or self.resource(uri)[0]
        function = prepared.prompt.function if isinstance(prepared, PreparedPrompt) else prepared.resource.function
        if (own := self._completions.get((function, argument))) is not None:
            return own.function
        return _choices(prepared.runnable.signature.input_schema, argument)

    def _add_resource(self, resource: PythonResource) -> None:
        doc = parse(resource.function.__doc__)
        definition: dict[str, JsonValue] = {
            "uriTemplate" if resource.is_template else "uri": resource.uri,
            "name": resource.name,
            **_told(resource.title, resource.description or doc.description),
        }
        if resource.mime_type is not None:
            definition["mimeType"] = resource.mime_type
        if resource.meta is not None:
            definition["_meta"] = resource.meta
        runnable = Runnable.of(resource.function, resource.name)
        if not resource.is_template:
            self._resources[resource.uri] = PreparedResource(resource, runnable, definition)
            return
        template = uri_template(resource.uri)
        if template is None:
            raise BadInput(
                f"The template {resource.uri[:200]!r} cannot be matched: it repeats a name or is too large.",
                where="uri",
            )
        self._templates.append(PreparedResource(resource, runnable, definition, template))

    def _list(self) -> Offers:
        if not (self._resources or self._templates or self._prompts):
            return NO_OFFERS
        return Offers(
            tuple(one.definition for one in self._resources.values()),
            tuple(one.definition for one in self._templates),
            tuple(one.definition for one in self._prompts.values()),
            completes=True,
            subscribes=True,
        )


def to_contents(value: object, uri: str, mime_type: str | None) -> JsonObject:
    """MCP's result of `resources/read`.

    Raises:
        CallError: the value cannot be written as JSON.
    """
    if isinstance(value, Image):
        block = value.to_block()
        content: JsonObject = {"uri": uri, "mimeType": mime_type or block["mimeType"], "blob": block["data"]}
    elif isinstance(value, bytes):
        blob = b64encode(value).decode()
        content = {"uri": uri, "mimeType": mime_type or "application/octet-stream", "blob": blob}
    elif isinstance(value, str):
        content = {"uri": uri, "mimeType": mime_type or "text/plain", "text": value}
    else:
        content = {"uri": uri, "mimeType": mime_type or "application/json", "text": _as_json(value)}
    return {"contents": [content]}


def to_messages(value: object, description: str | None) -> JsonObject:
    """MCP's result of `prompts/get`.

    Raises:
        CallError: what was returned are no messages.
    """
    told: JsonObject = {"description": description} if description else {}
    if isinstance(value, dict) and "messages" in value:
        return {**told, **cast("JsonObject", value)}
    items = list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else [cast("object", value)]
    return {**told, "messages": [_message(item) for item in items]}


def _message(item: object) -> JsonObject:
    role, content = "user", item
    if isinstance(item, Mapping):
        given = cast("JsonObject", item)
        role, content = str(given.get("role", "user")), given.get("content")
    if isinstance(content, str):
        return {"role": role, "content": {"type": "text", "text": content}}
    if isinstance(content, Image):
        return {"role": role, "content": content.to_block()}
    if isinstance(content, Mapping):
        return {"role": role, "content": cast("JsonObject", content)}
    raise CallError(
        ErrorCode.UPSTREAM,
        f"The prompt returned {type(content).__name__} in place of a message.",
        suggestion="Its author should return text, or a list of {role, content}.",
    )


def _as_json(value: object) -> str:
    try:
        return dumps(cast("JsonValue", value)).decode()
    except (TypeError, ValueError) as error:
        raise CallError(
            ErrorCode.UPSTREAM, f"The resource returned {type(value).__name__}, which is no JSON."
        ) from error


def _prepared_prompt(prompt: PythonPrompt) -> PreparedPrompt:
    doc = parse(prompt.function.__doc__)
    runnable = Runnable.of(prompt.function, prompt.name)
    schema = runnable.signature.input_schema
    required = schema.get("required")
    properties = schema.get("properties")
    arguments: list[JsonValue] = []
    for name, field in (properties if isinstance(properties, dict) else {}).items():
        argument: dict[str, JsonValue] = {"name": name, "required": isinstance(required, list) and name in required}
        if isinstance(field, dict) and isinstance(field.get("description"), str):
            argument["description"] = field["description"]
        arguments.append(argument)
    definition: dict[str, JsonValue] = {
        "name": prompt.name,
        **_told(prompt.title, prompt.description or doc.description),
        "arguments": arguments,
    }
    return PreparedPrompt(prompt, runnable, definition)


def _told(title: str | None, description: str) -> JsonObject:
    told: dict[str, JsonValue] = {} if title is None else {"title": title}
    return {**told, "description": description} if description else told


def _choices(schema: JsonObject, argument: str) -> Sequence[str]:
    properties = schema.get("properties")
    field = properties.get(argument) if isinstance(properties, dict) else None
    if isinstance(field, dict) and isinstance(reference := field.get("$ref"), str):
        definitions = schema.get("$defs")
        field = definitions.get(reference.removeprefix("#/$defs/")) if isinstance(definitions, dict) else None
    values = field.get("enum") if isinstance(field, dict) else None
    return [str(value) for value in values] if isinstance(values, list) else []
