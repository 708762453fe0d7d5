"""A schema becomes a form, and the form gives back what it was made from."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.requirements import requirement
from toolyard.faces.console.forms import (
    ABSENT,
    Choice,
    FormSource,
    Group,
    Leaf,
    Raw,
    Rows,
    ValueSource,
    edited,
    grow,
    harvest,
    locate,
    posted_pairs,
)
from toolyard.faces.console.forms.harvest import same

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "child": {"$ref": "#"},
        "children": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["name"],
}


def child(node: Any, key: str) -> Any:
    return node.children[node.keys.index(key)]


def through_a_browser(schema: dict[str, Any], value: Any) -> Any:
    """Grow from the value, post it untouched, read it back."""
    pairs = posted_pairs(grow(schema, ValueSource(value)))
    return harvest(grow(schema, FormSource(pairs)))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
names = st.sampled_from(["a", "b", "body", "x/y", "~t", "", "ключ", "~o0", "0"])


def schemas(depth: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    flat = st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "format": "date"},
            {"type": "string", "maxLength": 500, "default": "x"},
            {"type": "integer", "minimum": 0},
            {"type": "number"},
            {"type": ["string", "null"]},
            {"type": ["integer", "string", "null"]},
            {"type": "boolean"},
            {"enum": ["one", 2, None, ""]},
            {"const": "fixed"},
            {"type": "object"},
            {"type": "array"},
            {},
            {"$ref": "#/$defs/gone"},
        ]
    )
    if depth == 0:
        return flat
    inner = schemas(depth - 1)
    objects = st.builds(
        lambda properties, required, more: {
            "type": "object",
            "properties": properties,
            "required": sorted(set(required) & set(properties)),
            **({} if more is None else {"additionalProperties": more}),
        },
        st.dictionaries(names, inner, max_size=4),
        st.lists(names, max_size=3),
        st.sampled_from([None, True, False]),
    )
    return st.one_of(
        flat,
        objects,
        inner.map(lambda item: {"type": "array", "items": item}),
        st.lists(inner, min_size=1, max_size=3).map(lambda options: {"oneOf": options}),
        st.lists(inner, min_size=1, max_size=3).map(lambda options: {"anyOf": [*options, {"type": "null"}]}),
    )


@settings(max_examples=100, deadline=None)
@given(schema=schemas(), value=json_values)
def test_any_value_comes_back_unchanged_through_the_form_of_any_schema(schema: dict[str, Any], value: Any) -> None:
    back = through_a_browser(schema, value)
    assert not back.problems
    assert same(back.value, value)


@st.composite
def fitting(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """A value with the schema's own structure, so that the fields and not the JSON fall-back are exercised."""
    schema = draw(schemas())
    return schema, draw(_values_of(schema))


