"""`toolyard doctor`: what is wrong with the set-up, and what to do about it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from toolyard.faces.cli.failures import Exit
from toolyard.faces.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_HOST,
    DEFAULT_PORT,
    AsJson,
    Database,
    DataDir,
    ManifestFile,
    database_location,
)
from toolyard.faces.cli.output import print_json, print_text

_MARKS = {"ok": "ok  ", "warning": "warn", "failed": "FAIL"}


def doctor(
    manifest: ManifestFile = None,
    *,
    host: Annotated[str, typer.Option(help="The address that would be listened on.")] = DEFAULT_HOST,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port that would be listened on.")] = DEFAULT_PORT,
    database: Database = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Check this machine's set-up; exit code 1 when something is wrong."""
    from toolyard.faces.cli.checkup import Setup, examine

    setup = Setup(
        data_dir=data_dir,
        database=database_location(database, data_dir),
        host=host,
        port=port,
        manifest=manifest,
    )
    findings = asyncio.run(examine(setup))
    if as_json:
        print_json([finding.to_wire() for finding in findings])
    else:
        for finding in findings:
            print_text(f"{_MARKS[finding.state]}  {finding.what}: {finding.said}")
            if finding.advice:
                print_text(f"      -> {finding.advice}")
    if any(finding.state == "failed" for finding in findings):
        raise typer.Exit(Exit.FAILED)
