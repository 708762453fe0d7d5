"""Schemas for a list of candidates: short, without references, and true as far as they go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.catalog.slim import LONGEST_SCHEMA, slim_schema
from toolyard.core.json import dumps
from toolyard.core.schema import Components, Schema

NAME = {"type": "object", "properties": {"name": {"type": "string", "description": "Its name."}}, "required": ["name"]}


@pytest.mark.parametrize("root", [{}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_a_tool_without_inputs_has_an_empty_schema(root: dict[str, Any]) -> None:
    assert slim_schema(Schema(root)) == {}


def test_a_short_schema_stays_as_it_is() -> None:
    assert slim_schema(Schema(NAME)) == NAME


def test_references_are_written_out() -> None:
    components = Components({"Pet": NAME}, {"Pet": ()})
    schema = Schema(
        {"type": "object", "properties": {"pet": {"$ref": "#/$defs/Pet"}}}, refs=("Pet",), components=components
    )
    assert slim_schema(schema) == {"type": "object", "properties": {"pet": NAME}}


def test_a_schema_within_itself_ends() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
    schema = Schema(
        {"$ref": "#/$defs/Tree"}, refs=("Tree",), components=Components({"Tree": tree}, {"Tree": ("Tree",)})
    )
    assert slim_schema(schema) == {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {}}},
    }


def wide(breadth: int, depth: int) -> dict[str, Any]:
    if not depth:
        return {"type": "string", "description": "Something that is told at great length. " * 5}
    return {"type": "object", "properties": {f"field_{n}": wide(breadth, depth - 1) for n in range(breadth)}}


@pytest.mark.parametrize(("breadth", "depth"), [(3, 3), (6, 4), (60, 2), (2_000, 1)])
def test_a_long_schema_is_cut_to_what_a_list_can_bear(breadth: int, depth: int) -> None:
    root = {**wide(breadth, depth), "required": ["field_0"]}
    slim: Any = slim_schema(Schema(root))
    assert len(dumps(slim)) <= LONGEST_SCHEMA
    assert "field_0" in slim["properties"]
    assert slim["required"] == ["field_0"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$ref", "properties", "items", "anyOf", "type", "required", "description"]), inner
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["properties", "required", "$defs", "anyOf", "$ref", "definitions"]), JSON))
def test_no_schema_breaks_it(root: dict[str, Any]) -> None:
    assert len(dumps(slim_schema(Schema(root)))) <= LONGEST_SCHEMA
