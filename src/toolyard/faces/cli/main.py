"""`toolyard`: the top-level command and its groups."""

from __future__ import annotations

from typing import Annotated

import typer

from toolyard.faces.cli import (
    approvals,
    calls,
    clusters,
    doctor,
    imports,
    keys,
    login,
    manifest,
    providers,
    serve,
    servers,
    sessions,
    skills,
    stdio,
    tools,
)
from toolyard.faces.cli import call as call_command
from toolyard.faces.cli.failures import EXIT_CODES, YardGroup

app = typer.Typer(
    name="toolyard",
    cls=YardGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EXIT_CODES,
    help="One catalog of tools, one call path, every face: MCP, HTTP, console, command line.",
)

app.command("serve")(serve.serve)
app.command("mcp")(stdio.mcp)
app.command("import")(imports.import_document)
app.command("call")(call_command.call)
app.command("doctor")(doctor.doctor)
app.command("login-link")(login.login_link)
app.add_typer(tools.group, name="tools")
app.add_typer(clusters.group, name="clusters")
app.add_typer(calls.group, name="calls")
app.add_typer(approvals.group, name="approvals")
app.add_typer(sessions.group, name="sessions")
app.add_typer(servers.group, name="servers")
app.add_typer(skills.group, name="skills")
app.add_typer(providers.group, name="providers")
app.add_typer(keys.group, name="keys")
app.add_typer(manifest.group, name="manifest")


def _print_version(wanted: bool) -> None:  # noqa: FBT001  (typer calls it so)
    if wanted:
        import toolyard

        print(f"toolyard {toolyard.__version__}")
        raise typer.Exit


@app.callback()
def top_level(
    version: Annotated[  # noqa: FBT002
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """One catalog of tools, one call path, every face: MCP, HTTP, console, command line."""


def main() -> None:
    app()
