"""The notes server's own loop, line by line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.demo.notes import TOOLS, Notebook, Server, serve


def answers(*lines: bytes, file: Path | None = None) -> list[Any]:
    out = io.BytesIO()
    serve(io.BytesIO(b"\n".join(lines)), out, Server(Notebook(file)))
    return [orjson.loads(line) for line in out.getvalue().splitlines()]


def request(method: str, params: Any = None, request_id: int = 1) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


@pytest.mark.parametrize(
    ("asked", "given"), [("2025-06-18", "2025-06-18"), ("2026-07-28", "2025-11-25"), (None, "2025-11-25")]
)
def test_the_handshake_agrees_on_an_era(asked: str | None, given: str) -> None:
    (answer,) = answers(request("initialize", {"protocolVersion": asked}))

    assert answer["result"]["protocolVersion"] == given


def test_a_modern_probe_learns_that_the_method_is_unknown() -> None:
    (answer,) = answers(request("server/discover", {}))

    assert answer["error"]["code"] == -32601


def test_notifications_are_not_answered_and_blank_lines_are_skipped() -> None:
    assert answers(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', b"", b"  ") == []


def test_the_tools_are_listed_as_they_are() -> None:
    assert answers(request("tools/list"))[0]["result"] == {"tools": TOOLS}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": "drop"},
        {"name": "add", "arguments": {}},
        {"name": "add", "arguments": {"text": ""}},
        {"name": "add", "arguments": {"text": "x", "tags": "y"}},
        {"name": "list", "arguments": {"limit": 0}},
        {"name": "list", "arguments": {"limit": True}},
        {"name": "list", "arguments": [1]},
        {"name": "search", "arguments": {"query": " "}},
    ],
)
def test_a_call_that_does_not_fit_is_refused(params: dict[str, Any]) -> None:
    (answer,) = answers(request("tools/call", params))

    assert answer["error"]["code"] == -32602


def test_notes_are_on_disk_before_the_answer(tmp_path: Path) -> None:
    file = tmp_path / "notes.json"

    answers(request("tools/call", {"name": "add", "arguments": {"text": "hello"}}), file=file)

    assert orjson.loads(file.read_bytes()) == [{"id": 1, "text": "hello", "tags": []}]
    assert list(tmp_path.iterdir()) == [file]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
METHODS = st.sampled_from(["initialize", "ping", "tools/list", "tools/call", "nope"])


@given(
    st.binary(max_size=60)
    | JSON.map(orjson.dumps)
    | st.fixed_dictionaries({"id": JSON, "method": METHODS, "params": JSON}).map(orjson.dumps)
    | st.fixed_dictionaries({"name": st.sampled_from(["add", "list", "search"]), "arguments": JSON}).map(
        lambda params: request("tools/call", params)
    )
)
def test_any_line_is_answered_or_ignored_and_never_ends_the_loop(line: bytes) -> None:
    found = answers(line.replace(b"\n", b""), request("ping", {}, 77))

    assert found[-1] == {"jsonrpc": "2.0", "id": 77, "result": {}}
