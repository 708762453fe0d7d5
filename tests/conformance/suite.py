"""The official conformance suite, run against an address, and what it found."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from tests.node import node, npm_install

PACKAGE = ("@modelcontextprotocol/conformance", "0.2.0-alpha.12")
REVISIONS = ("2025-11-25", "2026-07-28")
_BOTH_REVISIONS = ("tools_call", "json-schema-2020-12-preservation")
CLIENT_SCENARIOS = {
    "2025-11-25": ("initialize", *_BOTH_REVISIONS, "elicitation-sep1034-client-defaults", "sse-retry"),
    "2026-07-28": (
        *_BOTH_REVISIONS,
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
    ),
}
LONGEST_RUN = 120.0
"""Seconds."""
_FOLDER = re.compile(r"^(?:server|client)-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$")
_UNSCORED = re.compile(r"^\s+[✓✗] (\S+) \(([\w -]+)\)$", re.MULTILINE)
_GOOD = frozenset({"SUCCESS", "INFO"})


@dataclass(frozen=True)
class Scenario:
    name: str
    passed: int
    failed: tuple[str, ...]
    """`check: message` of each that failed or warned."""
    skipped: int
    unscored: str | None = None
    """Why the revision's requirements leave it out."""


@dataclass(frozen=True)
class Report:
    """`ok` is the suite's own verdict, over what the revision requires."""

    title: str
    ok: bool
    scenarios: tuple[Scenario, ...]
    output: str = field(repr=False)

    @property
    def required(self) -> list[Scenario]:
        return [one for one in self.scenarios if one.unscored is None]

    @property
    def failures(self) -> dict[str, tuple[str, ...]]:
        """By scenario, required or not."""
        return {one.name: one.failed for one in self.scenarios if one.failed}

    def counted(self, *, required: bool) -> tuple[int, int]:
        """Checks that passed, and all that were made."""
        those = [one for one in self.scenarios if (one.unscored is None) is required]
        passed = sum(one.passed for one in those)
        return passed, passed + sum(len(one.failed) for one in those)

    def to_wire(self) -> dict[str, object]:
        return {
            "title": self.title,
            "ok": self.ok,
            "scenarios": {
                one.name: {"passed": one.passed, "failed": one.failed, "skipped": one.skipped, "unscored": one.unscored}
                for one in self.scenarios
            },
        }


async def against_server(title: str, url: str, folder: Path, *, revision: str) -> Report:
    """Every scenario of a revision, those that it does not score among them."""
    return await _run(title, ["server", "--url", url, "--requirements", revision], folder)


async def one_scenario(name: str, url: str, folder: Path) -> Report:
    """One that belongs to no revision, such as an extension's."""
    return await _run(name, ["server", "--url", url, "--scenario", name], folder)


async def against_client(title: str, command: str, folder: Path, *, revision: str) -> Report:
    """All that a revision requires of a client apart from OAuth, one by one: together they would start 50 processes."""
    reports: list[Report] = []
    for name in CLIENT_SCENARIOS[revision]:
        arguments = ["client", "--command", command, "--spec-version", revision, "--scenario", name]
        reports.append(await _run(name, arguments, folder / name))
    scenarios = tuple(replace(one, name=report.title) for report in reports for one in report.scenarios)
    return Report(title, all(report.ok for report in reports), scenarios, "".join(report.output for report in reports))


async def _run(title: str, arguments: Sequence[str], folder: Path) -> Report:
    package = await asyncio.to_thread(npm_install, *PACKAGE, lock=Path(__file__).parent)
    binary = node()
    process = await asyncio.create_subprocess_exec(
        binary,
        package / "dist" / "index.js",
        *arguments,
        "-o",
        str(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PATH": f"{binary.parent}{os.pathsep}{os.environ.get('PATH', '')}", "NO_COLOR": "1"},
    )
    try:
        async with asyncio.timeout(LONGEST_RUN):
            out, _ = await process.communicate()
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    output = out.decode(errors="replace")
    unscored = dict(_UNSCORED.findall(output.partition("Not scored")[2]))
    return Report(title, process.returncode == 0, _scenarios(folder, unscored), output)


def _scenarios(folder: Path, unscored: dict[str, str]) -> tuple[Scenario, ...]:
    found: list[Scenario] = []
    for checks in sorted(folder.glob("**/checks.json")):
        named = _FOLDER.match(str(checks.parent.relative_to(folder)))
        name = named.group(1) if named else checks.parent.name
        entries = orjson.loads(checks.read_bytes())
        statuses = [entry["status"] for entry in entries]
        failed = tuple(
            f"{entry['id']}: {entry.get('errorMessage') or entry['status'].lower()}"
            for entry in entries
            if entry["status"] not in _GOOD and entry["status"] != "SKIPPED"
        )
        found.append(Scenario(name, statuses.count("SUCCESS"), failed, statuses.count("SKIPPED"), unscored.get(name)))
    return tuple(found)
