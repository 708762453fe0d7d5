"""`toolyard mcp`: the same MCP server over stdin and stdout, for clients that start their servers."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from toolyard.faces.cli.options import DEFAULT_DATA_DIR, Database, DataDir, ManifestFile
from toolyard.logs import log_to_stderr


def mcp(
    manifest: ManifestFile = None,
    *,
    server: Annotated[str, typer.Option(help="Which server (slice of the catalog) to serve.")] = "default",
    database: Database = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Serve MCP over stdin and stdout. Logs go to stderr; the end of stdin ends it."""
    from toolyard.app import App, Settings
    from toolyard.faces.mcp import serve_stdio
    from toolyard.manifest import load

    log_to_stderr(verbose=verbose)
    declared = load(manifest) if manifest is not None else None
    settings = Settings(
        data_dir=data_dir,
        database=database or "",
        manifest_dir=manifest.resolve().parent if manifest is not None else None,
    )

    async def run() -> None:
        async with App.running(settings, declared) as app:
            await serve_stdio(app, server)

    asyncio.run(run())
