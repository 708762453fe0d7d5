"""What a session's log says about its calls and approvals: the shapes of API.md, "Event shapes"."""

from __future__ import annotations

from typing import cast

import orjson

from toolyard.calls.cleaning import preview
from toolyard.core.approval import ApprovalRecord
from toolyard.core.call import CallState, ToolResult
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.names import split_tool_id
from toolyard.core.record import CallRecord
from toolyard.durable import log
from toolyard.store.base import Connection

LARGEST_RESULT = 16 * 1024
"""Bytes of a result that an event carries whole; a larger one is told by its preview, and read by the call's id."""


def topics_of(record: CallRecord) -> tuple[str, ...]:
    """What a node hints after it changed a call."""
    call = f"call:{record.id}"
    return (call,) if record.session_id is None else (call, f"session:{record.session_id}")


def called(c: Connection, record: CallRecord, arguments: bytes | str) -> None:
    """`tool_call`: it began, or waits for its client."""
    if record.session_id is None:
        return
    data: JsonObject = {
        "id": record.id,
        "name": _name(record.tool),
        "tool_id": record.tool,
        "arguments": cast("JsonValue", orjson.loads(arguments)),
        "execution": record.execution,
    }
    log.append(c, record.session_id, "tool", "tool_call", data)


def picked_up(c: Connection, record: CallRecord) -> None:
    """`tool_call` again, now PROCESSING: its client works on it."""
    if record.session_id is None:
        return
    data: JsonObject = {
        "id": record.id,
        "name": _name(record.tool),
        "tool_id": record.tool,
        "state": CallState.PROCESSING.value,
        "execution": record.execution,
    }
    log.append(c, record.session_id, "tool", "tool_call_started", data)


def ended(c: Connection, record: CallRecord, result: ToolResult | None) -> None:
    """`tool_result`: it ended. `record` is how it went on record."""
    if record.session_id is None:
        return
    data: dict[str, JsonValue] = {
        "toolCallId": record.id,
        "name": _name(record.tool),
        "tool_id": record.tool,
        "arguments": None if record.arguments is None else cast("JsonValue", orjson.loads(record.arguments)),
        "success": record.state is CallState.COMPLETE,
    }
    if record.state is CallState.COMPLETE:
        data["resultPreview"] = record.preview
        data["result"] = _carried(record, result)
    else:
        data["error"] = record.error
        data["code"] = record.error_code.value if record.error_code else None
    log.append(c, record.session_id, "tool", "tool_result", data)


def requested(c: Connection, approval: ApprovalRecord) -> None:
    if approval.session_id is not None:
        log.append(c, approval.session_id, "approval", "requested", approval_wire(approval))


def decided(c: Connection, approval: ApprovalRecord) -> None:
    if approval.session_id is not None:
        log.append(c, approval.session_id, "approval", "decided", approval_wire(approval))


def approval_wire(approval: ApprovalRecord) -> dict[str, JsonValue]:
    """An approval as events and the operators' stream tell it."""
    edited = approval.edited_arguments
    return {
        "id": approval.id,
        "call_id": approval.call_id,
        "gate": approval.gate.value,
        "tool_id": approval.tool,
        "arguments": cast("JsonValue", orjson.loads(approval.arguments)),
        "principal": approval.principal,
        "session_id": approval.session_id,
        "why": approval.why,
        "created": approval.created,
        "deadline": approval.deadline,
        "decision": approval.decision.value if approval.decision else None,
        "decided_by": approval.decided_by,
        "reason": approval.reason,
        "edited_arguments": None if edited is None else cast("JsonValue", orjson.loads(edited)),
        "scope": approval.scope.value if approval.scope else None,
    }


def _carried(record: CallRecord, result: ToolResult | None) -> JsonValue:
    if result is None or (record.output_bytes or 0) > LARGEST_RESULT:
        return None
    return result.structured if result.has_structured else result.text


def _name(tool_id: str) -> str:
    return split_tool_id(tool_id)[1]


def previewed(value: JsonValue) -> str:
    """One line of a value, for people."""
    return preview(value if isinstance(value, str) else orjson.dumps(value).decode())
