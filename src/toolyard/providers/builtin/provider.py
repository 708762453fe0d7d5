"""A provider whose tools are given to it by the composition root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.tool import Kind, Tool
from toolyard.providers.base import Invocation

NAMESPACE = "toolyard"


@dataclass(frozen=True, slots=True)
class BuiltinTool:
    tool: Tool
    run: Callable[[Invocation], Awaitable[ToolResult]]


class BuiltinProvider:
    kind = Kind.BUILTIN
    id = NAMESPACE
    address = "built in"

    def __init__(self, tools: Sequence[BuiltinTool]) -> None:
        self._tools = {item.tool.name: item for item in tools}

    async def start(self) -> None:
        pass

    async def tools(self) -> Sequence[Tool]:
        return [item.tool for item in self._tools.values()]

    async def call(self, invocation: Invocation) -> ToolResult:
        item = self._tools.get(invocation.tool.name)
        if item is None:
            raise CallError(ErrorCode.NOT_FOUND, f"There is no built-in tool {invocation.tool.name!r}.")
        return await item.run(invocation)

    async def health(self) -> None:
        pass

    def on_change(self, notify: Callable[[], None]) -> None:
        """The list never changes."""

    async def close(self) -> None:
        pass
