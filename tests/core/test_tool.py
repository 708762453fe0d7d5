"""Tools, their annotations, and their schemas closed over shared components."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.requirements import requirement
from toolyard.core.json import JsonObject
from toolyard.core.schema import ANY_OBJECT, Components, Schema
from toolyard.core.tool import ActionClass, Annotations, Kind, Tool

hints = st.none() | st.booleans()


@requirement("provider.verbatim")
@given(st.builds(Annotations, read_only=hints, destructive=hints, idempotent=hints, open_world=hints))
def test_annotations_survive_the_wire(annotations: Annotations) -> None:
    assert Annotations.from_wire(annotations.to_wire()) == annotations


def test_hints_that_are_no_booleans_say_nothing() -> None:
    assert Annotations.from_wire({"readOnlyHint": "yes", "destructiveHint": 1, "title": "Search"}) == Annotations()


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (Annotations(), ActionClass.WRITE),
        (Annotations(read_only=True), ActionClass.READ),
        (Annotations(read_only=True, destructive=True), ActionClass.READ),
        (Annotations(destructive=True), ActionClass.DESTRUCTIVE),
        (Annotations(read_only=False, destructive=False), ActionClass.WRITE),
    ],
)
def test_what_a_call_may_do_follows_from_the_annotations(annotations: Annotations, expected: ActionClass) -> None:
    assert Tool("crm", "search", "", annotations=annotations).action_class is expected


@requirement("provider.namespace")
def test_a_tools_names() -> None:
    tool = Tool("crm", "search:all", "")
    assert (tool.id, replace(tool, name="search").direct_name) == ("crm:search:all", "crm_search_action")
    assert replace(tool, name="weekly", kind=Kind.WORKFLOW).direct_name == "crm_weekly_workflow"


def test_the_definition_hash_is_over_what_a_model_is_told() -> None:
    tool = Tool("crm", "search", "Finds people.")
    told = [
        replace(tool, name="find"),
        replace(tool, description="Finds people!"),
        replace(tool, input_schema=Schema({"type": "object", "required": ["q"]})),
        replace(tool, output_schema={"type": "object"}),
        replace(tool, annotations=Annotations(read_only=True)),
    ]
    assert len({tool.definition_hash, *(other.definition_hash for other in told)}) == 6
    untold = [replace(tool, namespace="other"), replace(tool, tags=("x",)), replace(tool, time_limit=1.0)]
    assert {other.definition_hash for other in untold} == {tool.definition_hash}


# -- schemas ----------------------------------------------------------------------------------------------------------

SCHEMAS: dict[str, JsonObject] = {
    "Pet": {"type": "object", "properties": {"owner": {"$ref": "#/$defs/Person"}}},
    "Person": {"type": "object", "properties": {"pets": {"items": {"$ref": "#/$defs/Pet"}}}},
    "Error": {"type": "string"},
}
REFS = {"Pet": ("Person",), "Person": ("Pet",), "Error": ()}
ROOT: JsonObject = {"$ref": "#/$defs/Pet"}


def test_a_schema_is_closed_over_what_it_reaches_and_no_more() -> None:
    schema = Schema(ROOT, refs=("Pet",), components=Components(SCHEMAS, REFS))
    assert schema.document() == {**ROOT, "$defs": {"Person": SCHEMAS["Person"], "Pet": SCHEMAS["Pet"]}}


def test_a_schema_without_references_is_its_own_document() -> None:
    assert Schema(ROOT, components=Components(SCHEMAS, REFS)).document() is ROOT
    assert ANY_OBJECT.document() == {"type": "object"}


def test_a_name_that_nothing_defines_is_left_out() -> None:
    assert Components(SCHEMAS, REFS).closure(["Error", "Ghost"]) == ["Error"]


def test_equal_schemas_have_equal_hashes_wherever_their_components_live() -> None:
    here = Schema(ROOT, refs=("Pet",), components=Components(SCHEMAS, REFS))
    there = Schema(dict(ROOT), refs=("Pet",), components=Components({**SCHEMAS, "Unused": {}}, REFS))
    assert here == there
    assert {here} == {there}
    assert repr(here) == f"Schema({here.hash[:12]})"


def test_a_change_far_down_in_the_closure_changes_the_hash() -> None:
    changed = {**SCHEMAS, "Person": {"type": "object"}}
    here = Schema(ROOT, refs=("Pet",), components=Components(SCHEMAS, REFS))
    there = Schema(ROOT, refs=("Pet",), components=Components(changed, {**REFS, "Person": ()}))
    assert here != there


names = st.sampled_from([*"abcdef"])


@given(st.dictionaries(names, st.lists(names, max_size=3).map(tuple)), st.lists(names, max_size=3))
def test_a_closure_holds_what_it_was_asked_for_and_all_that_this_needs(
    refs: dict[str, tuple[str, ...]], wanted: list[str]
) -> None:
    components = Components({name: {"title": name} for name in refs}, refs)
    closure = components.closure(wanted)
    assert closure == sorted(set(closure))
    assert set(wanted) & refs.keys() <= set(closure)
    assert all(set(refs[name]) & refs.keys() <= set(closure) for name in closure)
    assert all(components.closure([name])[0:] and set(components.closure([name])) <= set(closure) for name in closure)
