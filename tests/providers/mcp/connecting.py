"""A started provider, its tools by name, and a short way to call them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.providers.fakes import invocation
from toolyard.core.call import ToolResult
from toolyard.core.tool import Tool
from toolyard.egress import Egress
from toolyard.providers.mcp import McpHttpProvider
from toolyard.providers.mcp.provider import McpProvider


@dataclass
class Connected:
    provider: McpProvider
    tools: dict[str, Tool]

    async def call(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> ToolResult:
        return await self.provider.call(invocation(self.tools[name], arguments, **more))


@asynccontextmanager
async def connected(provider: McpProvider) -> AsyncIterator[Connected]:
    try:
        await provider.start()
        yield Connected(provider, {tool.name: tool for tool in await provider.tools()})
    finally:
        await provider.close()


@asynccontextmanager
async def connected_http(url: str, **options: Any) -> AsyncIterator[Connected]:
    egress = Egress()
    try:
        async with connected(McpHttpProvider("up", url, egress=egress, **options)) as there:
            yield there
    finally:
        await egress.close()
