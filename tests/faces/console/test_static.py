"""What is served as it is: known files only, vendored scripts unchanged, little script in all."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import httpx2

import toolyard.faces.console

STATIC = Path(toolyard.faces.console.__file__).parent / "static"
MOST_SCRIPT = 60_000


def test_vendored_files_are_those_that_were_checked() -> None:
    vendor = STATIC / "vendor"
    lines = [line.split() for line in (vendor / "SHA256SUMS").read_text().splitlines()]
    sums = {name: digest for digest, name in lines}
    assert set(sums) == {"htmx.min.js", "hx-sse.min.js", "LICENSE.htmx"}
    assert {name: hashlib.sha256((vendor / name).read_bytes()).hexdigest() for name in sums} == sums


def test_all_script_together_is_small() -> None:
    assert sum(path.stat().st_size for path in STATIC.rglob("*.js")) <= MOST_SCRIPT


async def test_files_are_kept_for_good_under_their_hash_only(client: httpx2.AsyncClient) -> None:
    plain = await client.get("/static/console.css")
    assert (plain.status_code, plain.headers["cache-control"]) == (200, "no-cache")
    hashed = await client.get("/static/console.css?v=abc")
    assert "immutable" in hashed.headers["cache-control"]
    assert hashed.headers["content-type"] == "text/css; charset=utf-8"


async def test_only_known_files_are_served(client: httpx2.AsyncClient) -> None:
    for name in ("vendor/README.md", "../site.py", "%2e%2e/site.py", "nothing.js"):
        assert (await client.get(f"/static/{name}")).status_code == 404, name


def test_building_the_console_imports_no_templates_and_no_pages() -> None:
    program = (
        "import sys; from toolyard.faces.console import build; build(None); "
        "print([name for name in ('jinja2', 'starlette', 'toolyard.faces.console.site') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout.strip() == "[]"
