"""A server of the `mcp` SDK (both eras) with one tool per behaviour. As a script it speaks stdio."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

RICH: dict[str, Any] = {
    "name": "rich",
    "title": "Everything a definition can hold",
    "description": "Line one.\n\n  Indented — with ünïcode 😀 and trailing space ",
    "inputSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"node": {"$anchor": "node", "type": "object", "properties": {"next": {"$ref": "#node"}}}},
        "properties": {"tree": {"$ref": "#/$defs/node"}, "kind": {"enum": ["a", None, 1]}},
        "allOf": [{"if": {"required": ["kind"]}, "then": {"required": ["tree"]}}],
        "additionalProperties": False,
        "x-vendor": {"kept": [1, 2.5, None]},
    },
    "outputSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
    "annotations": {"title": "Rich", "readOnlyHint": True, "openWorldHint": False},
    "icons": [{"src": "data:image/png;base64,AA==", "mimeType": "image/png", "sizes": ["48x48"]}],
    "_meta": {"example.com/owner": {"team": "tools", "levels": [1, 2]}},
}
HEADED: dict[str, Any] = {
    "name": "headed",
    "description": "Answers with the headers that it was called with.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "place": {"type": "object", "properties": {"floor": {"type": "integer", "x-mcp-header": "Floor"}}},
        },
    },
}
RICH_RESULT: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "one", "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"n": 1}},
        {"type": "image", "data": "AAEC", "mimeType": "image/png"},
        {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a%20b", "name": "a b"},
        {"type": "resource", "resource": {"uri": "test://x", "text": "inside", "mimeType": "text/plain"}},
    ],
    "structuredContent": {"ok": True, "deep": {"list": [1, 2.5, None, "x"]}},
    "isError": False,
    "_meta": {"example.com/trace": "abc"},
}


def _plain(name: str, **properties: object) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


class Behaviours:
    """What the server remembers, for tests to look at."""

    def __init__(self) -> None:
        self.extra = 0
        self.slow = self.cancelled = 0
        self.bus = InMemorySubscriptionBus()

    def definitions(self) -> list[dict[str, Any]]:
        plain = ["echo", "refuse", "fail", "progress", "slow", "change", "ask", "big", "tool with ünïcode"]
        return [RICH, HEADED, *(_plain(name) for name in plain), *(_plain(f"extra{n}") for n in range(self.extra))]

    async def list_tools(self, _ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Five a page."""
        begin = int(params.cursor) if params is not None and params.cursor else 0
        tools = self.definitions()
        following = str(begin + 5) if begin + 5 < len(tools) else None
        page = [types.Tool.model_validate(tool) for tool in tools[begin : begin + 5]]
        return types.ListToolsResult(tools=page, next_cursor=following)

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        match params.name:
            case "rich":
                return types.CallToolResult.model_validate(RICH_RESULT)
            case "headed":
                given = {k: v for k, v in ctx.request.headers.items() if k.startswith("mcp-")} if ctx.request else {}
                return _structured(given)
            case "refuse":
                return types.CallToolResult(content=[types.TextContent(text="the tool said no")], is_error=True)
            case "fail":
                raise types_error("boom " + "x" * 2000)
            case "progress":
                for step in (1, 2, 3):
                    await ctx.session.report_progress(step, 3, f"step {step}")
            case "slow":
                self.slow += 1
                try:
                    await anyio.sleep(60)
                except anyio.get_cancelled_exc_class():
                    self.cancelled += 1
                    raise
            case "change":
                self.extra += 1
                await self.bus.publish(ToolsListChanged())
                await ctx.session.send_tool_list_changed()
            case "ask":
                return await _ask(ctx, arguments)
            case "big":
                return types.CallToolResult(content=[types.TextContent(text="x" * 11_000_000)])
            case _:
                pass
        return _structured({"tool": params.name, "arguments": arguments})

    def server(self) -> Server[Any]:
        return Server(
            "behaviours",
            version="1",
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_subscriptions_listen=ListenHandler(self.bus),
            get_tool_input_schema=lambda name: {"type": "object"} if name != "headed" else HEADED["inputSchema"],
        )


async def _ask(ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    """`here`: whether it asks on the call's own stream or the session's; it logs then too."""
    related = ctx.request_id if arguments.get("here") else None
    if "here" in arguments:
        await ctx.session.send_log_message("warning", "asking", related_request_id=related)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    answer = await ctx.session.elicit_form("Name?", schema, related_request_id=related)
    return _structured(answer.model_dump(exclude_none=True))


def types_error(message: str) -> Exception:
    from mcp.shared.exceptions import MCPError

    return MCPError(-32050, message)


def _structured(value: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text="done")], structured_content=value)


async def main() -> None:
    from mcp.server.lowlevel.server import NotificationOptions
    from mcp.server.stdio import stdio_server

    server = Behaviours().server()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(NotificationOptions(tools_changed=True)))


if __name__ == "__main__":
    asyncio.run(main())
