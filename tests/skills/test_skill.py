"""What is a skill, and what is refused as none."""

from __future__ import annotations

import contextlib
import io
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.core.errors import BadInput, TooLarge
from toolyard.manifest import Manifest
from toolyard.skills import from_files, from_folder, from_text, from_zip, to_zip

GOOD = "---\nname: make-tea\ndescription: How to make tea.\n---\n# Tea\n\nBoil water.\n"


def zipped(*files: tuple[str, bytes], link: str | None = None) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path, data in files:
            archive.writestr(zipfile.ZipInfo(path), data)
        if link is not None:
            entry = zipfile.ZipInfo(link)
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(entry, "/etc/passwd")
    return target.getvalue()


@requirement("skills.standard")
def test_a_skill_is_its_frontmatter_to_the_letter_its_text_and_its_files() -> None:
    text = (
        "---\nname: make-tea\ndescription: How to make tea.\nlicense: MIT\nallowed-tools: shop:*\n"
        "metadata:\n  since: 2026-11-21\n  apps: [kettle]\n---\nBoil.\n"
    )
    skill = from_files({"SKILL.md": text.encode(), "a/b.txt": b"x"})
    assert skill.frontmatter == {
        "name": "make-tea",
        "description": "How to make tea.",
        "license": "MIT",
        "allowed-tools": "shop:*",
        "metadata": {"since": "2026-11-21", "apps": ["kettle"]},
    }
    assert (skill.body, skill.text) == ("Boil.\n", text)
    assert [(one.path, one.size, one.mime_type) for one in skill.listing] == [
        ("SKILL.md", len(text), "text/markdown"),
        ("a/b.txt", 1, "text/plain"),
    ]
    assert skill.listing[1].digest == "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# Tea", "begins with no frontmatter"),
        ("---\nname: make-tea\n", "begins with no frontmatter"),
        ("---\n- a\n---\n", "is no mapping"),
        ("---\nname: [\n---\n", "is no YAML"),
        ("---\nname: &a make-tea\ndescription: *a\n---\n", "aliases"),
        ("---\ndescription: d\n---\n", "name must be 1 to 64"),
        ("---\nname: Make Tea\ndescription: d\n---\n", "name must be 1 to 64"),
        ("---\nname: make--tea\ndescription: d\n---\n", "name must be 1 to 64"),
        (f"---\nname: {'a' * 65}\ndescription: d\n---\n", "name must be 1 to 64"),
        ("---\nname: make-tea\n---\n", "description must be"),
        ("---\nname: make-tea\ndescription: ' '\n---\n", "description must be"),
        (f"---\nname: make-tea\ndescription: {'d' * 1025}\n---\n", "description must be"),
        ("---\nname: make-tea\ndescription: d\nmetadata: x\n---\n", "metadata must be a mapping"),
        ("---\nname: make-tea\ndescription: d\nlicense: [1]\n---\n", "license must be a text"),
        ("---\nname: make-tea\ndescription: d\nmetadata: {io.modelcontextprotocol/x: 1}\n---\n", "is reserved"),
        (f"---\nname: make-tea\ndescription: d\nx: {'y' * 70_000}\n---\n", "frontmatter is longer"),
        (f"---\nname: make-tea\ndescription: d\nx: {'9' * 30}\n---\n", "cannot be sent as JSON"),
        ('---\nname: make-tea\ndescription: "\\ud800"\n---\n', "cannot be sent as JSON"),
        ("---\nname: make-tea\ndescription: d\nx: !!bool perhaps\n---\n", "cannot be read"),
        ("---\nname: make-tea\ndescription: d\nx: !!timestamp never\n---\n", "cannot be read"),
        ("---\nname: make-tea\ndescription: d\nx: 0x_\n---\n", "cannot be read"),
        (f"---\nname: make-tea\ndescription: d\nx: {'[' * 5000}{']' * 5000}\n---\n", "nested too deeply"),
    ],
)
def test_what_is_wrong_with_a_skill_is_said_with_its_place(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says) as refused:
        from_text(text)
    assert (refused.value.where or "").startswith("SKILL.md")


