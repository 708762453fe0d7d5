"""The official suite's required checks; `make conformance` runs every pair of eras, and the client's side."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import yard
from tests.conformance.suite import REVISIONS, against_server
from tests.requirements import requirement

pytestmark = pytest.mark.node


@requirement("mcp.conformance")
@requirement("mcp.tasks")
async def test_every_check_of_both_revisions_passes_on_our_own_fixtures(tmp_path: Path) -> None:
    async with yard.own(tmp_path / "yard") as url:
        for revision in REVISIONS:
            report = await against_server(revision, url, tmp_path / revision, revision=revision)
            assert (report.ok, report.failures) == (True, {}), report.output[-3000:]
            assert len(report.required) > 25


@requirement("mcp.conformance")
@requirement("mcp.eras")
async def test_a_modern_client_reaches_a_legacy_server_through_us(tmp_path: Path) -> None:
    async with yard.own(tmp_path / "own") as own, yard.in_front_of(own, "legacy", tmp_path / "front") as url:
        report = await against_server("through", url, tmp_path / "out", revision=REVISIONS[1])
    assert (report.ok, report.failures) == (True, {}), report.output[-3000:]
