"""A call: one invocation of one tool, its four states, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from toolyard.core.approval import Waiting
from toolyard.core.errors import CallError, ErrorCode, ProtocolError
from toolyard.core.ids import new_id
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.principal import Principal
from toolyard.core.question import NO_CAPABILITIES, Capabilities, LogSink


class CallState(StrEnum):
    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    COMPLETE = "COMPLETE"
    ERROR = "ERROR"

    @property
    def is_final(self) -> bool:
        return self in (CallState.COMPLETE, CallState.ERROR)


TRANSITIONS: Mapping[CallState, frozenset[CallState]] = {
    CallState.PENDING: frozenset({CallState.PROCESSING, CallState.ERROR}),
    CallState.PROCESSING: frozenset({CallState.COMPLETE, CallState.ERROR}),
    CallState.COMPLETE: frozenset(),
    CallState.ERROR: frozenset(),
}


def may_follow(before: CallState, after: CallState) -> bool:
    """Whether the lifecycle allows this move."""
    return after in TRANSITIONS[before]


class Origin(StrEnum):
    """The face a call came through."""

    MCP = "mcp"
    HTTP = "http"
    CONSOLE = "console"
    CLI = "cli"
    AGENT = "agent"
    CODE = "code"
    WORKFLOW = "workflow"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class Progress:
    """One report of a running tool. `total` and `message` are optional, as in MCP."""

    progress: float
    total: float | None = None
    message: str | None = None


ProgressSink = Callable[[Progress], None]
"""Must not block and must not raise."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What every caller builds. `server` limits which tools can be named (None: the whole catalog)."""

    tool: str
    arguments: JsonObject
    principal: Principal
    origin: Origin
    server: str | None = None
    idempotency_key: str | None = None
    time_limit: float | None = None
    """Seconds; can only shorten the tool's own limit."""
    progress: ProgressSink | None = None
    call_id: str = field(default_factory=partial(new_id, "call"))
    """Made by the caller, so that it can cancel or look up the call while it runs."""
    recorded_first: bool = False
    """On disk before it runs, also when it only reads: for callers that are given its id while it still runs."""
    trace: Mapping[str, str] = field(default_factory=dict[str, str])
    """`traceparent`, `tracestate` and `baggage`, forwarded to providers that take them."""
    session: str | None = None
    """The conversation it belongs to; its client's tools can be named as `client:<name>`."""
    hold: float | None = None
    """Seconds to wait for a human or a client before the still open call is answered; None waits to the end."""
    on_wait: Callable[[Waiting], None] | None = None
    """Told each time the call begins to wait for a human or a client. Must not block and must not raise."""
    may_ask: Capabilities = NO_CAPABILITIES
    """Which questions of the tool the caller's client can answer; others are declined."""
    log: LogSink | None = None
    """Takes what the tool logs while it runs."""
    log_level: str | None = None
    """The least severe level that is asked for, in MCP's words; None: whatever the tool logs unasked."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered: MCP content blocks, and the structured value where there is one.

    `is_error` is the tool's own statement that it failed; the call then ends in ERROR `upstream`, and the caller still
    sees this content. `meta` is the provider's `_meta`, passed on verbatim.
    """

    content: tuple[JsonObject, ...]
    structured: JsonValue = None
    has_structured: bool = False
    is_error: bool = False
    meta: JsonObject | None = None
    details: JsonObject | None = None
    """For the record only: an HTTP status, response headers worth keeping."""

    @staticmethod
    def of_text(text: str, *, is_error: bool = False) -> ToolResult:
        return ToolResult(content=({"type": "text", "text": text},), is_error=is_error)

    @staticmethod
    def of_value(value: JsonValue, *, meta: JsonObject | None = None, details: JsonObject | None = None) -> ToolResult:
        """A JSON value as text and as structured content; a string stays plain text."""
        text = value if isinstance(value, str) else dumps(value).decode()
        return ToolResult(
            content=({"type": "text", "text": text},),
            structured=value,
            has_structured=not isinstance(value, str),
            meta=meta,
            details=details,
        )

    @property
    def text(self) -> str:
        """All text blocks, one under the other."""
        return "\n".join(str(block.get("text", "")) for block in self.content if block.get("type") == "text")


@dataclass(frozen=True, slots=True)
class CallFailure:
    """Why a call ended in ERROR, as its caller saw it."""

    code: ErrorCode
    message: str
    suggestion: str | None = None
    rpc: JsonObject | None = None
    """`{code, message, data}` where the upstream answered with a JSON-RPC error."""

    @staticmethod
    def of(error: CallError) -> CallFailure:
        if not isinstance(error, ProtocolError):
            return CallFailure(error.code, error.message, error.suggestion)
        rpc: dict[str, JsonValue] = {"code": error.rpc_code, "message": error.message}
        if error.data is not None:
            rpc["data"] = error.data
        return CallFailure(error.code, error.message, error.suggestion, rpc)

    def to_wire(self) -> dict[str, JsonValue]:
        """`{error, code, suggestion}`: all that a model is told."""
        wire: dict[str, JsonValue] = {"error": self.message, "code": self.code.value}
        if self.suggestion:
            wire["suggestion"] = self.suggestion
        return wire

    def to_text(self) -> str:
        return f"{self.message} {self.suggestion}" if self.suggestion else self.message


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call ended, shaped for its reader.

    `result` is shaped (cleaned, cut, images replaced); the whole stays readable by `call_id`. A failed tool has both a
    `result` and a `failure`; a call that never reached its tool has only a `failure`. One that still waits for a human
    or a client when its caller's patience (`CallRequest.hold`) ends is answered open, with `waiting`.
    """

    call_id: str
    tool: str
    state: CallState
    result: ToolResult | None = None
    failure: CallFailure | None = None
    warnings: tuple[str, ...] = ()
    waiting: Waiting | None = None
    """What a call that has not ended waits for."""
