"""`--arg name=value` against a tool's schema."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.core.errors import BadInput
from toolyard.faces.cli.arguments import arguments_from

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "either": {"type": ["string", "number"]},
        "maybe": {"type": ["string", "null"]},
        "flag": {"type": "boolean"},
        "size": {"enum": ["1", "2"]},
        "words": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "place": {"$ref": "#/$defs/Place"},
        "free": {},
        "dotted.name": {"type": "string"},
    },
    "$defs": {
        "Place": {
            "oneOf": [
                {"type": "object", "properties": {"street": {"type": "string"}}},
                {"$ref": "#/$defs/Point"},
            ]
        },
        "Point": {"type": "object", "properties": {"x": {"type": "number"}, "inner": {"$ref": "#/$defs/Place"}}},
    },
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=12", "12"),
        ("text=a=b", "a=b"),
        ("text=", ""),
        ("count=12", 12),
        ("count=many", "many"),
        ("either=12", 12),
        ("either=true", "true"),
        ("maybe=null", None),
        ("maybe=12", "12"),
        ("flag=true", True),
        ("size=1", "1"),
        ("words=one", ["one"]),
        ('words=["a", "b"]', ["a", "b"]),
        ("numbers=3", [3]),
        ("free=12", 12),
        ("free=twelve", "twelve"),
        ("unknown={}", {}),
        ("dotted.name=x", "x"),
    ],
)
def test_a_value_is_what_the_schema_takes(pair: str, value: object) -> None:
    assert arguments_from([pair], None, SCHEMA) == {pair.partition("=")[0]: value}


def test_a_dot_reaches_into_objects_through_references_and_alternatives() -> None:
    pairs = ["place.street=7", "place.x=7", "place.inner.street=8"]

    assert arguments_from(pairs, None, SCHEMA) == {"place": {"street": "7", "x": 7, "inner": {"street": "8"}}}


def test_a_name_given_twice_makes_a_list_where_one_is_taken_and_is_refused_elsewhere() -> None:
    assert arguments_from(["words=a", "words=b"], None, SCHEMA) == {"words": ["a", "b"]}
    with pytest.raises(BadInput, match="'text' is given twice"):
        arguments_from(["text=a", "text=b"], None, SCHEMA)


def test_single_arguments_come_on_top_of_the_document() -> None:
    assert arguments_from(["words=c", "count=2"], '{"words": ["a"], "count": 1, "free": 0}', SCHEMA) == {
        "words": ["c"],
        "count": 2,
        "free": 0,
    }


@pytest.mark.parametrize("document", ["", "nonsense", "[1]", "@/nonexistent", '"text"'])
def test_a_document_that_is_no_object_is_refused(document: str) -> None:
    with pytest.raises(BadInput):
        arguments_from([], document, SCHEMA)


def test_a_value_cannot_be_reached_into() -> None:
    with pytest.raises(BadInput, match="not an object"):
        arguments_from(["place.x=1", "place.x.y=2"], None, SCHEMA)


@given(st.lists(st.text(max_size=20)), st.none() | st.text(max_size=20).filter(lambda text: text[:1] not in "-@"))
def test_whatever_is_typed_gives_arguments_or_bad_input(pairs: list[str], document: str | None) -> None:
    with contextlib.suppress(BadInput):
        assert isinstance(arguments_from(pairs, document, SCHEMA), dict)
