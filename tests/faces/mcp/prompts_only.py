"""A server of the `mcp` SDK on stdio that has no tools at all."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def list_prompts(_ctx: Any, _params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[types.Prompt(name="hello")])


async def get_prompt(_ctx: Any, _params: Any) -> types.GetPromptResult:
    message = types.PromptMessage(role="user", content=types.TextContent(text="Hello."))
    return types.GetPromptResult(messages=[message])


async def list_resources(_ctx: Any, _params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(uri="memo://one", name="one")])


async def read_resource(_ctx: Any, params: Any) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=str(params.uri), text="one")])


async def main() -> None:
    server: Server[Any] = Server(
        "prompts",
        version="1",
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
