"""A provider whose tools do what a test needs."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence

from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Kind, Tool
from toolyard.providers.base import Invocation

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"pixels" * 20).decode()
READ_ONLY = Annotations(read_only=True)
_TEXT = Schema({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
_STRICT = Schema({**_TEXT.root, "additionalProperties": False})


class YardTools:
    """Provider `yard`. `slow` ends when `let_go` is set; `ran` says which tools were executed."""

    id = "yard"
    kind = Kind.PYTHON
    address = "in the tests"

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.ran: list[str] = []

    async def start(self) -> None:
        pass

    async def tools(self) -> Sequence[Tool]:
        def tool(name: str, *, annotations: Annotations = READ_ONLY, cluster: str | None = "Yard") -> Tool:
            return Tool("yard", name, f"The tool {name}.", _STRICT, annotations=annotations, cluster=cluster)

        return [
            tool("echo"),
            tool("write", annotations=Annotations(read_only=False)),
            tool("fail"),
            tool("slow", annotations=Annotations(read_only=False)),
            tool("slow-read"),
            tool("image"),
            tool("long"),
            tool("odd/name with ünïcode/call", cluster=None),
        ]

    async def call(self, invocation: Invocation) -> ToolResult:
        name, text = invocation.tool.name, str(invocation.arguments["text"])
        self.ran.append(name)
        if name.startswith("slow"):
            return await self._slow(text)
        if name == "fail":
            raise CallError(ErrorCode.UPSTREAM, f"The far side said no to {text}.", suggestion="Ask nicely.")
        if name == "image":
            return ToolResult(({"type": "image", "data": PNG, "mimeType": "image/png"},))
        if name == "long":
            return ToolResult.of_text(text * 20_000)
        return ToolResult.of_value({"echo": text})

    async def _slow(self, text: str) -> ToolResult:
        self.begun.set()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return ToolResult.of_value({"echo": text})

    async def health(self) -> None:
        pass

    def on_change(self, notify: Callable[[], None]) -> None:
        pass

    async def close(self) -> None:
        pass
