"""Step 5: run the call through its provider, under a time limit, cancellable from anywhere on this node."""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog

from toolyard.calls.record import Opening
from toolyard.catalog import Entry
from toolyard.core.call import CallOutcome, CallRequest, ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.question import NeedsInput
from toolyard.core.record import CallRecord
from toolyard.providers.base import Invocation

DEFAULT_TIME_LIMIT = 30.0
LONGEST_TIME_LIMIT = 24 * 3600.0

_log = structlog.get_logger("toolyard.calls")


class Providers(Protocol):
    """What executing needs of the supervisor."""

    async def call(self, invocation: Invocation) -> ToolResult: ...
    async def abandon(self, namespace: str, upstream_state: str) -> None: ...


class Asking(Protocol):
    """What a call whose caller can answer questions adds to its invocation."""

    def invocation(self, invocation: Invocation, timer: asyncio.Timeout) -> Invocation: ...


class Running:
    """One call in flight on this node."""

    __slots__ = ("asking", "cancelled", "principal", "recording", "repeats", "task", "unrecorded", "waiting")

    def __init__(self, principal: str) -> None:
        self.principal = principal
        self.task: asyncio.Task[object] | None = None
        self.cancelled = False
        self.asking: Asking | None = None
        self.repeats: str | None = None
        """The earlier call whose answer this one gives again."""
        self.waiting: list[asyncio.Future[CallOutcome]] = []
        self.unrecorded: tuple[Opening, float] | None = None
        """What would go on record now, of a call that otherwise does at its end only; and when it began."""
        self.recording: asyncio.Task[CallRecord | None] | None = None
        """Set once that is under way."""

    def cancel(self) -> None:
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()


def time_limit(request: CallRequest, entry: Entry) -> float:
    """Seconds: the operator's setting, else the tool's own limit, else the default; a request can only shorten it."""
    limit = entry.settings.time_limit or entry.tool.time_limit or DEFAULT_TIME_LIMIT
    if request.time_limit is not None:
        limit = min(limit, request.time_limit)
    return min(limit, LONGEST_TIME_LIMIT)


async def execute(
    providers: Providers, request: CallRequest, entry: Entry, running: Running, asking: Asking | None = None
) -> ToolResult:
    """`asking` lets the tool ask its caller.

    Raises:
        CallError: `timeout`, `cancelled`, `internal`, or what the provider said.
        NeedsInput: it can only go on with answers.
        asyncio.CancelledError: this node is stopping.
    """
    limit = time_limit(request, entry)
    invocation = Invocation(
        call_id=request.call_id,
        tool=entry.tool,
        arguments=request.arguments,
        principal=request.principal,
        time_limit=limit,
        idempotency_key=request.idempotency_key,
        progress=request.progress,
        trace=request.trace,
        log=request.log,
        log_level=request.log_level,
    )
    if running.cancelled:
        raise _cancelled(entry)
    running.task = asyncio.current_task()
    timer = asyncio.timeout(limit)
    if asking is not None:
        invocation = asking.invocation(invocation, timer)
    try:
        async with timer:
            return await providers.call(invocation)
    except TimeoutError as error:
        if not timer.expired():
            raise CallError(ErrorCode.UPSTREAM, f"{entry.id} failed: {error or 'it timed out by itself'}") from error
        raise CallError(
            ErrorCode.TIMEOUT,
            f"{entry.id} did not answer within {limit:g} s and was told to stop.",
            suggestion="Ask for less, or have an operator raise the tool's time limit.",
        ) from error
    except asyncio.CancelledError:
        if not running.cancelled:
            raise
        if running.task is not None:
            running.task.uncancel()
        raise _cancelled(entry) from None
    except (CallError, NeedsInput):
        raise
    except Exception as error:
        _log.exception("a provider broke its contract", tool=entry.id, call=request.call_id)
        raise CallError(
            ErrorCode.INTERNAL, f"{entry.id} failed inside Toolyard.", suggestion=f"See the log for {request.call_id}."
        ) from error
    finally:
        running.task = None


def _cancelled(entry: Entry) -> CallError:
    return CallError(ErrorCode.CANCELLED, f"The call of {entry.id} was cancelled.")
