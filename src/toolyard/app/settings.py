"""What a node needs to know before it can open its store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HOLD_SECONDS = 60.0
TASK_AFTER_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    `database` is a path or a `postgresql://` URL; by default a file in `data_dir`. `blobs` is a folder or a URL that
    obstore understands; by default a folder in `data_dir`. `public_url` is how clients reach this yard. `manifest_dir`
    is where Python modules named in the manifest are looked for. `hold_seconds` is how long an MCP request is held
    while its call waits for a person, when the client does not say. `task_after_seconds` is how long a client that
    knows MCP tasks waits for a result before it is given a task in its place.
    """

    data_dir: Path
    database: str = ""
    blobs: str = ""
    host: str = "127.0.0.1"
    port: int = 8420
    public_url: str = ""
    demo: bool = False
    retention_days: int | None = None
    manifest_dir: Path | None = None
    hold_seconds: float = HOLD_SECONDS
    task_after_seconds: float = TASK_AFTER_SECONDS

    @property
    def database_location(self) -> str:
        return self.database or str(self.data_dir / "toolyard.db")

    @property
    def blob_location(self) -> str:
        return self.blobs or str(self.data_dir / "blobs")

    @property
    def url(self) -> str:
        """Without a slash at its end."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"
