"""The checks behind `toolyard doctor`. Each looks at one thing and gives advice."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from toolyard.core.errors import ManifestError, StoreInUse, ToolyardError
from toolyard.core.json import JsonValue
from toolyard.faces.cli.yard import Yard
from toolyard.logs import log_to_stderr
from toolyard.manifest import Manifest, ProviderConfig, load

if TYPE_CHECKING:
    from toolyard.app import App

State: TypeAlias = Literal["ok", "warning", "failed"]

_LITTLE_SPACE = 500 * 1024 * 1024
_NO_SPACE = 50 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    state: State
    said: str
    advice: str | None = None

    def to_wire(self) -> Mapping[str, JsonValue]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Setup:
    data_dir: Path
    database: str
    host: str
    port: int
    manifest: Path | None = None


async def examine(setup: Setup) -> list[Finding]:
    """Every finding, in the order in which one would mend them."""
    log_to_stderr(quiet=True)
    running = await _running_yard(setup)
    findings = [check_python(), check_data_dir(setup.data_dir), check_disk(setup.data_dir)]
    findings += [await check_database(setup, running=running is not None), running or check_port(setup)]
    declared, finding = check_manifest(setup.manifest)
    findings.append(finding)
    if declared is not None:
        findings += await check_providers(declared, setup)
    return findings


def check_python(version: tuple[int, int] = (sys.version_info[0], sys.version_info[1])) -> Finding:
    said = f"{version[0]}.{version[1]}"
    if version < (3, 11):
        return Finding("Python", "failed", f"{said} is too old", "Install Python 3.11 or newer.")
    return Finding("Python", "ok", said)


def check_data_dir(folder: Path) -> Finding:
    if not folder.exists():
        parent = next(parent for parent in folder.resolve().parents if parent.exists())
        return _writable(parent, f"{folder} will be made at the first start")
    if not folder.is_dir():
        return Finding("Data folder", "failed", f"{folder} is no folder", "Name another one with --data-dir.")
    return _writable(folder, str(folder))


def _writable(folder: Path, said: str) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"toolyard")
    except OSError as error:
        advice = "Give this user the right to write there, or name another folder with --data-dir."
        return Finding("Data folder", "failed", f"{folder} cannot be written: {error.strerror}", advice)
    return Finding("Data folder", "ok", said)


def check_disk(folder: Path) -> Finding:
    existing = next(place for place in (folder.resolve(), *folder.resolve().parents) if place.exists())
    free = shutil.disk_usage(existing).free
    said = f"{free / 1024**3:.1f} GB free"
    if free < _NO_SPACE:
        return Finding("Disk space", "failed", said, "Free some space; calls cannot be recorded on a full disk.")
    if free < _LITTLE_SPACE:
        return Finding("Disk space", "warning", said, "Free some space, or set settings.retention_days.")
    return Finding("Disk space", "ok", said)


async def check_database(setup: Setup, *, running: bool) -> Finding:
    """Reachable, not locked by another process, of a version that this Toolyard knows. Opening it migrates it."""
    from toolyard.store.open import open_store

    if _is_missing_file(setup.database):
        return Finding("Database", "ok", f"{setup.database} will be made at the first start")
    try:
        store = open_store(setup.database)
        try:
            await store.start()
            return Finding("Database", "ok", f"{store.location} answers and is up to date")
        finally:
            await store.close()
    except StoreInUse as error:
        if running:
            return Finding("Database", "ok", f"{setup.database} is in use by a Toolyard that runs here")
        return Finding("Database", "failed", error.message, error.suggestion)
    except ToolyardError as error:
        return Finding("Database", "failed", error.message, error.suggestion)


def _is_missing_file(location: str) -> bool:
    return "://" not in location and not Path(location).expanduser().exists()


async def _running_yard(setup: Setup) -> Finding | None:
    """The finding for the port, when what listens there is a Toolyard."""
    from toolyard.egress import Egress

    egress = Egress()
    host = "127.0.0.1" if setup.host == "0.0.0.0" else setup.host
    try:
        await Yard(f"http://{host}:{setup.port}", egress).request("GET", "/healthz", time_limit=3)
    except ToolyardError:
        return None
    finally:
        await egress.close()
    return Finding("Port", "ok", f"a Toolyard runs at {host}:{setup.port}")


def check_port(setup: Setup) -> Finding:
    from toolyard.serving import listening_socket

    try:
        listening_socket(setup.host, setup.port).close()
    except ToolyardError as error:
        return Finding("Port", "failed", error.message, error.suggestion)
    return Finding("Port", "ok", f"{setup.host}:{setup.port} is free")


def check_manifest(path: Path | None) -> tuple[Manifest | None, Finding]:
    if path is None:
        return None, Finding("Manifest", "ok", "none given; `toolyard doctor FILE` checks one")
    try:
        manifest = load(path)
    except ManifestError as error:
        return None, Finding("Manifest", "failed", f"{path} cannot be used", str(error))
    return manifest, Finding("Manifest", "ok", f"{path} is fine")


async def check_providers(manifest: Manifest, setup: Setup) -> list[Finding]:
    """Contact every declared provider once, all at the same time, in a yard that is thrown away."""
    import msgspec

    from toolyard.app import App, Settings

    if not manifest.all_providers:
        return []
    declared = tuple(msgspec.structs.replace(config, required=False) for config in manifest.all_providers)
    folder = setup.manifest.resolve().parent if setup.manifest is not None else None
    with tempfile.TemporaryDirectory(prefix="toolyard-doctor-") as scratch:
        settings = Settings(data_dir=Path(scratch), manifest_dir=folder)
        async with App.running(settings, Manifest(providers=declared)) as app:
            await asyncio.gather(*(_first_answer(app, config.id) for config in manifest.all_providers))
            return [_of_provider(app, config) for config in manifest.all_providers]


async def _first_answer(app: App, provider_id: str) -> None:
    """A start does not wait long for a provider; a check does, for as long as that provider may take."""
    status = next((status for status in app.supervisor.statuses() if status.id == provider_id), None)
    if status is not None and status.state == "starting":
        with suppress(ToolyardError):  # the status says why
            await app.refresh_provider(provider_id)


def _of_provider(app: App, config: ProviderConfig) -> Finding:
    what = f"Provider {config.id}"
    status = next((status for status in app.supervisor.statuses() if status.id == config.id), None)
    if status is None:
        return Finding(what, "warning", "kept, but this kind is not served yet")
    if status.state == "up":
        return Finding(what, "ok", f"{status.tool_count} tools from {status.address}")
    said = status.last_error or "it did not answer in time"
    if config.required:
        return Finding(what, "failed", said, f"Start it, or mend its address: {status.address}.")
    return Finding(what, "warning", said, f"Toolyard starts without it and goes on trying {status.address}.")
