"""The built-in tools, over the rooms they read from."""

from __future__ import annotations

from typing import cast

from toolyard.calls.audit import Audit
from toolyard.calls.shape import MOST_CHARACTERS, decode_result
from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError, ErrorCode, NotFound
from toolyard.core.principal import Principal, Scope
from toolyard.core.record import CallRecord
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Kind, Tool
from toolyard.providers.base import Invocation
from toolyard.providers.builtin import BuiltinProvider, BuiltinTool

LONGEST_PART = MOST_CHARACTERS - 500
"""Characters of one part: an answer must itself stay below the limit for results."""

_GET_CALL_RESULT = Tool(
    namespace="toolyard",
    name="get_call_result",
    title="Read a call's result",
    description=(
        "Read the whole result of an earlier call in parts, when its answer was cut. Give the call's id and where to "
        "begin; the answer says where the next part begins."
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
            },
            "required": ["call_id"],
            "additionalProperties": False,
        }
    ),
    annotations=Annotations(read_only=True, destructive=False, idempotent=True, open_world=False),
    kind=Kind.BUILTIN,
)


def builtin_provider(audit: Audit) -> BuiltinProvider:
    async def get_call_result(invocation: Invocation) -> ToolResult:
        call_id = str(invocation.arguments["call_id"])
        offset = cast("int", invocation.arguments.get("offset", 0))
        try:
            record = await audit.get(call_id)
            _must_be_theirs(record, invocation.principal)
            text = decode_result(await audit.full_result(call_id)).text
        except NotFound as error:
            raise CallError(ErrorCode.NOT_FOUND, error.message, suggestion=error.suggestion) from error
        part = text[offset : offset + LONGEST_PART]
        end = offset + len(part)
        more = f"the next part begins at offset {end}" if end < len(text) else "this is the end"
        return ToolResult.of_text(f"{part}\n\n[characters {offset} to {end} of {len(text)}; {more}]")

    return BuiltinProvider([BuiltinTool(_GET_CALL_RESULT, get_call_result)])


def _must_be_theirs(record: CallRecord, principal: Principal) -> None:
    """Somebody else's call looks like one that does not exist."""
    if record.principal != principal.label and not principal.may(Scope.READ):
        raise NotFound(f"There is no call {record.id!r}.")
