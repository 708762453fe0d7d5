"""What a node is told at its start, and what the manifest says in its place."""

from __future__ import annotations

from pathlib import Path

from toolyard.app import App, Settings
from toolyard.manifest import Manifest, SettingsConfig


def limits(settings: Settings, manifest: Manifest) -> tuple[float, float]:
    app = App(settings, manifest)
    return app.engine.ttl, app.calls.bench.pick_up_timeout


def test_the_lease_of_a_node_and_the_time_to_pick_up_a_call_can_be_set(tmp_path: Path) -> None:
    said = Manifest(settings=SettingsConfig(node_lease_seconds=12, pick_up_seconds=45))
    silent = Settings(data_dir=tmp_path)
    given = Settings(data_dir=tmp_path, node_lease_seconds=3, pick_up_seconds=20)
    assert limits(silent, Manifest()) == (30.0, 300.0)
    assert limits(silent, said) == (12, 45)
    assert limits(given, said) == (3, 20)
