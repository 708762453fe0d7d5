from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from tests.faces.cli.yard import RunningYard, running_yard
from toolyard.faces.cli.main import app


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return orjson.loads(self.out)

    @property
    def lines(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


class Command:
    """`toolyard ...` in this process."""

    def __init__(self, url: str | None = None) -> None:
        self._env = {"TOOLYARD_URL": url} if url else {}

    def __call__(self, *arguments: str, stdin: str | None = None, key: str | None = None) -> Ended:
        env = {**self._env, **({"TOOLYARD_KEY": key} if key else {})}
        result = CliRunner().invoke(app, list(arguments), input=stdin, env=env)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Ended(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TOOLYARD_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def processes_compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """As in an installed package: what one process compiled, the next one finds."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        environment.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        yield


@pytest.fixture(scope="session")
def demo_yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningYard]:
    with running_yard(tmp_path_factory.mktemp("demo"), demo=True) as yard:
        yield yard


@pytest.fixture
def toolyard(demo_yard: RunningYard) -> Command:
    """The command, pointed at the demo's yard."""
    return Command(demo_yard.url)


@pytest.fixture
def bare() -> Command:
    """The command, pointed at nothing."""
    return Command()
