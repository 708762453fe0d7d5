"""Locations: what they mean, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolyard.core.errors import BadInput
from toolyard.store import open_store


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("data/toolyard.db", "data/toolyard.db"),
        ("/var/lib/toolyard.db", "/var/lib/toolyard.db"),
        ("sqlite:///data/toolyard.db", "data/toolyard.db"),
        ("sqlite:////var/lib/toolyard.db", "/var/lib/toolyard.db"),
        ("~/toolyard.db", str(Path.home() / "toolyard.db")),
        ("postgresql://ada:secret@db.example:5433/yard", "postgresql://ada@db.example:5433/yard"),
        ("postgres://db.example/yard?sslmode=require", "postgresql://db.example/yard"),
    ],
)
def test_a_location_is_a_path_or_a_url_and_is_shown_without_its_password(location: str, shown: str) -> None:
    assert open_store(location).location == shown


@pytest.mark.parametrize(
    ("location", "complaint"),
    [
        ("mysql://db.example/yard", "'mysql' is no database that Toolyard can use"),
        ("", "names no file"),
        (":memory:", "names no file.*must survive a restart"),
        ("sqlite://", "names no file"),
        ("postgresql://db.example:port/yard", "cannot be read"),
    ],
)
def test_other_locations_are_refused_with_what_to_write(location: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint) as refusal:
        open_store(location)
    assert refusal.value.where == "database"


def test_psycopg_is_imported_only_for_postgresql() -> None:
    check = "import sys, toolyard.store; toolyard.store.open_store('a.db'); sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
