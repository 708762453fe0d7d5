"""`toolyard clusters`: tools that are shown and deleted together."""

from __future__ import annotations

from typing import Annotated

import typer

from toolyard.core.json import JsonObject
from toolyard.faces.cli.options import DEFAULT_URL, AsJson, Url
from toolyard.faces.cli.output import note, objects, print_json, print_table, texts
from toolyard.faces.cli.yard import Yard, segment, with_yard

group = typer.Typer(no_args_is_help=True, help="List and delete clusters of tools.")


@group.command("list")
def list_clusters(*, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List clusters with the number of their tools."""

    async def body(yard: Yard) -> JsonObject:
        return await yard.get("/v1/clusters")

    found = objects(with_yard(url, body).get("items"))
    if as_json:
        print_json(found)
        return
    rows = [(item.get("name"), item.get("tools"), texts(item.get("namespaces"))) for item in found]
    print_table(("cluster", "tools", "providers"), rows, empty="There are no tools yet.")


@group.command("delete")
def delete(
    name: Annotated[str, typer.Argument(help="The cluster.")], *, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Delete a cluster and all its tools."""

    async def body(yard: Yard) -> JsonObject:
        return await yard.request("DELETE", f"/v1/clusters/{segment(name)}")

    answer = with_yard(url, body)
    if as_json:
        print_json(answer)
    else:
        note(f"Deleted the cluster {name!r}.")
