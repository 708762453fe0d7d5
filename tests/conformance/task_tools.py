"""The tools that the official suite's scenarios for tasks call, under the names they want.

The yard that serves them gives out tasks after half a second (`Settings.task_after_seconds`), so that a computation of
one second is one.
"""

from __future__ import annotations

import asyncio

import toolyard
from toolyard.core.json import JsonObject
from toolyard.core.question import ELICITATION, Question

INTERNAL_ERROR = -32603


@toolyard.tool(task="never", read_only=True)
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}!"


@toolyard.tool(time_limit=120, read_only=True)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Computes for a while."""
    await asyncio.sleep(seconds)
    return f"{label or 'The computation'} took {seconds:g} s."


@toolyard.tool(task="always")
async def failing_job() -> str:
    """Fails after a second."""
    await asyncio.sleep(1)
    raise toolyard.ToolError("This job always fails.")


@toolyard.tool(task="always")
async def protocol_error_job() -> str:
    """Ends with a JSON-RPC error in place of a result."""
    raise toolyard.ProtocolError(INTERNAL_ERROR, "This job breaks the protocol.")


@toolyard.tool(task="always", destructive=True)
async def confirm_delete(filename: str, context: toolyard.Context) -> str:
    """Deletes a file, once its user has confirmed that."""
    answer = await context.elicit(f"Delete {filename}?", _form(confirm="boolean"), key="confirm")
    return f"Deleted {filename}." if _content(answer).get("confirm") is True else f"Kept {filename}."


@toolyard.tool(task="always")
async def multi_input(context: toolyard.Context) -> str:
    """Asks two things at once."""
    answers = await context.ask(
        _question("name", "What is your name?", _form(name="string")),
        _question("confirm", "Shall we go on?", _form(confirm="boolean")),
    )
    return f"Answered: {', '.join(sorted(answers))}."


@toolyard.tool(time_limit=120)
async def test_tool_with_task(context: toolyard.Context) -> str:
    """Asks for a name first, then takes a second to use it."""
    answer = await context.elicit("What is your name?", _form(name="string"), key="user_name")
    await asyncio.sleep(1)
    return f"Hello, {_content(answer).get('name', 'stranger')}!"


def _form(**fields: str) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in fields.items()},
        "required": list(fields),
    }


def _question(key: str, message: str, schema: JsonObject) -> Question:
    return Question(key, ELICITATION, {"mode": "form", "message": message, "requestedSchema": schema})


def _content(answer: JsonObject) -> JsonObject:
    content = answer.get("content")
    return content if isinstance(content, dict) else {}
