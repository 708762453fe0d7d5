"""`toolyard providers`: where tools come from, and how they are."""

from __future__ import annotations

from typing import Annotated

import typer

from toolyard.core.json import JsonObject
from toolyard.faces.cli.options import DEFAULT_URL, AsJson, Url
from toolyard.faces.cli.output import note, print_fields, print_json, print_table
from toolyard.faces.cli.yard import Yard, segment, with_yard

group = typer.Typer(no_args_is_help=True, help="List, show, refresh and remove providers.")

ProviderId = Annotated[str, typer.Argument(help="The provider's id.")]


@group.command("list")
def list_providers(*, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List providers with their state."""
    found = with_yard(url, lambda yard: yard.pages("/v1/providers", {}, 10_000))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            item["id"],
            item.get("kind"),
            item.get("state"),
            item.get("tool_count"),
            item.get("address"),
            item.get("last_error"),
        )
        for item in found
    ]
    print_table(("provider", "kind", "state", "tools", "address", "last error"), rows, empty="There are no providers.")


@group.command("kinds")
def list_kinds(*, as_json: AsJson = False) -> None:
    """List the kinds of provider that this environment knows: the built-in ones, and those that packages add."""
    from toolyard.manifest.kinds import listed_kinds

    found = listed_kinds()
    if as_json:
        print_json([{"kind": kind.name, "packages": list(kind.packages), "problem": kind.problem} for kind in found])
        return
    rows = [(kind.name, ", ".join(kind.packages) or "built in", kind.problem) for kind in found]
    print_table(("kind", "from", "cannot be used"), rows, empty="There are no kinds.")


@group.command("show")
def show(provider: ProviderId, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show one provider."""

    async def body(yard: Yard) -> JsonObject:
        return await yard.get(f"/v1/providers/{segment(provider)}")

    found = with_yard(url, body)
    if as_json:
        print_json(found)
    else:
        print_fields(found)


@group.command("refresh")
def refresh(provider: ProviderId, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Ask a provider for its tools again."""

    async def body(yard: Yard) -> JsonObject:
        return await yard.post(f"/v1/providers/{segment(provider)}/refresh", {})

    found = with_yard(url, body)
    if as_json:
        print_json(found)
    else:
        note(f"{provider} is {found.get('state')} with {found.get('tool_count')} tools.")


@group.command("remove")
def remove(provider: ProviderId, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Remove a provider and its tools."""

    async def body(yard: Yard) -> JsonObject:
        return await yard.request("DELETE", f"/v1/providers/{segment(provider)}")

    answer = with_yard(url, body)
    if as_json:
        print_json(answer)
    else:
        note(f"Removed the provider {provider!r}.")
