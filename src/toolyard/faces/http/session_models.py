"""What the routes of sessions, client tools and approvals take and give. Seeds fix the names in camelCase."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from toolyard.core.approval import ApprovalScope, Decision, Gate
from toolyard.core.call import CallState, Origin
from toolyard.faces.http.beats import MOST_BEATS
from toolyard.faces.http.models import Given, JsonMap, Time
from toolyard.faces.http.validation import Strict

LONGEST_REASON = 4000


class ToolDefinition(Strict):
    """A tool that the client itself executes. `sessionId` and `state` are added to its schemas."""

    name: str = Field(min_length=1, max_length=128)
    description: str = Field(max_length=20_000)
    request_args: JsonMap = Field(alias="requestArgs", description="`{properties, required?}`, in JSON Schema.")
    response_shape: JsonMap = Field(
        default_factory=dict, alias="responseShape", description="`{properties}`, in JSON Schema."
    )


class Extensions(Strict):
    tools: dict[str, ToolDefinition] = Field(default_factory=dict, description="By name.")
    mcp_providers: list[str] = Field(
        default_factory=list,
        alias="mcpProviders",
        description="Kept and given back; it neither adds nor narrows tools.",
    )


class Customizations(Strict):
    agent_id: str | None = Field(default=None, alias="agentId", max_length=200)
    extensions: Extensions = Field(default_factory=Extensions)


class SessionBody(Strict):
    customizations: Customizations = Field(default_factory=Customizations)


class SessionMade(Given):
    session_id: str = Field(alias="sessionId")


class SessionOut(Given):
    id: str
    principal: str
    agent_id: str | None
    active_turn: str | None
    tools: list[str] = Field(description="What its client executes.")
    mcp_providers: list[str]
    customizations: JsonMap
    meta: JsonMap
    events: int = Field(description="How many there are; the newest one's offset.")
    created: Time


class SessionEventOut(Given):
    """One event of a session's log. Its other fields depend on `kind` and `type`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    offset: int
    session_id: str
    kind: str
    type: str
    at: Time
    turn: str | None = None


class ToolEventBody(Strict):
    """What somebody already knows, as if a tool had told it."""

    tool_id: str = Field(min_length=1, max_length=200, description="An opaque label: `injected:bank_statement`.")
    arguments: JsonMap = Field(default_factory=dict)
    result: Any
    idempotency_key: str | None = Field(default=None, min_length=1, max_length=255)
    trigger_processing: StrictBool = Field(
        default=False, description="Begin a turn that answers it, and end the turn in flight."
    )


class ToolEventMade(Given):
    event_id: str
    offset: int


class ClientRequestOut(Given):
    """A call that the session's client has to execute."""

    request_id: str = Field(alias="requestId")
    name: str
    arguments: JsonMap
    state: CallState
    deadline: Time | None


class BeatBody(Strict):
    """A sign of life; or, with the state ERROR, the end of a call that failed."""

    state: Literal["PROCESSING", "ERROR"]
    heartbeat: StrictInt | StrictFloat | None = Field(
        default=None, ge=0, description="The client's clock in milliseconds. It is recorded; ours decides."
    )
    error: str | None = Field(default=None, max_length=100_000, description="With ERROR: what went wrong.")


class BeatOut(Given):
    state: CallState


Pair = Annotated[list[str], Field(min_length=2, max_length=2)]
"""`[sessionId, requestId]`."""


class BeatsBody(Strict):
    requests: list[Pair] = Field(
        max_length=MOST_BEATS, description="`[sessionId, requestId]` of each call that is still worked on."
    )


class BeatsOut(Given):
    gone: list[Pair] = Field(description="Those that need no more beats: ended, or not the caller's.")


class ResponseBody(Strict):
    response: JsonMap = Field(description="The result, with its `state`: COMPLETE, FAILED or PENDING.")


class ResponseTaken(Given):
    request_id: str = Field(alias="requestId")
    state: CallState


class SessionCallBody(Strict):
    arguments: JsonMap = Field(default_factory=dict)


class ApprovalOut(Given):
    """A decision that a call waits for, or waited for."""

    id: str
    call_id: str
    state: Literal["pending", "decided"]
    gate: Gate = Field(description="Whose decision it is.")
    tool: str
    arguments: Any
    principal: str = Field(description="Who called.")
    origin: Origin | None = Field(description="The face that the call came through.")
    server: str | None
    session_id: str | None
    why: str = Field(description="Which policy asks.")
    created: Time
    deadline: Time
    seconds_left: float | None
    decision: Decision | None
    decided_by: str | None
    decided_at: Time | None
    reason: str | None
    edited_arguments: Any
    scope: ApprovalScope | None
    url: str = Field(description="The console's page for it.")


class DecisionBody(Strict):
    decision: Literal["approve", "reject"]
    reason: str | None = Field(default=None, max_length=LONGEST_REASON, description="Told to the caller of the tool.")
    arguments: JsonMap | None = Field(default=None, description="Instead of the caller's; checked again.")
    scope: Literal["once", "session"] = Field(
        default="once", description="`session`: this tool, as it is defined now, is not asked for again there."
    )
