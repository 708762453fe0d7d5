"""The wire's small rules, where they can be, against the SDK's own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject
from toolyard.providers.mcp import wire
from toolyard.providers.mcp.definitions import Unusable, param_headers, read_definition
from toolyard.providers.mcp.link import NO_META
from toolyard.providers.mcp.sse import Event, Events, EventTooLong

names = st.sampled_from(["a", "b", "c"])
tokens = st.sampled_from(["Region", "region", "X-Y", "", "no space", "ü", 7, None])
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
numbers = st.floats(allow_nan=False, allow_infinity=False)
leaves = st.fixed_dictionaries(
    {}, optional={"type": st.sampled_from(["string", "integer", "boolean", "number", "object"]), "x-mcp-header": tokens}
)
schemas = st.recursive(
    leaves,
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(names, inner, max_size=3),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "$defs": st.dictionaries(names, inner, max_size=2),
        },
    ),
    max_leaves=6,
)


@given(st.text(max_size=20))
def test_header_values_are_written_as_the_sdk_reads_them(text: str) -> None:
    written = wire.header_value(text)
    assert written == inbound.encode_header_value(text)
    assert inbound.decode_header_value(written) == text
    assert written.isascii()
    assert written.isprintable()


@given(st.dictionaries(names, schemas, max_size=3), st.dictionaries(names, scalars | st.dictionaries(names, scalars)))
def test_annotated_headers_are_found_and_refused_as_the_sdk_does(properties: Any, arguments: JsonObject) -> None:
    schema = {"type": "object", "properties": properties}
    definition = {"name": "t", "inputSchema": schema}
    if inbound.find_invalid_x_mcp_header(schema) is not None:
        with pytest.raises(Unusable):
            read_definition("up", definition, modern=True)
        return
    ours = read_definition("up", definition, modern=True)
    expected = inbound.mcp_param_headers(inbound.x_mcp_header_map(schema), arguments)
    assert param_headers(ours.header_map, arguments) == expected


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        (None, "an entry of the list is no object but NoneType"),
        ([1], "an entry of the list is no object but list"),
        ({}, "an entry of the list has no name"),
        ({"name": 7, "inputSchema": {}}, "an entry of the list has no name"),
        ({"name": "x" * 600, "inputSchema": {}}, "the name is longer than 512 characters"),
        ({"name": "t"}, "'t': inputSchema is no object"),
        ({"name": "t", "inputSchema": "object"}, "'t': inputSchema is no object"),
        ({"name": "t", "inputSchema": {"type": "array"}}, "'t': inputSchema describes 'array', not an object"),
        ({"name": "t", "inputSchema": {"properties": 3}}, "'t': inputSchema is no valid JSON Schema: "),
        ({"name": "t", "inputSchema": {"$ref": "#/nowhere"}}, "'t': inputSchema is no valid JSON Schema: "),
        ({"name": "t", "inputSchema": {"$ref": "http://127.0.0.1:9/x"}}, "schemas are not fetched"),
        ({"name": "t", "inputSchema": {"properties": {"a": {"pattern": "("}}}}, "is no valid JSON Schema: "),
        ({"name": "t", "inputSchema": {"description": "x" * 2**20}}, "'t': its definition is larger than 1 MiB"),
        ({"name": "t", "inputSchema": {}, "outputSchema": 3}, "'t': outputSchema is no object"),
        ({"name": "t", "inputSchema": {}, "outputSchema": {"type": 3}}, "'t': outputSchema is no valid JSON Schema"),
    ],
)
def test_a_definition_that_cannot_be_used_is_left_out_with_its_reason(definition: Any, reason: str) -> None:
    with pytest.raises(Unusable) as caught:
        read_definition("up", definition, modern=True)
    assert reason in str(caught.value)


def test_a_definition_that_is_nested_too_deeply_is_left_out() -> None:
    schema: dict[str, Any] = {}
    for _ in range(900):
        schema = {"properties": {"a": schema}}
    with pytest.raises(Unusable, match="'t'"):
        read_definition("up", {"name": "t", "inputSchema": schema}, modern=True)


def test_odd_but_harmless_definitions_are_kept() -> None:
    wire_form = {
        "name": "päth/to tool:😀",
        "description": 7,
        "title": None,
        "annotations": "none",
        "inputSchema": {"properties": {"self": {"$ref": "#"}}},
        "unknown": {"kept": True},
    }
    tool = read_definition("up", wire_form, modern=True).tool
    assert (tool.name, tool.description, tool.title, tool.wire) == ("päth/to tool:😀", "", None, wire_form)


@given(st.dictionaries(st.text(max_size=3), scalars | numbers), st.booleans(), st.booleans())
def test_a_request_is_json_with_everything_in_it(arguments: Any, modern: bool, traced: bool) -> None:
    meta = {"traceparent": "00-1-2-03"} if traced else NO_META
    message = json.loads(wire.request(7, "tools/call", {"name": "t", "arguments": arguments}, meta, modern=modern))
    assert message["params"].pop("_meta", {}) == {**(wire.modern_meta() if modern else {}), **meta}
    assert message == {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": "t", "arguments": arguments},
    }


def test_arguments_nested_without_end_are_refused_and_merely_deep_or_odd_ones_are_sent() -> None:
    def nested(depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {"lone": "\ud800", "big": 2**70}
        for _ in range(depth):
            value = {"a": value}
        return {"name": "t", "arguments": value}

    sent = json.loads(wire.request(1, "tools/call", nested(300), NO_META, modern=True))
    assert sent["params"]["arguments"] == nested(300)["arguments"]
    with pytest.raises(CallError) as caught:
        wire.request(1, "tools/call", nested(100_000), NO_META, modern=True)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS


EVENTS = [Event("one"), Event("two\nlines", "7"), Event("", "8", 250), Event(" grüß 😀")]
STREAM = (
    "\ufeff: a comment\n\ndata: one\n\nid: 7\nevent: message\ndata: two\ndata:lines\n\n"
    "id: 8\nretry: 250\nretry: soon\ndata\n\nunknown: x\n\ndata:  grüß 😀\n\ndata: unfinished"
).encode()


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_events_are_the_same_however_the_stream_is_cut(sizes: list[int], end: bytes) -> None:
    stream = STREAM.replace(b"\n", end)
    reader = Events(longest=1000)
    found: list[Event] = []
    while stream:
        for size in sizes:
            found += reader.feed(stream[:size])
            stream = stream[size:]
    assert found == EVENTS


@pytest.mark.parametrize("chunk", [b"data: 0123456789\n", b"x" * 20])
def test_an_event_without_end_is_refused(chunk: bytes) -> None:
    reader = Events(longest=50)
    for _ in range(2):
        reader.feed(chunk)
    with pytest.raises(EventTooLong):
        reader.feed(chunk * 10)
