"""Reading documents: JSON, YAML, and everything that is neither."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from toolyard.core.errors import DocumentError
from toolyard.providers.openapi.files import Folder, Origin
from toolyard.providers.openapi.loading import parse
from toolyard.providers.openapi.yaml_reader import read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("200: a\nNO: no\n", {"200": "a", "NO": "no"}),
        (
            "a: 2020-01-01\nb: 12:30:45\nc: 017\nd: 0x1F\ne: 1e3\nf: .5\n",
            {"a": "2020-01-01", "b": "12:30:45", "c": 17, "d": 31, "e": 1000.0, "f": 0.5},
        ),
        ("a: true\nb: False\nc: ~\nd:\ne: yes\n", {"a": True, "b": False, "c": None, "d": None, "e": "yes"}),
        ('a: "5"\nb: !!str 5\nc: |\n  x\n  y\n', {"a": "5", "b": "5", "c": "x\ny\n"}),
        ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n", {"a": {"b": 1, "c": 2}, "d": {"c": 3, "b": 1}}),
        ("- 1\n- [a, {b: c}]\n", [1, ["a", {"b": "c"}]]),
        ("a: 99999999999999999999\nb: .inf\nc: -3\n", {"a": 1e20, "b": ".inf", "c": -3}),
        ("ä: ö\n", {"ä": "ö"}),
        ("", None),
    ],
)
def test_yaml_is_read_by_the_core_types_of_1_2_with_text_keys(text: str, value: Any) -> None:
    assert read_yaml(text) == value


def test_a_duplicate_key_is_told_and_the_last_one_counts() -> None:
    notes: list[str] = []
    assert read_yaml("a: 1\na: 2\n", repaired=notes.append) == {"a": 2}
    assert notes == ["the key 'a' is there twice (line 2, column 4); the last one counts"]


def test_a_yaml_bomb_is_refused_at_once() -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 30)]
    start = time.monotonic()
    with pytest.raises(DocumentError, match="aliases expanded"):
        read_yaml("\n".join(lines))
    assert time.monotonic() - start < 1


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000])
def test_bottomless_nesting_is_refused(text: str) -> None:
    with pytest.raises(DocumentError):
        read_yaml(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x [*x]\n", r"contains it \(line 1"),
        ("a: *y\n", "alias"),
        ("a: [1\nb: 2\n", "line 2"),
        ("? [a]\n: b\n", "used as a key"),
        ("a: b: c\n", "line 1, column 5"),
        ("a: \x07\n", "no valid YAML"),
    ],
)
def test_broken_yaml_says_where(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        read_yaml(text)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b'{"a": 1,\n "b": }', "no valid JSON at line 2, column 7"),
        (b"<!DOCTYPE html><html>", "HTML page"),
        (b"<html lang=en>", "HTML page"),
        (b"<?xml version='1.0'?><definitions/>", "XML"),
        ("openapi: ä".encode("utf-16"), "UTF-16"),
        (b"openapi: 3.0\ninfo: \xff\n", "line 2 has the byte 0xff"),
    ],
)
def test_what_is_no_document_is_named(data: bytes, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        parse(data)


def test_a_byte_order_mark_is_no_hindrance() -> None:
    assert parse(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    assert parse(b"\xef\xbb\xbfa: 1") == {"a": 1}


def test_yaml_that_begins_like_json_is_yaml() -> None:
    assert parse(b"{openapi: 3.0.0,\n paths: {}}") == {"openapi": "3.0.0", "paths": {}}


def test_files_beside_a_document_stay_below_its_folder(tmp_path: Path) -> None:
    inside = tmp_path / "api"
    inside.mkdir()
    (tmp_path / "secret.yaml").write_text("a: 1")
    (inside / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    folder = Folder(inside / "root.yaml")
    assert folder.join("sub/a.yaml", "../b.yaml") == "b.yaml"
    assert folder.join("sub/a.yaml", "../root.yaml") == ""
    assert [folder.join("a.yaml", name) for name in ("../secret.yaml", "/etc/passwd", "file:///etc/passwd")] == [
        None
    ] * 3
    with pytest.raises(DocumentError, match="leads out of the folder"):
        folder.read("link.yaml")


def test_files_of_a_url_stay_on_its_origin() -> None:
    origin = Origin("https://h.test/api/root.yaml", lambda url: url.encode())
    assert origin.join("", "models/a.yaml") == "https://h.test/api/models/a.yaml"
    assert origin.join("https://h.test/api/models/a.yaml", "../root.yaml") == ""
    assert [origin.join("", url) for url in ("http://h.test/x", "https://evil.test/x", "file:///etc/passwd")] == [
        None
    ] * 3
