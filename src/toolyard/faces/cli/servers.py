"""`toolyard servers`: downstream MCP endpoints, each a slice of the catalog."""

from __future__ import annotations

from typing import Annotated

import typer

from toolyard.core.json import JsonObject
from toolyard.faces.cli.options import DEFAULT_URL, AsJson, Url
from toolyard.faces.cli.output import note, print_fields, print_json, print_table, texts
from toolyard.faces.cli.yard import Yard, segment, with_yard

group = typer.Typer(no_args_is_help=True, help="List, add and remove MCP servers (slices of the catalog).")

ServerId = Annotated[str, typer.Argument(help="The server's id: its endpoint is /mcp/ID.")]


@group.command("list")
def list_servers(*, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List servers."""
    found = with_yard(url, lambda yard: yard.pages("/v1/servers", {}, 10_000))
    if as_json:
        print_json(found)
        return
    base = url.rstrip("/")
    rows = [(item["id"], f"{base}/mcp/{item['id']}", texts(item.get("tools")), item.get("title")) for item in found]
    print_table(("server", "address", "tools", "title"), rows, empty="There are no servers.")


@group.command("show")
def show(server: ServerId, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show one server."""

    async def body(yard: Yard) -> JsonObject:
        return await yard.get(f"/v1/servers/{segment(server)}")

    found = with_yard(url, body)
    if as_json:
        print_json(found)
    else:
        print_fields(found)


@group.command("add")
def add(
    server: ServerId,
    *,
    tools: Annotated[
        list[str] | None, typer.Option("--tools", "-t", help="A pattern such as 'crm:*'; '!crm:delete*' excludes.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    bare_names: Annotated[bool, typer.Option(help="Show tools by their own names, without the provider's.")] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Add a server that serves the tools that fit the patterns (all, without any)."""
    config: dict[str, object] = {"id": server, "tools": tools or ["*"], "names": "bare" if bare_names else "direct"}
    if title is not None:
        config["title"] = title

    async def body(yard: Yard) -> JsonObject:
        return await yard.post("/v1/servers", config)

    made = with_yard(url, body)
    if as_json:
        print_json(made)
    else:
        note(f"Serving at {url.rstrip('/')}/mcp/{server}")


@group.command("remove")
def remove(server: ServerId, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Remove a server; its tools stay."""

    async def body(yard: Yard) -> JsonObject:
        return await yard.request("DELETE", f"/v1/servers/{segment(server)}")

    answer = with_yard(url, body)
    if as_json:
        print_json(answer)
    else:
        note(f"Removed the server {server!r}.")
