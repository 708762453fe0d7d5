"""What a node needs to know before it can open its store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolyard.calls.parking import PICK_UP_TIMEOUT

HOLD_SECONDS = 60.0
TASK_AFTER_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    `database` is a path or a `postgresql://` URL; by default a file in `data_dir`. `blobs` is a folder or a URL that
    obstore understands; by default a folder in `data_dir`. `public_url` is how clients reach this yard. `manifest_dir`
    is where Python modules named in the manifest are looked for. `hold_seconds` is how long an MCP request is held
    while its call waits for a person, when the client does not say. `task_after_seconds` is how long a client that
    knows MCP tasks waits for a result before it is given a task in its place. `node_lease_seconds` is after how long
    other nodes take over the work of one that fell silent. `pick_up_seconds` is how long a client has to pick up a call
    of one of its tools. None leaves each of them to the manifest, and where that says nothing, to the usual.
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
    hold_seconds: float | None = None
    task_after_seconds: float | None = None
    node_lease_seconds: float | None = None
    pick_up_seconds: float | None = None

    @property
    def database_location(self) -> str:
        return self.database or str(self.data_dir / "toolyard.db")

    @property
    def blob_location(self) -> str:
        return self.blobs or str(self.data_dir / "blobs")

    @property
    def hold_limit(self) -> float:
        return HOLD_SECONDS if self.hold_seconds is None else self.hold_seconds

    @property
    def task_after(self) -> float:
        return TASK_AFTER_SECONDS if self.task_after_seconds is None else self.task_after_seconds

    @property
    def pick_up_limit(self) -> float:
        return PICK_UP_TIMEOUT if self.pick_up_seconds is None else self.pick_up_seconds

    @property
    def url(self) -> str:
        """Without a slash at its end."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"
