"""Providers for the console's tests: a shop with every kind of field, and one whose every word is hostile."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from typing import Any

from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Kind, Tool
from toolyard.providers.base import Invocation

PNG = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
).decode()
SCRIPT = "<script>window.owned=1</script>"
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pet": {
            "type": "object",
            "description": "Which pet",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer", "minimum": 0},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["name"],
        },
        "size": {"enum": ["small", "large"]},
        "contact": {
            "oneOf": [
                {
                    "title": "By mail",
                    "type": "object",
                    "properties": {"email": {"type": "string"}},
                    "required": ["email"],
                    "additionalProperties": False,
                },
                {
                    "title": "By phone",
                    "type": "object",
                    "properties": {"phone": {"type": "string"}},
                    "required": ["phone"],
                    "additionalProperties": False,
                },
            ]
        },
    },
    "required": ["pet", "size"],
    "additionalProperties": False,
}


class Shop:
    """`order` answers with what it got, `slow` runs until `let_go`, `picture` draws, `till` fails."""

    id = "shop"
    kind = Kind.PYTHON
    address = "in the tests"

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.began = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def start(self) -> None:
        pass

    async def tools(self) -> Sequence[Tool]:
        def tool(name: str, description: str, schema: dict[str, Any] | None = None) -> Tool:
            return Tool(
                "shop",
                name,
                description,
                Schema(schema or {"type": "object", "properties": {}, "additionalProperties": False}),
                cluster="Shop",
                annotations=Annotations(read_only=name in ("picture", "till")),
                origin={"method": "POST", "path": f"/{name}s"},
            )

        return [
            tool("order", "Order a pet.\n\nIt is delivered in a basket.", ORDER),
            tool("slow", "Take a while."),
            tool("picture", "Draw the shop."),
            tool("till", "Open the till, which fails."),
            tool("odd/name with ünïcode", "Has an odd name."),
        ]

    async def call(self, invocation: Invocation) -> ToolResult:
        match invocation.tool.name:
            case "slow":
                self.began.set()
                try:
                    await self.let_go.wait()
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
                return ToolResult.of_text("done at last")
            case "picture":
                return ToolResult(({"type": "image", "data": PNG, "mimeType": "image/png"},))
            case "till":
                raise CallError(ErrorCode.UPSTREAM, f"The till is stuck {SCRIPT}.", suggestion="Hit it.")
            case _:
                return ToolResult.of_value({"ordered": invocation.arguments})

    async def health(self) -> None:
        pass

    def on_change(self, notify: Callable[[], None]) -> None:
        pass

    async def close(self) -> None:
        self.let_go.set()


class Hostile(Shop):
    """Names, descriptions, schemas and results that are markup."""

    id = "hostile"
    address = f"http://evil.example/{SCRIPT}"

    async def tools(self) -> Sequence[Tool]:
        words = f'"><img src=x onerror=alert(1)>{SCRIPT}'
        schema = {
            "type": "object",
            "properties": {
                words: {"type": "string", "description": words, "default": words},
                "choice": {"enum": [words, "plain"]},
                "many": {"type": "array", "items": {"type": "string", "title": words}},
                "either": {"oneOf": [{"title": words, "type": "string"}, {"type": "integer"}]},
                "free": {"description": words},
            },
            "required": [words],
        }
        origin = {"method": f"GET{words}", "path": words}
        return [Tool("hostile", f"tool{SCRIPT}", words, Schema(schema), cluster=words, title=words, origin=origin)]

    async def call(self, invocation: Invocation) -> ToolResult:
        return ToolResult.of_text(f"{SCRIPT}{invocation.arguments}")
