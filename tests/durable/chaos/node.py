"""One node, as `toolyard serve` makes it, with the effect tools and with whatever defect it is told to have."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.durable.chaos import effects

APPROVAL_SECONDS = 3.0
"""The time-out of an approval that nobody decides."""
SILENCE = 1.0
"""Seconds without a beat after which a client's call counts as abandoned, not counting the slack of the flush."""
PICK_UP_SECONDS = 4.0
"""How long a client has to take up a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """`lease` in seconds. `crash_at` ends the process at that commit, before it or after it."""

    database: str
    folder: str
    slot: int = 0
    port: int = 0
    log: str = ""
    lease: float = 1.5
    mutant: str | None = None
    crash_at: int | None = None
    crash_after: bool = False
    count_to: str | None = None
    """A file that gets one byte for each commit."""

    @property
    def effects(self) -> Path:
        return Path(self.folder) / "effects.jsonl"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _nobody(_: dict[str, Any]) -> None: ...


REPORT: Callable[[dict[str, Any]], None] = _nobody


def import_everything() -> None:
    """What a node would import in its first seconds; the HTTP face imports its routes when it is built."""
    import psycopg  # noqa: F401
    import uvloop  # noqa: F401

    import toolyard.providers.python
    import toolyard.store.postgres  # noqa: F401
    from toolyard.app import App  # noqa: F401
    from toolyard.faces import asgi  # noqa: F401
    from toolyard.faces.http import api, routes
    from toolyard.serving import serving  # noqa: F401

    for room in (api, routes):
        folder = Path(str(room.__file__)).parent
        for file in folder.glob("*.py"):
            importlib.import_module(f"{room.__package__}.{file.stem}" if file.stem != "__init__" else room.__name__)


def run(config: NodeConfig) -> None:
    import uvloop

    from tests.durable.chaos import commits, mutants

    os.environ[effects.FILE] = str(config.effects)
    _hurry(config)
    if config.mutant:
        mutants.apply(config.mutant)
    if config.crash_at is not None or config.count_to is not None:
        commits.watch(config.crash_at, after=config.crash_after, count_to=config.count_to)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config))


async def _serve(config: NodeConfig) -> None:
    from tests.durable.chaos import commits, jobs
    from toolyard.app import App
    from toolyard.faces import asgi
    from toolyard.serving import listening_socket, serving

    with listening_socket("127.0.0.1", config.port) as bound:
        async with App.running(_settings(config), _manifest()) as app:
            app.engine.handle(jobs.KIND, jobs.run_job)
            async with serving(jobs.beside(app.engine, asgi.build(app)), bound):
                commits.begin()
                REPORT({"ready": os.getpid(), "node": app.engine.node_id})
                await asyncio.Event().wait()


def _settings(config: NodeConfig) -> Any:
    from toolyard.app import Settings

    return Settings(
        data_dir=Path(config.folder),
        database=config.database,
        blobs=str(Path(config.folder) / "blobs"),
        port=config.port,
        pick_up_seconds=PICK_UP_SECONDS,
    )


def _hurry(config: NodeConfig) -> None:
    """Seconds instead of minutes."""
    from toolyard.calls import orphans
    from toolyard.calls.client_calls import ClientCalls
    from toolyard.durable import engine

    _default(ClientCalls, "silence_timeout", SILENCE)
    orphans.LOOK_ANYWAY_EVERY = 3.0
    engine.TTL = engine.TTL_ALONE = config.lease


def _default(built: type, name: str, seconds: float) -> None:
    defaults = built.__init__.__kwdefaults__  # type: ignore[misc]
    assert name in defaults, f"{built.__name__} takes no {name}"
    defaults[name] = seconds


def _manifest() -> Any:
    from toolyard.manifest import Manifest, PythonConfig

    module = effects.__name__
    return Manifest(
        providers=(
            PythonConfig(id="free", module=module),
            PythonConfig(id="asked", module=module, auto_approve=False, approval_timeout=APPROVAL_SECONDS),
        )
    )
