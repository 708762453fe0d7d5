"""What a provider offers to MCP clients beside tools: resources, templates of resources, and prompts.

To read a resource or to get a prompt is a call like any other: of a tool that is in no list (`offer_tool`), so that it
is authorized, asks, waits and is recorded as every call is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from toolyard.core.json import JsonObject
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Kind, Tool

OfferMethod: TypeAlias = Literal["resources/read", "prompts/get"]
READ_RESOURCE: OfferMethod = "resources/read"
GET_PROMPT: OfferMethod = "prompts/get"
_RESULT: JsonObject = {"type": "object"}
_ARGUMENTS: dict[OfferMethod, JsonObject] = {
    READ_RESOURCE: {
        "type": "object",
        "properties": {"uri": {"type": "string", "description": "The resource's URI, as its provider has it."}},
        "required": ["uri"],
        "additionalProperties": False,
    },
    GET_PROMPT: {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The prompt's name, as its provider has it."},
            "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
}
_TOLD: dict[OfferMethod, str] = {READ_RESOURCE: "Reads one resource of {}.", GET_PROMPT: "Gets one prompt of {}."}


@dataclass(frozen=True, slots=True)
class Offers:
    """The definitions as MCP has them in its lists, under the provider's own names and URIs."""

    resources: tuple[JsonObject, ...] = ()
    templates: tuple[JsonObject, ...] = ()
    prompts: tuple[JsonObject, ...] = ()
    completes: bool = False
    """Whether it completes arguments of prompts and templates."""
    subscribes: bool = False
    """Whether it tells of changes of one resource."""

    @property
    def reads(self) -> bool:
        return bool(self.resources or self.templates)


NO_OFFERS = Offers()


@lru_cache(maxsize=4096)
def offer_tool(namespace: str, method: OfferMethod, kind: Kind) -> Tool:
    """The tool that a read or a get is a call of. Its structured result is MCP's result of that method."""
    return Tool(
        namespace=namespace,
        name=method,
        description=_TOLD[method].format(namespace),
        input_schema=Schema(_ARGUMENTS[method]),
        output_schema=_RESULT,
        annotations=Annotations(read_only=True),
        kind=kind,
        task="never",
        offer=True,
    )


def offer_method(name: str) -> OfferMethod | None:
    """The method that a tool's name stands for, if it is one of them."""
    if name == READ_RESOURCE:
        return READ_RESOURCE
    return GET_PROMPT if name == GET_PROMPT else None