@requirement("skills.standard")
def test_a_zip_of_a_skill_comes_back_as_the_same_skill() -> None:
    skill = from_files({"SKILL.md": GOOD.encode(), "scripts/run.py": b"print()", "\u00fc.bin": bytes(range(256))})
    again = from_zip(to_zip(skill))
    assert (again.files, again.listing) == (skill.files, skill.listing)
    assert to_zip(again) == to_zip(skill)
    assert from_zip(zipped(("SKILL.md", GOOD.encode()), ("__MACOSX/x", b""))).name == "make-tea"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"no zip", "no zip that can be read"),
        (b"", "no zip that can be read"),
        (zipped(("README.md", b"x")), "no SKILL.md"),
        (zipped(("a/SKILL.md", GOOD.encode()), ("b/x", b"")), "no SKILL.md"),
        (zipped(("coffee/SKILL.md", GOOD.encode())), "the folder is called 'coffee'"),
        (zipped(("SKILL.md", GOOD.encode()), ("../evil", b"x")), "is refused"),
        (zipped(("SKILL.md", GOOD.encode()), ("/etc/passwd", b"x")), "is refused"),
        (zipped(("SKILL.md", GOOD.encode()), ("a\\..\\b", b"x")), "is refused"),
        (zipped(("SKILL.md", GOOD.encode()), ("c:evil", b"x")), "is refused"),
        (zipped(("SKILL.md", GOOD.encode()), link="passwd"), "is a link"),
        (zipped(("SKILL.md", GOOD.encode()), ("a", b""), ("a/b", b"")), "both a file and a folder"),
        (
            zipped(("SKILL.md", GOOD.encode()), ("\u00fc", b"")).replace(b"\xc3\xbc", b"\xff\xff"),
            "no zip that can be read",
        ),
    ],
)
def test_a_hostile_or_wrong_zip_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        from_zip(data)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_the_usual_ways_of_packing_are_unpacked(method: int) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        archive.writestr("SKILL.md", GOOD)
    with pytest.raises(BadInput, match="packed in an unusual way"):
        from_zip(target.getvalue())


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=5))
def test_a_damaged_zip_is_a_skill_or_is_refused(damage: list[tuple[int, int]]) -> None:
    data = bytearray(zipped(("SKILL.md", GOOD.encode()), ("\u00fc.md", b"x" * 50)))
    for place, byte in damage:
        data[place % len(data)] = byte
    with contextlib.suppress(BadInput, TooLarge):
        assert from_zip(bytes(data)).name == "make-tea"


def test_only_what_systems_leave_in_zips_is_left_out() -> None:
    data = zipped(("SKILL.md", GOOD.encode()), (".DS_Store", b"x"), ("a/.DS_Store", b"x"), ("notes.DS_Store", b"x"))
    assert sorted(from_zip(data).files) == ["SKILL.md", "notes.DS_Store"]


def test_a_file_that_is_in_the_zip_twice_is_refused() -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        data = zipped(("SKILL.md", GOOD.encode()), ("x", b"1"), ("x", b"2"))
    with pytest.raises(BadInput, match="twice"):
        from_zip(data)


def test_a_zip_is_as_large_as_it_unpacks_to_and_a_skill_has_512_files_at_most() -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("SKILL.md", GOOD)
        archive.writestr("zeros", bytes(17 * 1024 * 1024))
    assert len(bomb.getvalue()) < 100_000
    with pytest.raises(TooLarge, match="when unpacked"):
        from_zip(bomb.getvalue())
    many = {f"f{n}": b"" for n in range(512)}
    with pytest.raises(TooLarge, match="at most 512 files"):
        from_zip(zipped(("SKILL.md", GOOD.encode()), *many.items()))
    with pytest.raises(TooLarge, match="at most 512 files"):
        from_files({"SKILL.md": GOOD.encode(), **many})


@given(st.lists(st.text(min_size=1, max_size=30), max_size=5))
def test_no_path_of_a_skill_leads_out_of_its_folder(paths: list[str]) -> None:
    try:
        skill = from_files({"SKILL.md": GOOD.encode(), **dict.fromkeys(paths, b"")})
    except (BadInput, TooLarge):
        return
    root = Path("/skills/make-tea")
    for path in skill.files:
        resolved = Path(root, *path.split("/"))
        assert resolved.is_relative_to(root)
        assert ".." not in resolved.parts


def test_a_folder_is_named_as_its_skill_and_holds_no_links(tmp_path: Path) -> None:
    folder = tmp_path / "make-tea"
    (folder / "notes").mkdir(parents=True)
    (folder / "SKILL.md").write_text(GOOD)
    (folder / "notes" / "a.md").write_text("a")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    assert sorted(from_folder(folder).files) == ["SKILL.md", "notes/a.md"]
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(BadInput, match="is a link"):
        from_folder(folder)
    (folder / "link").unlink()
    other = folder.rename(tmp_path / "coffee")
    with pytest.raises(BadInput, match="'coffee'"):
        from_folder(other)
    with pytest.raises(BadInput, match="no folder"):
        from_folder(folder)


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "make-tea"
    folder.mkdir()
    with (folder / "0-large").open("wb") as large:
        large.truncate(17 * 1024 * 1024)
    (folder / "SKILL.md").write_text(GOOD)
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("read"))
    with pytest.raises(TooLarge, match="there is more in"):
        from_folder(folder)


async def test_a_skill_that_two_folders_declare_is_the_first(tmp_path: Path) -> None:
    for parent in ("one", "two"):
        (tmp_path / parent / "make-tea").mkdir(parents=True)
        (tmp_path / parent / "make-tea" / "SKILL.md").write_text(GOOD + parent)
    settings = Settings(data_dir=tmp_path / "data", demo=True, manifest_dir=tmp_path)
    async with App.running(settings, Manifest(skills=("one", "two"))) as app:
        assert (await app.skills.skill("make-tea")).text == GOOD + "one"
