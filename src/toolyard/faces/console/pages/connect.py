"""`/connect`: what to paste where, with the real address."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from toolyard.core.json import JsonObject
from toolyard.core.principal import Scope
from toolyard.faces.console.forms.sources import pretty
from toolyard.faces.console.visit import Visit

KEY = "YOUR_KEY"


@dataclass(frozen=True, slots=True)
class Snippet:
    id: str
    title: str
    where: str
    """Where it goes, in a few words."""
    text: str


@dataclass(frozen=True, slots=True)
class _Target:
    base: str
    server: str
    needs_key: bool
    token_in_url: bool = False

    @property
    def url(self) -> str:
        return f"{self.base}/mcp" if self.server == "default" else f"{self.base}/mcp/{self.server}"

    @property
    def name(self) -> str:
        return "toolyard" if self.server == "default" else f"toolyard-{self.server}"


async def show(visit: Visit) -> Response:
    servers = visit.app.servers
    chosen = visit.query.get("server", "default")
    server = servers.get(chosen) or servers["default"]
    base = _base(visit)
    target = _Target(base, server.id, needs_key=not visit.app.settings.demo, token_in_url=server.token_in_url)
    view = visit.app.catalog.snapshot.view(server)
    first = next((entry for entry in view.entries if entry.callable), None)
    return visit.page(
        "connect.html",
        servers=sorted(servers.values(), key=lambda one: (one.id != "default", one.id)),
        server=server,
        url=target.url,
        count=len(view.entries),
        needs_key=target.needs_key,
        may_make_keys=visit.principal.may(Scope.ADMIN),
        groups=[
            ("Apps", _apps(target)),
            ("Code", _code(target)),
            ("Command line", _command_line(target, first.id if first else "provider:tool")),
        ],
    )


def _base(visit: Visit) -> str:
    """The public address where one is set, and else the one that this browser uses."""
    return (visit.app.settings.public_url or str(visit.request.base_url)).rstrip("/")


def _apps(target: _Target) -> list[Snippet]:
    headers: JsonObject = {"headers": {"Authorization": f"Bearer {KEY}"}} if target.needs_key else {}
    remote = pretty({"mcpServers": {target.name: {"url": target.url, **headers}}})
    vscode = pretty({"servers": {target.name: {"type": "http", "url": target.url, **headers}}})
    bridge = [
        "-y",
        "mcp-remote",
        target.url,
        *(["--header", f"Authorization: Bearer {KEY}"] if target.needs_key else []),
    ]
    desktop = pretty({"mcpServers": {target.name: {"command": "npx", "args": bridge}}})
    stdio = pretty({"mcpServers": {target.name: {"command": "toolyard", "args": ["mcp", *_server_flag(target)]}}})
    header = f' --header "Authorization: Bearer {KEY}"' if target.needs_key else ""
    claude = f"claude mcp add --transport http {target.name} {target.url}{header}"
    in_address = f"{target.base}/mcp/{target.server}/t/{KEY}"
    return [
        Snippet("claude-code", "Claude Code", "Run in a terminal", claude),
        Snippet("claude-desktop", "Claude Desktop", "claude_desktop_config.json", desktop),
        Snippet("cursor", "Cursor", "~/.cursor/mcp.json", remote),
        Snippet("vscode", "VS Code", ".vscode/mcp.json", vscode),
        Snippet("stdio", "Any client on this machine", "Started by the client, over stdio", stdio),
        *(
            [Snippet("address", "Clients without headers", "The key is in the address: keep it secret", in_address)]
            if target.token_in_url
            else []
        ),
    ]


def _server_flag(target: _Target) -> list[str]:
    return [] if target.server == "default" else ["--server", target.server]


def _code(target: _Target) -> list[Snippet]:
    py_auth = (
        f', http_client=httpx2.AsyncClient(headers={{"Authorization": "Bearer {KEY}"}})' if target.needs_key else ""
    )
    py_import = "import httpx2\n" if target.needs_key else ""
    transport = f'streamable_http_client("{target.url}"{py_auth})' if target.needs_key else f'"{target.url}"'
    py_client = "from mcp.client.streamable_http import streamable_http_client\n" if target.needs_key else ""
    python = (
        f"import asyncio\n{py_import}from mcp import Client\n{py_client}\n"
        f"async def main():\n    async with Client({transport}) as client:\n"
        "        tools = await client.list_tools()\n        print([tool.name for tool in tools.tools])\n\n"
        "asyncio.run(main())"
    )
    ts_auth = (
        f', {{\n  requestInit: {{ headers: {{ Authorization: "Bearer {KEY}" }} }},\n}}' if target.needs_key else ""
    )
    typescript = (
        'import { Client } from "@modelcontextprotocol/sdk/client/index.js";\n'
        'import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";\n\n'
        'const client = new Client({ name: "my-app", version: "1.0.0" });\n'
        f'await client.connect(new StreamableHTTPClientTransport(new URL("{target.url}"){ts_auth}));\n'
        "console.log(await client.listTools());"
    )
    return [
        Snippet("python", "Python", "pip install mcp", python),
        Snippet("typescript", "TypeScript", "npm install @modelcontextprotocol/sdk", typescript),
    ]


def _command_line(target: _Target, tool: str) -> list[Snippet]:
    from urllib.parse import quote

    auth = f'  -H "Authorization: Bearer {KEY}" \\\n' if target.needs_key else ""
    common = '  -H "Content-Type: application/json" \\\n  -H "Accept: application/json, text/event-stream" \\\n'
    modern = (
        f"curl -s {target.url} \\\n{auth}{common}"
        '  -H "MCP-Protocol-Version: 2026-07-28" -H "Mcp-Method: tools/list" \\\n'
        '  -d \'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {\n'
        '        "io.modelcontextprotocol/protocolVersion": "2026-07-28",\n'
        '        "io.modelcontextprotocol/clientCapabilities": {}}}}\''
    )
    legacy = (
        f"curl -si {target.url} \\\n{auth}{common}"
        '  -d \'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",\n'
        '        "capabilities": {}, "clientInfo": {"name": "curl", "version": "1"}}}\''
    )
    rest = (
        f"curl -s {target.base}/v1/tools/{quote(tool, safe=':')}/call \\\n{auth}"
        '  -H "Content-Type: application/json" \\\n  -d \'{"arguments": {}}\''
    )
    return [
        Snippet("curl-modern", "MCP 2026-07-28", "List the tools, no session needed", modern),
        Snippet("curl-legacy", "MCP until 2025-11-25", "Open a session", legacy),
        Snippet("rest", "REST", "Call one tool without MCP", rest),
    ]
