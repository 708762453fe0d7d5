"""What a client answers to a call: is it small enough, and does it have the shape that its tool promised?"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from toolyard.calls.validate import compile_schema, encode, explain, pointer
from toolyard.core.call import ToolResult
from toolyard.core.errors import BadInput, CallError, TooLarge
from toolyard.core.json import JsonObject
from toolyard.core.schema import Schema
from toolyard.core.session import ClientTool
from toolyard.core.tool import Tool

if TYPE_CHECKING:
    from jsonschema_rs import Validator

LARGEST_RESPONSE = 10 * 1024 * 1024
"""Bytes of JSON."""


def check_response(tool: ClientTool, response: JsonObject) -> None:
    """
    Raises:
        BadInput: it does not have the response shape; `where` is the first field that is wrong.
        TooLarge: more bytes than we take.
    """
    try:
        size = len(encode(response))
    except CallError as error:
        raise BadInput("The response is no JSON.", where="response", suggestion=error.suggestion) from error
    if size > LARGEST_RESPONSE:
        raise TooLarge(
            f"The response has {size:,} bytes; at most {LARGEST_RESPONSE:,} are taken.",
            suggestion="Keep the data where it is, and answer with a reference to it.",
        )
    shape = Tool(tool.tool.namespace, tool.tool.name, "", Schema(tool.response_shape))
    problem = next(iter(_validator(shape).iter_errors(response)), None)
    if problem is None:
        return
    what, suggestion = explain(shape, problem)
    field = pointer(problem.instance_path)
    if problem.kind.name == "required":
        missing = str(problem.kind.as_dict().get("property"))
        field = f"{field}.{missing}" if field else missing
    raise BadInput(
        f"The response does not have the shape of {tool.tool.id}: {what}.",
        where=f"response.{field}" if field else "response",
        suggestion=suggestion or "Correct it and send it again; the call stays open.",
    )


def failed_response(response: JsonObject) -> ToolResult:
    """`state: FAILED`: the tool's own statement that it failed, in its own words where there are some."""
    result = ToolResult.of_value(response)
    said = response.get("error")
    text = said if isinstance(said, str) and said.strip() else "The client's tool failed and said no more."
    return ToolResult(
        content=({"type": "text", "text": text},), structured=result.structured, has_structured=True, is_error=True
    )


@lru_cache(maxsize=2048)
def _compiled(tool_id: str, schema: Schema) -> Validator:
    return compile_schema(tool_id, schema, strict_formats=True)


def _validator(shape: Tool) -> Validator:
    return _compiled(shape.id, shape.input_schema)
