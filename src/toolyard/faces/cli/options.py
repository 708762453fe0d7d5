"""Options that many commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8420
DEFAULT_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
DEFAULT_DATA_DIR = Path(".toolyard")

Url: TypeAlias = Annotated[
    str, typer.Option("--url", envvar="TOOLYARD_URL", help="A running Toolyard. Its key is read from TOOLYARD_KEY.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Limit: TypeAlias = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="How many at most.")]
DataDir: TypeAlias = Annotated[
    Path, typer.Option("--data-dir", envvar="TOOLYARD_DATA_DIR", help="Where the database and files are kept.")
]
NamedDataDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="TOOLYARD_DATA_DIR",
        help=f"Use the database of this data folder, not a running yard. Default without a yard: {DEFAULT_DATA_DIR}.",
        show_default=False,
    ),
]
Database: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="TOOLYARD_DATABASE",
        show_envvar=True,
        help="A path for SQLite, or postgresql://user@host/database. Default: toolyard.db in the data folder.",
    ),
]
ManifestFile: TypeAlias = Annotated[
    Path | None, typer.Argument(help="A manifest (YAML); `toolyard manifest schema` describes it.", show_default=False)
]


def database_location(database: str | None, data_dir: Path) -> str:
    return database or str(data_dir / "toolyard.db")
