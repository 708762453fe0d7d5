from __future__ import annotations

import pytest

from tests.catalog.tools import a_tool
from tests.requirements import requirement
from toolyard.catalog import DEFAULT_SETTINGS, Catalog, Snapshot, ToolSettings
from toolyard.core.errors import BadInput
from toolyard.core.schema import Components, Schema
from toolyard.core.tool import Tool


def ids(snapshot: Snapshot) -> list[str]:
    return [entry.id for entry in snapshot.entries]


@requirement("provider.namespace")
def test_same_named_tools_of_two_providers_are_two_tools() -> None:
    catalog = Catalog()
    catalog.publish("crm", [a_tool("crm:search", "Finds customers.")])
    catalog.publish("wiki", [a_tool("wiki:search", "Finds pages.")])
    crm, wiki = catalog.snapshot.get("crm:search"), catalog.snapshot.get("wiki:search")
    assert crm is not None
    assert wiki is not None
    assert (crm.description, wiki.description) == ("Finds customers.", "Finds pages.")
    assert catalog.snapshot.get("search") is None


@requirement("provider.namespace")
def test_a_provider_cannot_publish_into_another_namespace() -> None:
    catalog = Catalog()
    catalog.publish("crm", [a_tool("crm:search")])
    catalog.publish("wiki", [a_tool("crm:search", "a trap")])
    entry = catalog.snapshot.get("crm:search")
    assert entry is not None
    assert entry.description == ""
    assert [problem.reason for problem in catalog.snapshot.problems] == ["It belongs to 'crm', not to 'wiki'."]


@requirement("provider.refresh")
def test_a_reader_in_flight_keeps_the_snapshot_it_started_with() -> None:
    catalog = Catalog()
    catalog.publish("crm", [a_tool("crm:search", "old"), a_tool("crm:gone")])
    reader = catalog.snapshot
    kept = (reader.version, ids(reader), reader.get("crm:search"))
    catalog.publish("crm", [a_tool("crm:search", "new")])
    catalog.remove("crm")
    assert (reader.version, ids(reader), reader.get("crm:search")) == kept
    assert [hit.entry.description for hit in reader.search("search")] == ["old"]
    assert catalog.snapshot.version == reader.version + 2
    assert ids(catalog.snapshot) == []


@requirement("provider.refresh")
def test_a_changed_list_is_published_once_and_told_to_subscribers() -> None:
    catalog = Catalog()
    heard: list[int] = []
    unsubscribe = catalog.on_publish(lambda snapshot: heard.append(snapshot.version))
    catalog.publish("crm", [a_tool("crm:a")])
    catalog.publish("crm", [a_tool("crm:a")])
    catalog.publish("crm", [a_tool("crm:a"), a_tool("crm:b")])
    unsubscribe()
    unsubscribe()
    catalog.remove("crm")
    assert heard == [1, 2]


def test_entries_are_sorted_by_id_across_namespaces_that_begin_alike() -> None:
    catalog = Catalog()
    for namespace in ("a_b", "a-b", "a", "ab", "a0"):
        catalog.publish(namespace, [a_tool(f"{namespace}:y"), a_tool(f"{namespace}:x")])
    assert ids(catalog.snapshot) == sorted(ids(catalog.snapshot))
    assert len(catalog.snapshot) == 10


def test_of_two_tools_of_one_name_the_first_stays_and_the_second_is_a_problem() -> None:
    catalog = Catalog()
    catalog.publish("crm", [a_tool("crm:search", "first"), a_tool("crm:search", "second")])
    assert [entry.description for entry in catalog.snapshot.entries] == ["first"]
    assert [(problem.name, problem.reason) for problem in catalog.snapshot.problems] == [
        ("search", "The provider offers another tool of this name before it.")
    ]


BAD_NAMES = {
    "": "It has no name.",
    "  ": "It has no name.",
    " padded": "Its name begins or ends with a blank.",
    "x" * 513: "Its name has 513 characters; at most 512 are listed.",
    "two\nlines": "Its name holds the invisible character U+000A.",
    "zero\u200bwidth": "Its name holds the invisible character U+200B.",
    "right\u202eleft": "Its name holds the invisible character U+202E.",
    "half\ud800": "Its name holds the invisible character U+D800.",
    "nul\0": "Its name holds the invisible character U+0000.",
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_tool_whose_name_cannot_be_shown_hides_itself_only(name: str) -> None:
    catalog = Catalog()
    catalog.publish("crm", [Tool("crm", name, "odd"), a_tool("crm:good")])
    assert ids(catalog.snapshot) == ["crm:good"]
    (problem,) = catalog.snapshot.problems
    assert problem.reason == BAD_NAMES[name]
    assert problem.name.isprintable()


@pytest.mark.parametrize("name", ["with space", "slash/and.dot", "größe", "検索", "a:b", "x" * 512, "%s{}[!]*?"])
def test_an_odd_name_that_people_can_read_is_listed(name: str) -> None:
    catalog = Catalog()
    catalog.publish("crm", [Tool("crm", name, "odd")])
    assert ids(catalog.snapshot) == [f"crm:{name}"]
    assert catalog.snapshot.get(f"crm:{name}") is not None


def test_three_hundred_bad_names_hide_themselves_only() -> None:
    catalog = Catalog()
    bad = [Tool("crm", f"bad\t{number}", "") for number in range(300)]
    catalog.publish("crm", [*bad, a_tool("crm:good")])
    assert ids(catalog.snapshot) == ["crm:good"]
    assert len(catalog.snapshot.problems) == 300


def nested(depth: int) -> dict[str, object]:
    schema: dict[str, object] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"in": schema}}
    return schema