def _values_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:  # noqa: PLR0911
    if "oneOf" in schema or "anyOf" in schema:
        return st.one_of([_values_of(option) for option in schema.get("oneOf") or schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "string":
            return st.text(st.characters(codec="utf-8"))
        case "integer":
            return st.integers()
        case "boolean":
            return st.booleans()
        case "object" if "properties" in schema:
            values = {key: _values_of(inner) for key, inner in schema["properties"].items()}
            return st.fixed_dictionaries({}, optional=values)
        case "array" if "items" in schema:
            return st.lists(_values_of(schema["items"]), max_size=3)
        case _:
            return json_values


@settings(max_examples=100, deadline=None)
@given(pair=fitting())
def test_a_fitting_value_comes_back_unchanged(pair: tuple[dict[str, Any], Any]) -> None:
    schema, value = pair
    back = through_a_browser(schema, value)
    assert not back.problems
    assert same(back.value, value)


@requirement("console.start")
def test_nested_objects_arrays_enums_and_unions_are_fields_not_json() -> None:
    schema = {
        "type": "object",
        "properties": {
            "pet": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
                "required": ["name"],
            },
            "size": {"enum": ["small", "large"]},
            "contact": {
                "oneOf": [
                    {
                        "title": "By mail",
                        "type": "object",
                        "properties": {"email": {"type": "string"}},
                        "required": ["email"],
                    },
                    {
                        "title": "By phone",
                        "type": "object",
                        "properties": {"phone": {"type": "string"}},
                        "required": ["phone"],
                    },
                ]
            },
        },
        "required": ["pet", "size"],
    }
    value = {"pet": {"name": "Rex", "tags": ["good", "dog"]}, "size": "large", "contact": {"phone": "12"}}
    tree = grow(schema, ValueSource(value))
    assert isinstance(tree, Group)
    assert tree.keys == ("pet", "size", "contact")
    assert isinstance(child(child(tree, "pet"), "name"), Leaf)
    assert isinstance(child(child(tree, "pet"), "tags"), Rows)
    assert [option.label for option in child(tree, "size").options] == ["small", "large"]
    contact = child(tree, "contact")
    assert isinstance(contact, Choice)
    assert (contact.options, contact.selected) == (("By mail", "By phone"), 1)
    assert through_a_browser(schema, value).value == value


def test_a_recursive_schema_ends_in_a_json_part() -> None:
    tree = grow(TREE, ValueSource({"name": "root", "child": {"name": "leaf"}}))
    # The root is reached without a reference, so one level is unrolled before the recursion shows.
    inner = child(tree, "child")
    assert isinstance(inner, Group)
    assert isinstance(child(inner, "child"), Raw)
    assert "contains itself" in child(inner, "child").why


def test_an_enormous_schema_stays_a_usable_form() -> None:
    schema = {"type": "object", "properties": {f"field{i}": {"type": "string"} for i in range(5000)}}
    tree = grow(schema, ValueSource(ABSENT))
    assert isinstance(tree, Group)
    assert sum(isinstance(node, Leaf) for node in tree.children) < 700
    assert len(tree.children) == 5000


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "array"},
        {"$ref": "#/$defs/none"},
        {"$ref": "http://elsewhere/x"},
        {"type": "string", "oneOf": "x"},
        {"properties": 7},
        {"allOf": [{"$ref": "#"}]},
    ],
)
def test_a_schema_that_has_no_fields_is_a_json_part_never_an_empty_form(schema: dict[str, Any]) -> None:
    tree = grow(schema, ValueSource(ABSENT))
    assert isinstance(tree, Raw | Leaf)


def test_text_that_is_no_number_is_kept_and_explained() -> None:
    schema = {"type": "object", "properties": {"limit": {"type": "integer"}}}
    got = harvest(grow(schema, FormSource([("v/limit", "12x")])))
    assert got.value == {"limit": "12x"}
    assert got.problems == {"/limit": "Enter a whole number, such as 12."}


def test_broken_json_in_a_part_names_line_and_column() -> None:
    schema = {"type": "object", "properties": {"extra": {"type": "object"}}}
    got = harvest(grow(schema, FormSource([("json/extra", '{"a": 1,\n]')])))
    assert "line 2, column 1" in got.problems["/extra"]


def test_integers_beyond_64_bits_keep_their_digits() -> None:
    value = {"n": 2**80, "free": {"n": 2**90}}
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "free": {"type": "object"}}}
    assert through_a_browser(schema, value).value == value


def test_rows_are_added_and_removed_without_losing_what_was_typed() -> None:
    schema = {
        "type": "object",
        "properties": {"tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["tags"],
    }
    pairs = posted_pairs(grow(schema, ValueSource({"tags": ["a", "b", "c"]})))
    without = edited(pairs, "remove/tags/1")
    assert harvest(grow(schema, FormSource(without))).value == {"tags": ["a", "c"]}
    added = edited(without, "add/tags")
    tree = grow(schema, FormSource(added))
    assert [row.spot.path for row in child(tree, "tags").rows] == [("tags", "0"), ("tags", "2"), ("tags", "3")]
    assert harvest(tree).problems == {"/tags/3": "Fill this in, or remove the row."}


def test_required_fields_show_their_default_at_first_and_stay_empty_when_cleared() -> None:
    schema = {"type": "object", "properties": {"unit": {"type": "string", "default": "metric"}}, "required": ["unit"]}
    assert child(grow(schema, ValueSource(ABSENT)), "unit").text == "metric"
    assert child(grow(schema, FormSource([("v/unit", "")])), "unit").text == ""


def test_an_error_in_the_value_is_located_at_its_field() -> None:
    schema = {
        "type": "object",
        "properties": {
            "pets": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
        },
    }
    tree = grow(schema, FormSource([("row/pets", "4"), ("v/pets/4/name", "x")]))
    assert locate(tree, ["pets", "0", "name"]).spot.name == "/pets/4/name"
    assert locate(tree, ["nowhere"]).spot.name == ""
