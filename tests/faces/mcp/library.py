"""Resources and prompts of every sort, as Python functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import toolyard
from toolyard.core.errors import ProtocolError

GREETED = {"action": "accept", "content": {"name": "Ada"}}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@toolyard.resource("notes://today", mime_type="text/markdown", title="Today")
def today() -> str:
    """What is to be done."""
    return "# Today\nSleep.\x00"


@toolyard.resource("notes://picture")
def picture() -> bytes:
    return b"\x00\x01"


@toolyard.resource("notes://box/{box}/note/{number}")
async def note(box: str, number: int) -> dict[str, object]:
    """One note of a box."""
    if number > 9:
        raise ProtocolError(-32602, "There is no such note.")
    return {"box": box, "number": number}


@toolyard.resource("notes://asking")
async def asking(context: toolyard.Context) -> str:
    answer = await context.elicit("Who reads?", NAME, key="who")
    return str(answer)


@toolyard.resource("ui://board", mime_type="text/html;profile=mcp-app")
def board() -> str:
    return "<h1>Board</h1>"


@toolyard.tool
def touch(uri: str, context: toolyard.Context) -> str:
    """Say that a resource is another one."""
    context.resource_changed(uri)
    return "touched"


@toolyard.tool
def chatter(context: toolyard.Context) -> str:
    """Says something at three levels."""
    for level in ("debug", "info", "error"):
        context.log(f"a word at {level}", level=level, logger="kettle")
    return "said"


@toolyard.tool
async def interview(context: toolyard.Context) -> str:
    """Says something before and after it asks."""
    context.log("before", level="warning")
    answer = await context.elicit("Who are you?", NAME, key="who")
    context.log("after", level="warning")
    return str(answer)


@toolyard.prompt
def greet(name: str, tone: Literal["warm", "cool"] = "warm") -> str:
    """Greets somebody.

    Args:
        name: Whom to greet.
    """
    return f"Greet {name}, {tone}ly."


@toolyard.prompt(title="Two voices")
def dialogue() -> list[dict[str, object]]:
    return [
        {"role": "user", "content": "Well?"},
        {"role": "assistant", "content": {"type": "resource", "resource": {"uri": "notes://today", "text": "Sleep."}}},
    ]


@toolyard.prompt
async def who(context: toolyard.Context) -> str:
    answer = await context.elicit("Who are you?", NAME, key="who")
    return f"I am {answer.get('content')}."


@toolyard.completion(greet, "name")
def names(value: str, given: Mapping[str, str]) -> list[str]:
    return [f"{name} ({given.get('tone', 'any')})" for name in ("Ada", "Alan", "Grace") if name.startswith(value)]
