"""Calls that wait for a person or a client: the request is held with progress, then answered with a handle.

Nothing here is touched by a call that does not wait. Who decides is asked elsewhere (console, HTTP, command line): no
MCP method can decide, because its client could forge the answer.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from toolyard.catalog import Entry, View
from toolyard.core.approval import Waiting
from toolyard.core.call import CallOutcome, Progress, ProgressSink
from toolyard.core.clock import rfc3339
from toolyard.core.json import JsonValue, dumps
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.wire import (
    INVALID_PARAMS,
    META_CALL_ID,
    META_HOLD,
    META_SERVER_INFO,
    META_WAITING,
    Era,
    RpcError,
)

REPORT_EVERY = 5.0
"""Seconds between two reports of progress while a call waits."""
GET_RESULT = "toolyard_get_call_result_action"
_FOREVER = "none"
_STEP = 0.001
"""Progress must grow with each report; waiting makes little of it, so that the tool's own numbers stay ahead."""


def hold_of(meta: Mapping[str, Any], usual: float) -> float | None:
    """Seconds for which the client lets its request be held, `usual` when it does not say; None: until the call ended.

    Raises:
        RpcError: neither a number of seconds nor "none".
    """
    if META_HOLD not in meta:
        return usual
    seconds = meta[META_HOLD]
    if seconds == _FOREVER or seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise RpcError(INVALID_PARAMS, f'_meta["{META_HOLD}"] is a number of seconds, or "{_FOREVER}".')
    return float(seconds)


class Patience:
    """What a held request that asked for progress is told while its call waits, and then by the tool."""

    __slots__ = ("_last", "_message", "_report", "_timer")

    def __init__(self, report: ProgressSink) -> None:
        self._report = report
        self._last = -math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._message = ""

    def waits(self, waiting: Waiting) -> None:
        """The call began to wait."""
        self._message = _told(waiting)
        self.stop()
        self._tell()

    def progress(self, progress: Progress) -> None:
        """The tool's own report: it runs, so nobody is waited for any more."""
        self.stop()
        self._pass_on(progress)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self) -> None:
        self._pass_on(Progress(max(self._last, 0.0) + _STEP, message=self._message))
        self._timer = asyncio.get_running_loop().call_later(REPORT_EVERY, self._tell)

    def _pass_on(self, progress: Progress) -> None:
        grown = progress if progress.progress > self._last else Progress(self._last + _STEP, None, progress.message)
        self._last = grown.progress
        self._report(grown)


def pending_result(outcome: CallOutcome, waiting: Waiting, entry: Entry, ctx: Context) -> dict[str, object]:
    """A `CallToolResult` that says the call is still open, and how to ask again.

    A tool with an output schema promised that shape to its clients, and they check it unless the result is an error:
    for such a tool the handle comes as one, in words only.
    """
    handle: dict[str, JsonValue] = {
        "state": outcome.state.value,
        "call_id": outcome.call_id,
        "waiting": _wire(waiting),
        "next": _next_step(outcome.call_id, ctx.view),
    }
    strict = entry.tool.output_schema is not None and not ctx.server.agent_mode
    meta: dict[str, object] = {META_CALL_ID: outcome.call_id, META_WAITING: handle["waiting"]}
    wire: dict[str, object] = {
        "content": [{"type": "text", "text": f"{_told(waiting)} {handle['next']}\n{dumps(handle).decode()}"}],
        "isError": strict,
    }
    if not strict:
        wire["structuredContent"] = handle
    if ctx.era is Era.MODERN:
        wire["resultType"] = "complete"
        meta[META_SERVER_INFO] = ctx.face.server_info
    wire["_meta"] = meta
    return wire


def _told(waiting: Waiting) -> str:
    until = f", until {rfc3339(waiting.deadline)}" if waiting.deadline is not None else ""
    if waiting.kind == "question":
        return f"This call has asked its client something and waits for the answer{until}."
    whom = "a person to approve it" if waiting.kind == "approval" else "its client to execute it"
    where = f" It is decided at {waiting.url}." if waiting.url else ""
    return f"This call has not run yet: it waits for {whom}{until}.{where}"


def _next_step(call_id: str, view: View) -> str:
    entry = view.by_direct_name(GET_RESULT)
    if entry is None:
        return f"Do not call the tool again; its result will be at /v1/calls/{call_id}."
    if view.server.agent_mode:
        named = f"application_slug {entry.tool.namespace}, action_id {entry.tool.name}"
        return f'Do not run the action again; run {named} with input_payload {{"call_id": "{call_id}"}} for its result.'
    return f"Do not call the tool again; ask {GET_RESULT} with call_id {call_id} for its result."


def _wire(waiting: Waiting) -> dict[str, JsonValue]:
    wire: dict[str, JsonValue] = {"kind": waiting.kind, "id": waiting.id}
    if waiting.deadline is not None:
        wire["deadline"] = rfc3339(waiting.deadline)
    if waiting.url:
        wire["url"] = waiting.url
    return wire
