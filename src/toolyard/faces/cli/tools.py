"""`toolyard tools`: what can be called."""

from __future__ import annotations

from typing import Annotated

import typer

from toolyard.core.json import JsonObject
from toolyard.faces.cli.options import DEFAULT_URL, AsJson, Limit, Url
from toolyard.faces.cli.output import first_line, print_fields, print_json, print_table
from toolyard.faces.cli.yard import Yard, segment, with_yard

group = typer.Typer(no_args_is_help=True, help="List, show and search tools.")

_COLUMNS = ("tool", "kind", "cluster", "state", "description")


@group.command("list")
def list_tools(
    *,
    cluster: Annotated[str | None, typer.Option(help="Only this cluster.")] = None,
    provider: Annotated[str | None, typer.Option(help="Only this provider.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind: mcp, openapi, python ...")] = None,
    limit: Limit = 10_000,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List tools."""
    query = {"cluster": cluster, "provider": provider, "kind": kind, "schemas": str(as_json).lower()}
    found = with_yard(url, lambda yard: yard.pages("/v1/tools", query, limit))
    _print(found, as_json=as_json, empty="There are no such tools.")


@group.command("search")
def search(
    query: Annotated[str, typer.Argument(help="What the tool should do, in a few words.")],
    *,
    limit: Limit = 10,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Search tools by name, description and arguments, best first."""
    found = with_yard(url, lambda yard: yard.pages("/v1/tools", {"q": query, "schemas": str(as_json).lower()}, limit))
    _print(found, as_json=as_json, empty=f"Nothing fits {query!r}. Try fewer or other words.")


@group.command("show")
def show(
    tool: Annotated[str, typer.Argument(help="provider:name")],
    *,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show one tool: its description, arguments and settings."""

    async def one(yard: Yard) -> JsonObject:
        return await yard.get(f"/v1/tools/{segment(tool)}")

    found = with_yard(url, one)
    if as_json:
        print_json(found)
    else:
        print_fields(found)


def _print(found: list[JsonObject], *, as_json: bool, empty: str) -> None:
    if as_json:
        print_json(found)
        return
    rows = [
        (tool["id"], tool.get("kind"), tool.get("cluster"), state_of(tool), first_line(tool.get("description")))
        for tool in found
    ]
    print_table(_COLUMNS, rows, empty=empty)


def state_of(tool: JsonObject) -> str:
    if tool.get("callable"):
        return "ready"
    return "unavailable" if tool.get("available") is False else "disabled"
