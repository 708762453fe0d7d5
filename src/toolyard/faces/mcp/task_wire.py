"""A call as a task of SEP-2663: what its states are called on the wire, and which of a task's fields they bring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from toolyard.core.approval import Waiting
from toolyard.core.call import CallOutcome, Progress
from toolyard.core.clock import rfc3339
from toolyard.core.errors import ErrorCode
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.record import CallRecord
from toolyard.faces.mcp.tool_result import as_rpc_error, is_rpc_error, result_of
from toolyard.faces.mcp.wire import Era

SHORTEST_POLL = 0.5
"""Seconds between two `tasks/get` that a client is asked for, at first."""
LONGEST_POLL = 5.0
POLL_SHARE = 0.1
"""Of the task's age."""
SECONDS_OF_A_DAY = 86_400


class Status(StrEnum):
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    """Only for JSON-RPC errors: a tool that failed is `completed`, its result says so."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the tool said last, and when (epoch seconds)."""

    progress: Progress
    at: float


@dataclass(frozen=True, slots=True)
class Task:
    """One call at one moment, as its owner may see it."""

    record: CallRecord
    outcome: CallOutcome
    questions: Mapping[str, JsonObject]
    """What the client can answer: requests by key."""
    report: Report | None = None

    @property
    def status(self) -> Status:
        if not self.outcome.state.is_final:
            return Status.INPUT_REQUIRED if self.questions else Status.WORKING
        failure = self.outcome.failure
        if failure is None:
            return Status.COMPLETED
        if failure.code is ErrorCode.CANCELLED:
            return Status.CANCELLED
        return Status.FAILED if is_rpc_error(failure) else Status.COMPLETED

    def fields(self, now: float, retention_days: int | None) -> dict[str, JsonValue]:
        """What every message about a task holds. Times are epoch seconds."""
        record = self.record
        changed = [record.created, record.started, record.finished, self.report.at if self.report else None]
        wire: dict[str, JsonValue] = {
            "taskId": record.id,
            "status": self.status.value,
            "createdAt": rfc3339(record.created),
            "lastUpdatedAt": rfc3339(max(at for at in changed if at is not None)),
            "ttlMs": None if retention_days is None else retention_days * SECONDS_OF_A_DAY * 1000,
            "pollIntervalMs": _poll_interval_ms(now - record.created),
        }
        if message := self.message:
            wire["statusMessage"] = message
        return wire

    def detail(self, server_info: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The field that the status brings: `inputRequests`, `result` or `error`."""
        status, failure = self.status, self.outcome.failure
        if status is Status.INPUT_REQUIRED:
            return {"inputRequests": self.questions}
        if status is Status.COMPLETED:
            return {"result": result_of(self.outcome, Era.MODERN, server_info)}
        if status is Status.FAILED and failure is not None:
            return {"error": as_rpc_error(failure).to_wire()}
        return {}

    @property
    def message(self) -> str | None:
        """For people: what it waits for, how far it is, why it did not end well."""
        outcome = self.outcome
        if outcome.failure is not None:
            return outcome.failure.to_text() if self.status is not Status.COMPLETED else None
        if outcome.waiting is not None:
            return _told(outcome.waiting)
        return None if self.report is None or outcome.state.is_final else _told_progress(self.report.progress)


def _poll_interval_ms(age: float) -> int:
    return round(1000 * min(max(SHORTEST_POLL, age * POLL_SHARE), LONGEST_POLL))


def _told(waiting: Waiting) -> str:
    if waiting.kind == "approval":
        where = f" It is decided at {waiting.url}." if waiting.url else ""
        until = f" until {rfc3339(waiting.deadline)}" if waiting.deadline is not None else ""
        return f"Waiting for approval{until}.{where}"
    if waiting.kind == "client":
        return "Waiting for the client that executes it."
    return "Waiting for answers."


def _told_progress(progress: Progress) -> str:
    total = f" of {progress.total:g}" if progress.total is not None else ""
    return progress.message or f"{progress.progress:g}{total}"
