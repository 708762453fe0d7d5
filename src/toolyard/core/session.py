"""A session: one conversation, the tools that its client brought along, and the numbers of its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.tool import Tool

CLIENT_NAMESPACE = "client"
"""The namespace of tools that the session's client executes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTool:
    """A tool that the client executes. Its schemas hold the injected fields `sessionId` and `state`."""

    tool: Tool
    response_shape: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """`principal` is its owner, as the audit log names them. `created` is epoch seconds; `seq` its newest event."""

    id: str
    principal: str
    agent_id: str | None
    tools: Mapping[str, ClientTool]
    mcp_providers: tuple[str, ...]
    customizations: JsonObject
    created: float
    seq: int = 0
    active_turn: str | None = None
    meta: JsonObject = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """An open call as its client sees it. `deadline` (epoch seconds) is when nobody having picked it up ends it."""

    request_id: str
    name: str
    arguments: JsonObject
    state: str
    deadline: float | None


@dataclass(frozen=True, slots=True)
class Injected:
    """A synthetic tool event; `offset` is its number in the session."""

    event_id: str
    offset: int
