"""What the README tells people to type and to write does what it says."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.faces.cli.conftest import Command
from tests.requirements import requirement
from toolyard.manifest import loads

README = (Path(__file__).parents[3] / "README.md").read_text()
DEMO_LINES = re.findall(r"^    \.venv/bin/toolyard (.*)$", README, re.MULTILINE)


@requirement("setup.two-commands")
def test_the_readme_shows_commands_for_the_demo() -> None:
    assert len(DEMO_LINES) >= 3


@requirement("setup.two-commands")
@requirement("cli.everyday")
@pytest.mark.parametrize("line", DEMO_LINES)
def test_each_command_for_the_demo_works(toolyard: Command, line: str) -> None:
    ended = toolyard(*shlex.split(line))

    assert (ended.code, ended.err) == (0, "")
    assert ended.out


@requirement("manifest.top-level")
def test_the_manifest_in_the_readme_is_one() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)

    manifest = loads(text.encode(), env={"GITHUB_TOKEN": "x"})

    assert [config.id for config in manifest.all_providers] == ["github", "files", "petstore", "local"]


def test_the_python_in_the_readme_is_served_by_a_manifest(bare: Command, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "readme_tools.py").write_text(code)
    (tmp_path / "toolyard.yaml").write_text("providers: [{id: local, kind: python, module: readme_tools}]")

    try:
        found = bare("doctor", str(tmp_path / "toolyard.yaml"), "--data-dir", str(tmp_path), "--json").json
    finally:
        sys.path[:] = [entry for entry in sys.path if entry != str(tmp_path)]
        sys.modules.pop("readme_tools", None)

    (provider,) = [finding for finding in found if finding["what"] == "Provider local"]
    assert (provider["state"], provider["said"]) == ("ok", "1 tools from python:readme_tools")
