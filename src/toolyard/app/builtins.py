"""The built-in tools, over the rooms they read from."""

from __future__ import annotations

from typing import cast

from toolyard.calls.path import Calls
from toolyard.calls.shape import MOST_CHARACTERS, decode_result
from toolyard.core.call import ToolResult
from toolyard.core.clock import rfc3339
from toolyard.core.errors import CallError, ErrorCode, NotFound
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.principal import Principal, Scope
from toolyard.core.record import CallRecord
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Kind, Tool
from toolyard.providers.base import Invocation
from toolyard.providers.builtin import BuiltinProvider, BuiltinTool

LONGEST_PART = MOST_CHARACTERS - 500
"""Characters of one part: an answer must itself stay below the limit for results."""
LONGEST_WAIT = 50
"""Seconds; below the time limit that clients usually set for a call."""

_GET_CALL_RESULT = Tool(
    namespace="toolyard",
    name="get_call_result",
    title="Read a call's result",
    description=(
        "Read the result of an earlier call: one that was still waiting or running, or one whose answer was cut. Give "
        "the call's id. A call that is still open is answered with its state; a long result comes in parts, and the "
        "answer says where the next part begins."
    ),
    input_schema=Schema(
        {
            "type": "object",
            "properties": {
                "call_id": {"type": "string", "description": "The id named in the cut answer, such as call_4hq3..."},
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "default": 0,
                    "description": "The first character to read, counted from 0.",
                },
                "wait": {
                    "type": "number",
                    "minimum": 0,
                    "maximum": LONGEST_WAIT,
                    "default": 0,
                    "description": "Seconds to wait for the end of a call that is still open.",
                },
            },
            "required": ["call_id"],
            "additionalProperties": False,
        }
    ),
    annotations=Annotations(read_only=True, destructive=False, idempotent=True, open_world=False),
    kind=Kind.BUILTIN,
)


def builtin_provider(calls: Calls) -> BuiltinProvider:
    async def get_call_result(invocation: Invocation) -> ToolResult:
        call_id = str(invocation.arguments["call_id"])
        offset = cast("int", invocation.arguments.get("offset", 0))
        wait = cast("float", invocation.arguments.get("wait", 0))
        try:
            record = await calls.get(call_id)
            _must_be_theirs(record, invocation.principal)
            if not record.state.is_final:
                await calls.wait(call_id, wait)
                record = await calls.get(call_id)
            if not record.state.is_final:
                return ToolResult.of_value(_still_open(record))
            if record.output_bytes is None:
                return ToolResult.of_value(_without_result(record))
            text = decode_result(await calls.full_result(call_id)).text
        except NotFound as error:
            raise CallError(ErrorCode.NOT_FOUND, error.message, suggestion=error.suggestion) from error
        part = text[offset : offset + LONGEST_PART]
        end = offset + len(part)
        more = f"the next part begins at offset {end}" if end < len(text) else "this is the end"
        return ToolResult.of_text(f"{part}\n\n[characters {offset} to {end} of {len(text)}; {more}]")

    return BuiltinProvider([BuiltinTool(_GET_CALL_RESULT, get_call_result)])


def _still_open(record: CallRecord) -> JsonObject:
    answer: dict[str, JsonValue] = {"state": record.state.value, "call_id": record.id}
    if record.waiting is not None:
        answer["waiting"] = {"kind": record.waiting}
        if record.deadline is not None:
            answer["waiting"] = {"kind": record.waiting, "deadline": rfc3339(record.deadline)}
    answer["next"] = "It has no result yet. Ask again later, or with 'wait'; do not call the tool again."
    return answer


def _without_result(record: CallRecord) -> JsonObject:
    """A call that ended before its tool could answer: refused, rejected, timed out, cancelled."""
    return {
        "state": record.state.value,
        "call_id": record.id,
        "code": record.error_code.value if record.error_code else None,
        "error": record.error,
        "suggestion": record.suggestion,
    }


def _must_be_theirs(record: CallRecord, principal: Principal) -> None:
    """Somebody else's call looks like one that does not exist."""
    if record.principal != principal.label and not principal.may(Scope.READ):
        raise NotFound(f"There is no call {record.id!r}.")
