"""What a tool is, whoever provides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal, TypeAlias

from toolyard.core.json import JsonObject, JsonValue, sha256
from toolyard.core.names import ToolClass, direct_name, tool_classification, tool_id
from toolyard.core.schema import ANY_OBJECT, Schema

TaskMode: TypeAlias = Literal["never", "auto", "always"]
"""Whether a call may be answered with an MCP task, to be asked for later: `never`, when it takes long (`auto`), or at
once (`always`; a client without tasks cannot call the tool)."""
TASK_MODES: tuple[TaskMode, ...] = ("never", "auto", "always")


class Kind(StrEnum):
    """The kinds of provider."""

    MCP = "mcp"
    OPENAPI = "openapi"
    PYTHON = "python"
    WEBHOOK = "webhook"
    JAVASCRIPT = "javascript"
    CLIENT = "client"
    WORKFLOW = "workflow"
    BUILTIN = "builtin"
    PLUGIN = "plugin"
    """Of a package that adds a kind of its own."""


class ActionClass(StrEnum):
    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"


@dataclass(frozen=True, slots=True)
class Annotations:
    """Hints in MCP's sense; None means the provider did not say."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    @staticmethod
    def from_wire(wire: Mapping[str, JsonValue]) -> Annotations:
        def hint(key: str) -> bool | None:
            value = wire.get(key)
            return value if isinstance(value, bool) else None

        return Annotations(
            read_only=hint("readOnlyHint"),
            destructive=hint("destructiveHint"),
            idempotent=hint("idempotentHint"),
            open_world=hint("openWorldHint"),
        )

    def to_wire(self) -> dict[str, JsonValue]:
        hints = {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
        return {key: value for key, value in hints.items() if value is not None}


@dataclass(frozen=True)
class Tool:
    """One callable thing. Immutable: a change makes a new Tool in a new catalog snapshot.

    `wire` is the definition as an MCP provider sent it, passed on verbatim apart from its name (provider.verbatim).
    `origin` tells people where it comes from: `{"method": "GET", "path": "/pets"}` for an imported operation.
    """

    namespace: str
    name: str
    description: str
    input_schema: Schema = ANY_OBJECT
    output_schema: JsonObject | None = None
    annotations: Annotations = Annotations()
    kind: Kind = Kind.PYTHON
    cluster: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict[str, str])
    wire: JsonObject | None = None
    time_limit: float | None = None
    """Seconds; the provider's own limit for this tool. An operator's setting comes before it."""
    task: TaskMode | None = None
    """The provider's own choice; None is `auto`. An operator's setting comes before it."""
    offer: bool = False
    """It stands for reading a resource or getting a prompt: in no list, and its result is kept to the letter."""

    @cached_property
    def id(self) -> str:
        """`namespace:name`."""
        return tool_id(self.namespace, self.name)

    @cached_property
    def direct_name(self) -> str:
        """The name MCP clients see in direct mode."""
        return direct_name(self.namespace, self.name, entity="workflow" if self.kind is Kind.WORKFLOW else "action")

    @cached_property
    def action_class(self) -> ActionClass:
        """What a call may do; a tool that says nothing may write."""
        if self.annotations.read_only:
            return ActionClass.READ
        return ActionClass.DESTRUCTIVE if self.annotations.destructive else ActionClass.WRITE

    @cached_property
    def tool_class(self) -> ToolClass:
        """What its name's prefix says."""
        return tool_classification(self.name)

    @cached_property
    def definition_hash(self) -> str:
        """Over what a model is told: name, description, schemas, annotations."""
        return sha256(
            [self.name, self.description, self.input_schema.hash, self.output_schema, self.annotations.to_wire()]
        )
