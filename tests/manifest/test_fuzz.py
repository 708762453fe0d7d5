"""Whatever a file holds: a manifest, or a ManifestError. Nothing else, and soon."""

from __future__ import annotations

import contextlib
from pathlib import Path

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.manifest.test_good_manifests import ENV, EVERYTHING
from toolyard.core.errors import BadInput, ManifestError
from toolyard.manifest import load, loads, parse_provider, parse_server

WORDS = st.sampled_from(
    [
        "agent_config", "mcps", "providers", "servers", "agents", "skills", "settings", "id", "kind", "mcp", "openapi",
        "python", "webhook", "url", "hostname", "port", "api_key", "${X}", "${", "http://x", "http://[", "command",
        "tools", "module", "context", "reevaluation_tools", "model", "name", "headers", "transport", "required",
    ]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | WORDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=8), inner, max_size=6),
    max_leaves=25,
)
FIELDS = st.dictionaries(WORDS, VALUES, max_size=8)


def check(data: bytes) -> None:
    with contextlib.suppress(ManifestError):
        loads(data, env={"X": "\x00 \n"})


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes(data: bytes) -> None:
    check(data)


@settings(max_examples=100, deadline=None)
@given(FIELDS)
def test_any_structure_made_of_our_own_words(value: dict[str, object]) -> None:
    with contextlib.suppress(TypeError):  # a number beyond JSON; YAML takes JSON
        check(orjson.dumps(value))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_good_manifest_with_lines_changed(data: st.DataObject) -> None:
    lines: list[str] = list(EVERYTHING.splitlines())
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        line = lines[index]
        at = data.draw(st.integers(0, len(line)))
        lines[index] = line[:at] + data.draw(st.text(max_size=6)) + line[at + data.draw(st.integers(0, 4)) :]
    check("\n".join(lines).encode("utf-8", "surrogatepass"))


@settings(max_examples=100, deadline=None)
@given(FIELDS)
def test_any_json_body(body: dict[str, object]) -> None:
    for parse in (parse_provider, parse_server):
        with contextlib.suppress(BadInput):
            parse(body)


@given(st.text(max_size=30))
def test_any_path(text: str) -> None:
    with contextlib.suppress(ManifestError):
        load(Path("/nonexistent") / text, ENV)
