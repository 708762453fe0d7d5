"""A package adds a kind of provider: its entry is checked, its tools are called, a broken one costs nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.faces.http.client import client_of
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.core.errors import BadInput, ManifestError
from toolyard.core.principal import Scope
from toolyard.faces.http import build
from toolyard.manifest import added_kinds, loads, parse_provider
from toolyard.manifest.kinds import find_kind
from toolyard.manifest.models import BUILT_IN_KINDS

EXAMPLE = Path(__file__).parents[2] / "examples" / "toolyard-clock" / "src"
ENTRY = {"id": "clock", "kind": "clock", "zones": {"Kyoto": "Asia/Tokyo"}}


def installed(folder: Path, package: str, **kinds: str) -> None:
    """As an installer would: metadata with the entry points."""
    info = folder / f"{package.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1.0\n")
    points = "".join(f"{name} = {value}\n" for name, value in kinds.items())
    (info / "entry_points.txt").write_text(f"[toolyard.providers]\n{points}")


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages, and the example's own."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    find_kind.cache_clear()
    yield folder
    find_kind.cache_clear()
    sys.modules.pop("toolyard_clock", None)


@requirement("mcp.gateway-providers")
async def test_the_example_package_adds_a_kind_that_a_manifest_declares_and_http_offers(
    site: Path, tmp_path: Path
) -> None:
    installed(site, "toolyard-clock", clock="toolyard_clock:KIND")
    manifest = loads(b"providers:\n  - {id: clock, kind: clock, zones: {Kyoto: Asia/Tokyo}, timeout: 5}\n")
    settings = Settings(data_dir=tmp_path / "data", demo=True)
    async with App.running(settings, manifest) as app, client_of(build(app)) as local:
        called = await local.post("/v1/tools/clock:time_in_kyoto/call", json={"arguments": {}})
        assert called.json()["result"]["structured"]["zone"] == "Asia/Tokyo"
        provider = (await local.get("/v1/providers/clock")).json()
        assert (provider["kind"], provider["state"], provider["tool_count"]) == ("plugin", "up", 1)
        assert (await local.get("/v1/mcp/providers")).json()["items"] == [
            {"name": "clock", "tools": 1},
            {"name": "toolyard", "tools": 1},
        ]
        assert (await local.get("/v1/mcp/providers/clock")).json() == {
            "name": "clock",
            "tools": [
                {
                    "id": "clock:time_in_kyoto",
                    "name": "time_in_kyoto",
                    "title": None,
                    "description": "Tells the present time in the zone Asia/Tokyo.",
                    "inputSchema": {"type": "object", "additionalProperties": False},
                    "outputSchema": None,
                    "annotations": {"readOnlyHint": True},
                }
            ],
        }
        assert (await local.get("/v1/mcp/providers/nobody")).status_code == 404


@requirement("mcp.gateway-providers")
async def test_a_provider_of_an_added_kind_is_kept_and_comes_back_until_its_package_goes(
    site: Path, tmp_path: Path
) -> None:
    installed(site, "toolyard-clock", clock="toolyard_clock:KIND")
    settings = Settings(data_dir=tmp_path / "data", demo=True)
    async with App.running(settings) as app:
        _, key = await app.keys.create("manager", [Scope.MANAGE])
        async with client_of(build(app), key=key) as manager, client_of(build(app)) as local:
            assert (await manager.post("/v1/providers", json=ENTRY)).status_code == 403
            assert (await local.post("/v1/providers", json=ENTRY)).status_code == 201
            changed = {"zones": {"Lisbon": "Europe/Lisbon"}}
            assert (await local.patch("/v1/providers/clock", json=changed)).json()["tool_count"] == 1
    async with App.running(settings) as app:
        assert app.catalog.snapshot.get("clock:time_in_lisbon") is not None
    find_kind.cache_clear()
    (site / "toolyard_clock-0.1.0.dist-info" / "entry_points.txt").write_text("")
    async with App.running(settings) as app:
        status = app.supervisor.status("clock")
        assert "There is no kind of provider 'clock'" in (status.last_error or "")


def test_a_mistake_in_an_entry_of_an_added_kind_has_its_line_and_field(site: Path) -> None:
    installed(site, "toolyard-clock", clock="toolyard_clock:KIND")
    with pytest.raises(ManifestError, match=r"zone: unknown field\. Did you mean 'zones'") as wrong:
        loads(b"providers:\n  - id: clock\n    kind: clock\n    zones: {}\n    zone: x\n")
    assert (wrong.value.line, wrong.value.field) == (5, "providers[0].zone")
    with pytest.raises(BadInput, match="zones"):
        parse_provider({**ENTRY, "zones": 7})


async def test_a_provider_that_cannot_start_says_why(site: Path, tmp_path: Path) -> None:
    installed(site, "toolyard-clock", clock="toolyard_clock:KIND")
    async with App.running(Settings(data_dir=tmp_path / "data", demo=True)) as app:
        await app.add_provider(parse_provider({**ENTRY, "zones": {"Mars": "Mars/Base"}}))
        assert "'Mars/Base' is no time zone" in (app.supervisor.status("clock").last_error or "")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("nowhere_to_be_found:KIND", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("toolyard_clock:NOTHING", "AttributeError"),
        ("toolyard_clock:ClockProvider", "is no toolyard.plugins.ProviderKind"),
    ],
)
def test_a_broken_package_is_named_with_its_cause_where_it_is_wanted(site: Path, value: str, says: str) -> None:
    installed(site, "toolyard-broken", broken=value)
    manifest = b"providers:\n  - {id: a, kind: mcp, url: 'https://a.example'}\n  - {id: b, kind: broken}\n"
    with pytest.raises(ManifestError, match=r"The kind 'broken' of the package toolyard-broken cannot be used") as told:
        loads(manifest)
    assert says in str(told.value)
    assert (told.value.line, told.value.field) == (3, "providers[1].kind")
    assert loads(manifest.rpartition(b"  - ")[0]).providers[0].id == "a"


def test_two_packages_with_one_kind_and_a_tag_that_is_another_are_refused(site: Path) -> None:
    installed(site, "toolyard-clock", clock="toolyard_clock:KIND", watch="toolyard_clock:KIND")
    with pytest.raises(BadInput, match="tag='watch'"):
        parse_provider({**ENTRY, "kind": "watch"})
    installed(site, "other-clock", clock="toolyard_clock:ClockProvider")
    find_kind.cache_clear()
    with pytest.raises(BadInput, match="added by other-clock and toolyard-clock"):
        parse_provider(ENTRY)


def test_an_unknown_kind_names_those_that_there_are(site: Path) -> None:
    installed(site, "toolyard-clock", clock="toolyard_clock:KIND")
    assert added_kinds() == ["clock"]
    with pytest.raises(BadInput, match="There is no kind of provider 'clocks'") as refused:
        parse_provider({**ENTRY, "kind": "clocks"})
    assert refused.value.suggestion == "Known here: mcp, openapi, python, webhook, javascript, clock."


def test_the_command_line_lists_every_kind_with_its_package_and_what_is_wrong_with_it(site: Path) -> None:
    from toolyard.faces.cli.main import app as command_line

    installed(site, "toolyard-clock", clock="toolyard_clock:KIND")
    installed(site, "toolyard-broken", broken="nowhere_to_be_found:KIND")
    listed = CliRunner().invoke(command_line, ["providers", "kinds", "--json"])
    assert listed.exit_code == 0, listed.output
    built_in = [{"kind": kind, "packages": [], "problem": None} for kind in BUILT_IN_KINDS]
    cause = "ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    assert json.loads(listed.stdout) == [
        *built_in,
        {
            "kind": "broken",
            "packages": ["toolyard-broken"],
            "problem": f"The kind 'broken' of the package toolyard-broken cannot be used: {cause}.",
        },
        {"kind": "clock", "packages": ["toolyard-clock"], "problem": None},
    ]
    assert "toolyard-clock" in CliRunner().invoke(command_line, ["providers", "kinds"]).stdout