BAD_SCHEMAS: dict[str, tuple[object, str]] = {
    "a list": ([], "Its input schema is not a JSON object."),
    "true": (True, "Its input schema is not a JSON object."),
    "an array": ({"type": "array"}, "Its input schema is of type array"),
    "no known type": ({"type": ["string", "null"]}, "Its input schema is of type ['string', 'null']"),
    "properties of a list": ({"type": "object", "properties": []}, "Its input schema's 'properties'"),
    "a thing JSON cannot say": ({"type": "object", "default": object()}, "Its definition cannot be written as JSON"),
    "half a character": ({"type": "object", "title": "\ud800"}, "Its definition cannot be written as JSON"),
    "endless": (nested(100_000), "Its definition cannot be written as JSON"),
}


@pytest.mark.parametrize("case", BAD_SCHEMAS)
def test_a_bad_input_schema_hides_its_tool_only(case: str) -> None:
    root, reason = BAD_SCHEMAS[case]
    bad = Tool("crm", "bad", "", Schema(root))  # pyright: ignore[reportArgumentType]
    catalog = Catalog()
    catalog.publish("crm", [bad, a_tool("crm:good")])
    assert ids(catalog.snapshot) == ["crm:good"]
    (problem,) = catalog.snapshot.problems
    assert problem.name == "bad"
    assert problem.reason.startswith(reason)


def test_components_that_cannot_be_written_hide_only_the_tools_that_refer_to_any() -> None:
    components = Components({"Broken": {"title": "\ud800"}}, {"Broken": ()})
    refers = Tool("crm", "refers", "", Schema({"type": "object"}, refs=("Broken",), components=components))
    plain = Tool("crm", "plain", "", Schema({"type": "object"}, components=components))
    catalog = Catalog()
    catalog.publish("crm", [refers, plain])
    assert ids(catalog.snapshot) == ["crm:plain"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("description", 7), ("description", "half\ud800"), ("output_schema", 7), ("title", "half\ud800")],
)
def test_a_field_that_cannot_be_shown_hides_its_tool_only(field: str, value: object) -> None:
    bad = Tool(**({"namespace": "crm", "name": "bad", "description": ""} | {field: value}))  # pyright: ignore[reportArgumentType]
    catalog = Catalog()
    catalog.publish("crm", [bad, a_tool("crm:good")])
    assert ids(catalog.snapshot) == ["crm:good"]


def test_a_namespace_that_cannot_be_one_is_refused_and_nothing_is_published() -> None:
    catalog = Catalog()
    with pytest.raises(BadInput):
        catalog.publish("CRM!", [])
    assert catalog.snapshot.version == 0


def test_a_provider_that_is_down_keeps_its_tools_marked_with_the_reason() -> None:
    catalog = Catalog()
    catalog.publish("crm", [a_tool("crm:a")])
    catalog.set_availability("crm", False, "connection refused")
    entry = catalog.snapshot.get("crm:a")
    assert entry is not None
    assert (entry.available, entry.callable, entry.reason) == (False, False, "connection refused")
    catalog.set_availability("crm", True, "ignored")
    entry = catalog.snapshot.get("crm:a")
    assert entry is not None
    assert (entry.available, entry.callable, entry.reason) == (True, True, None)


def test_marking_what_is_marked_already_or_unknown_publishes_nothing() -> None:
    catalog = Catalog()
    catalog.publish("crm", [a_tool("crm:a")])
    version = catalog.snapshot.version
    catalog.set_availability("crm", True)
    catalog.set_availability("nobody", False, "down")
    catalog.remove("nobody")
    assert catalog.remove_tools(["crm:nothing", "nobody:a"]) == 0
    assert catalog.snapshot.version == version


def test_an_operators_settings_survive_publishing_and_leaving() -> None:
    catalog = Catalog()
    settings = ToolSettings(enabled=False, description="Use the other one.", time_limit=3)
    catalog.apply_settings("crm:a", settings)
    catalog.publish("crm", [a_tool("crm:a", "own words"), a_tool("crm:b")])
    catalog.remove("crm")
    catalog.publish("crm", [a_tool("crm:a", "new words")], available=False, reason="down")
    entry = catalog.snapshot.get("crm:a")
    assert entry is not None
    assert (entry.settings, entry.description) == (settings, "Use the other one.")
    assert entry.reason == "An operator has switched this tool off."
    catalog.apply_settings("crm:a", DEFAULT_SETTINGS)
    entry = catalog.snapshot.get("crm:a")
    assert entry is not None
    assert (entry.settings, entry.description, entry.reason) == (DEFAULT_SETTINGS, "new words", "down")


def test_a_subscriber_that_publishes_is_heard_in_order() -> None:
    catalog = Catalog()
    heard: list[tuple[str, int]] = []

    def publishes_once(snapshot: Snapshot) -> None:
        heard.append(("first", snapshot.version))
        catalog.publish("more", [a_tool("more:a")])

    catalog.on_publish(publishes_once)
    catalog.on_publish(lambda snapshot: heard.append(("second", snapshot.version)))
    catalog.publish("crm", [a_tool("crm:a")])
    assert heard == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]


def test_a_subscriber_that_fails_does_not_undo_the_publication_or_deafen_later_ones() -> None:
    catalog = Catalog()

    def fails(snapshot: Snapshot) -> None:
        raise RuntimeError("broken subscriber")

    unsubscribe = catalog.on_publish(fails)
    with pytest.raises(RuntimeError, match="broken"):
        catalog.publish("crm", [a_tool("crm:a")])
    assert ids(catalog.snapshot) == ["crm:a"]
    unsubscribe()
    heard: list[int] = []
    catalog.on_publish(lambda snapshot: heard.append(snapshot.version))
    catalog.remove("crm")
    assert heard == [2]
