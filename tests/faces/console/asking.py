"""Calls that wait for a decision: a kennel whose tools ask, and somebody who calls them with a key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from tests.faces.console.tools import Shop
from toolyard.app import App
from toolyard.catalog import ToolSettings
from toolyard.core.approval import ApprovalRecord
from toolyard.core.call import CallOutcome, CallRequest, Origin, ToolResult
from toolyard.core.json import JsonObject
from toolyard.core.principal import Principal, PrincipalKind, Scope
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Tool
from toolyard.providers.base import Invocation

CALLER = Principal(PrincipalKind.KEY, "k1", "ci", frozenset({Scope.CALL}))
DOG: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "What it is called"},
        "age": {"type": "integer", "minimum": 0},
    },
    "required": ["name"],
    "additionalProperties": False,
}


class Kennel(Shop):
    """`walk` changes little, `sell` is destructive; what they were called with is in `ran`."""

    id = "kennel"

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[JsonObject] = []

    async def tools(self) -> Sequence[Tool]:
        def tool(name: str, **hints: bool) -> Tool:
            origin = {"method": "DELETE" if name == "sell" else "POST", "path": "/dogs/{name}"}
            return Tool(
                "kennel", name, "", Schema(DOG), cluster="Kennel", annotations=Annotations(**hints), origin=origin
            )

        return [tool("walk"), tool("sell", destructive=True)]

    async def call(self, invocation: Invocation) -> ToolResult:
        self.ran.append(invocation.arguments)
        return ToolResult.of_value({"ran": invocation.arguments})


async def set_to_ask(app: App, *tools: str) -> None:
    for tool in tools:
        await app.set_tool_settings(tool, ToolSettings(approval="ask"))


async def asked(app: App, tool: str, arguments: JsonObject, **more: Any) -> ApprovalRecord:
    """Start a call and wait until its request for approval is on record."""
    call_id = app.calls.start(CallRequest(tool, arguments, CALLER, Origin.HTTP, **more))
    async with asyncio.timeout(5):
        while True:
            page = await app.approvals.page("pending", limit=100, cursor=None)
            for record in page.items:
                if record.call_id == call_id:
                    return record
            await asyncio.sleep(0.01)


async def ended(app: App, record: ApprovalRecord) -> CallOutcome:
    """The outcome of the call that asked, once it is final."""
    async with asyncio.timeout(5):
        while True:
            outcome = await app.calls.wait(record.call_id, 1.0)
            if outcome is not None and outcome.state.is_final:
                return outcome
