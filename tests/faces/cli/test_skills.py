"""`toolyard skills`, against a real yard."""

from __future__ import annotations

from pathlib import Path

from tests.faces.cli.conftest import Command
from tests.requirements import requirement

TEA = "---\nname: make-tea\ndescription: How to make tea.\n---\nBoil water.\n"


@requirement("skills.standard")
def test_a_skill_goes_in_and_out_by_the_command_line(toolyard: Command, tmp_path: Path) -> None:
    folder = tmp_path / "make-tea"
    folder.mkdir()
    (folder / "SKILL.md").write_text(TEA)
    (folder / "cups.txt").write_text("two")
    checked = toolyard("skills", "validate", str(folder))
    first = toolyard("skills", "import", str(folder))
    again = toolyard("skills", "import", str(folder), "--json")
    listed = toolyard("skills", "list")
    shown = toolyard("skills", "show", "make-tea")
    exported = toolyard("skills", "export", "make-tea", "-o", str(tmp_path / "out.zip"))
    valid = toolyard("skills", "validate", str(tmp_path / "out.zip"), "--json")
    removed = toolyard("skills", "remove", "make-tea")

    assert [one.code for one in (checked, first, again, listed, shown, exported, valid, removed)] == [0] * 8
    assert "2 files" in checked.err
    assert "version 1" in first.err
    assert again.json["version"] == 2
    assert [line[0] for line in listed.lines] == ["make-tea", "welcome-a-pet"]
    assert shown.out == TEA
    assert valid.json == {"name": "make-tea", "description": "How to make tea.", "files": ["SKILL.md", "cups.txt"]}
    assert toolyard("skills", "show", "make-tea").code == 3


def test_a_bad_skill_is_refused_with_one_line(toolyard: Command, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("# Tea")
    refused = toolyard("skills", "import", str(tmp_path))
    assert (refused.code != 0, refused.err.count("\n")) == (True, 1)
    assert "frontmatter" in refused.err
