"""The client side: our MCP provider against the server of a scenario. `python -m tests.conformance.client URL`.

It lists what is there, calls each tool with arguments that fit its schema (or those of the scenario's context), answers
what it is asked with the defaults of the form, reads each resource and gets each prompt.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.offer import GET_PROMPT, READ_RESOURCE, offer_tool
from toolyard.core.principal import LOCAL_OPERATOR
from toolyard.core.question import ELICITATION, ROOTS, NeedsInput, Question
from toolyard.core.tool import Kind, Tool
from toolyard.egress import Egress
from toolyard.providers.base import Invocation
from toolyard.providers.mcp import McpHttpProvider

ABLE = frozenset({"elicitation.form", "sampling", "roots"})
MOST_ROUNDS = 5


async def run(url: str, context: Mapping[str, Any]) -> None:
    egress = Egress()
    provider = McpHttpProvider("up", url, egress=egress, time_limit=20)
    try:
        await provider.start()
        tools = {tool.name: tool for tool in await provider.tools()}
        calls: Sequence[Any] = context.get("toolCalls") or [
            {"name": name, "arguments": _fitting(tool, tools)} for name, tool in tools.items()
        ]
        await asyncio.gather(*(call(provider, tools[one["name"]], one["arguments"]) for one in calls))
        offers = await provider.offers()
        for resource in offers.resources:
            await call(provider, offer_tool("up", READ_RESOURCE, Kind.MCP), {"uri": resource["uri"]})
        for prompt in offers.prompts:
            await call(provider, offer_tool("up", GET_PROMPT, Kind.MCP), {"name": prompt["name"]})
    finally:
        await provider.close()
        await egress.close()


async def call(provider: McpHttpProvider, tool: Tool, arguments: JsonObject) -> ToolResult | None:
    """To its end, through every round of questions. What fails is the scenario's business."""
    answers: dict[str, JsonObject] = {}
    state: str | None = None
    for _ in range(MOST_ROUNDS):
        invocation = Invocation(
            call_id="call_1",
            tool=tool,
            arguments=arguments,
            principal=LOCAL_OPERATOR,
            time_limit=20,
            progress=lambda _: None,
            may_ask=ABLE,
            ask=_ask,
            answers=answers,
            upstream_state=state,
        )
        try:
            return await provider.call(invocation)
        except NeedsInput as needs:
            answers = {question.key: _answer(question) for question in needs.questions}
            state = needs.state
        except CallError as error:
            print(f"{tool.name}: {error}", file=sys.stderr)
            return None
    return None


async def _ask(questions: Sequence[Question]) -> Mapping[str, JsonObject]:
    return {question.key: _answer(question) for question in questions}


def _answer(question: Question) -> JsonObject:
    if question.method == ELICITATION:
        schema = question.params.get("requestedSchema")
        return {"action": "accept", "content": _filled(cast("JsonObject", schema or {}))}
    if question.method == ROOTS:
        return {"roots": [{"uri": "file:///work", "name": "work"}]}
    return {"role": "assistant", "model": "none", "content": {"type": "text", "text": "Paris"}}


def _fitting(tool: Tool, tools: Mapping[str, Tool]) -> JsonObject:
    """Arguments for a tool; one that wants a schema is sent another tool's, as it was received."""
    arguments = _filled(tool.input_schema.document())
    if "schema" in arguments:
        others = [one.wire["inputSchema"] for one in tools.values() if one is not tool and one.wire is not None]
        return {**arguments, "schema": others[0] if others else {}}
    return arguments


def _filled(schema: JsonObject) -> JsonObject:
    properties = schema.get("properties")
    fields = properties if isinstance(properties, dict) else {}
    return {name: _value(cast("JsonObject", field)) for name, field in fields.items()}


def _value(field: JsonObject) -> JsonValue:
    if "default" in field:
        return field["default"]
    choices = field.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    samples: dict[str, JsonValue] = {"integer": 2, "number": 2.5, "boolean": True, "object": {}, "array": []}
    return samples.get(str(field.get("type")), "text")


if __name__ == "__main__":
    asyncio.run(run(sys.argv[-1], orjson.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")))
