"""What is on record about a call, and how records are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolyard.core.call import CallState, Origin
from toolyard.core.errors import ErrorCode
from toolyard.core.json import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One row of the audit log. Times are epoch seconds, sizes bytes of JSON, `tokens` an estimate for the result.

    `arguments` and `result` are the exact JSON text; a large one is kept as a blob and named by its `_ref`.
    """

    id: str
    tool: str
    principal: str
    origin: Origin
    server: str | None
    state: CallState
    arguments: str | None
    arguments_ref: str | None
    result: str | None
    result_ref: str | None
    preview: str | None
    error: str | None
    error_code: ErrorCode | None
    suggestion: str | None
    details: JsonObject | None
    idempotency_key: str | None
    request_hash: str | None
    created: float
    started: float | None
    finished: float | None
    input_bytes: int
    output_bytes: int | None
    tokens: int | None
    session_id: str | None = None
    job_id: str | None = None
    """The job that asked for it."""
    run_job: str | None = None
    """Its own job, once it had to wait."""
    execution: Literal["node", "client"] = "node"
    owner: str | None = None
    """The node that runs it."""
    epoch: int | None = None
    deadline: float | None = None
    """When waiting ends, in epoch seconds."""
    waiting: Literal["approval", "client", "question"] | None = None

    @property
    def namespace(self) -> str:
        return self.tool.partition(":")[0]

    @property
    def duration(self) -> float | None:
        """Seconds from start to end of the execution."""
        return None if self.started is None or self.finished is None else self.finished - self.started


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFilter:
    """Which records; None means any. `q` is searched in tool, caller, arguments, result and error."""

    tool: str | None = None
    namespace: str | None = None
    state: CallState | None = None
    error_code: ErrorCode | None = None
    principal: str | None = None
    origin: Origin | None = None
    server: str | None = None
    session: str | None = None
    since: float | None = None
    until: float | None = None
    q: str | None = None


@dataclass(frozen=True, slots=True)
class CallPage:
    """Newest first. `next_cursor` is None on the last page."""

    items: tuple[CallRecord, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class ToolMetrics:
    """Of one tool over a span of time. Percentiles in milliseconds, over calls that were executed."""

    tool: str
    calls: int
    failed: int
    p50_ms: float | None
    p95_ms: float | None
    result_tokens: int
    schema_tokens: int | None = None

    @property
    def success_rate(self) -> float:
        return 1.0 if self.calls == 0 else (self.calls - self.failed) / self.calls


@dataclass(frozen=True, slots=True)
class MinuteCount:
    """Calls begun in one minute; `minute` is the epoch second at which it began."""

    minute: int
    calls: int
    failed: int


@dataclass(frozen=True, slots=True)
class CallEvent:
    """A call began or ended: what observers (live pages, Prometheus) are told."""

    id: str
    tool: str
    state: CallState
    principal: str
    origin: Origin
    at: float
    duration: float | None = None
    error_code: ErrorCode | None = None

    def to_wire(self) -> dict[str, JsonValue]:
        return {
            "id": self.id,
            "tool": self.tool,
            "state": self.state.value,
            "principal": self.principal,
            "origin": self.origin.value,
            "at": self.at,
            "duration_ms": None if self.duration is None else round(self.duration * 1000, 3),
            "error_code": self.error_code.value if self.error_code else None,
        }
