"""`toolyard manifest`: its schema for editors, and a check without starting anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolyard.faces.cli.options import AsJson
from toolyard.faces.cli.output import print_json, print_text

group = typer.Typer(no_args_is_help=True, help="Describe and check manifests.")


@group.command("schema")
def schema(*, as_json: AsJson = True) -> None:
    """Print the manifest's JSON Schema, for editors."""
    from toolyard.manifest import json_schema

    print_json(json_schema())


@group.command("check")
def check(file: Annotated[Path, typer.Argument(help="The manifest.")], *, as_json: AsJson = False) -> None:
    """Check a manifest, its variables included; start nothing."""
    from toolyard.manifest import load

    manifest = load(file)
    providers = [{"id": config.id, "kind": config.__struct_config__.tag} for config in manifest.all_providers]
    servers = [config.id for config in manifest.servers]
    agents = [config.id for config in manifest.agents]
    if as_json:
        print_json({"file": str(file), "providers": providers, "servers": servers, "agents": agents})
        return
    counts = ((len(providers), "provider"), (len(servers), "server"), (len(agents), "agent"))
    told = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts)
    print_text(f"{file} is fine: {told}.")
