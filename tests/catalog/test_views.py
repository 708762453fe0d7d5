from __future__ import annotations

import pytest

from tests.catalog.tools import a_tool
from toolyard.catalog import Catalog, Server, ToolSettings, View
from toolyard.core.names import LONGEST_DIRECT_NAME, direct_name
from toolyard.core.tool import Kind, Tool

DEFAULT = Server("default")
SWITCHED_OFF = ToolSettings(enabled=False)


def a_catalog(*ids: str) -> Catalog:
    catalog = Catalog()
    for namespace in sorted({tool_id.partition(":")[0] for tool_id in ids}):
        own = [tool_id for tool_id in ids if tool_id.startswith(f"{namespace}:")]
        catalog.publish(namespace, [a_tool(tool_id) for tool_id in own])
    return catalog


def names(view: View) -> dict[str, str]:
    return {entry.id: view.name_of(entry) for entry in view.entries}


def hashed(tool_id: str) -> str:
    namespace, _, name = tool_id.partition(":")
    return direct_name(namespace, name, always_hashed=True)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (("*",), ["a:x", "a:y", "b:x"]),
        (("a:*",), ["a:x", "a:y"]),
        (("*:x",), ["a:x", "b:x"]),
        (("a:*", "b:*", "!*:y"), ["a:x", "b:x"]),
        (("!*:y", "a:*"), ["a:x"]),
        (("!a:*",), ["b:x"]),
        (("A:*",), []),
        ((), []),
        (("a:[xz]",), ["a:x"]),
        (("a:?", "a:x"), ["a:x", "a:y"]),
    ],
)
def test_patterns_choose_the_slice(patterns: tuple[str, ...], expected: list[str]) -> None:
    server = Server("one", tools=patterns)
    view = a_catalog("a:x", "a:y", "b:x").snapshot.view(server)
    assert [entry.id for entry in view.entries] == expected
    assert [tool_id for tool_id in ("a:x", "a:y", "b:x") if server.includes(tool_id)] == expected


def test_entries_are_found_by_both_names_and_sorted_by_the_one_clients_see() -> None:
    view = a_catalog("crm:search", "crm:add", "wiki:search").snapshot.view(DEFAULT)
    assert list(names(view).values()) == ["crm_add_action", "crm_search_action", "wiki_search_action"]
    for entry in view.entries:
        assert view.by_direct_name(view.name_of(entry)) is entry
        assert view.get(entry.id) is entry
    assert view.by_direct_name("crm:search") is None
    assert view.get("crm_search_action") is None


def test_a_tool_outside_the_slice_or_switched_off_is_as_unknown_as_one_that_never_was() -> None:
    catalog = a_catalog("a:x", "a:off", "b:x")
    catalog.apply_settings("a:off", SWITCHED_OFF)
    view = catalog.snapshot.view(Server("one", tools=("a:*",)))
    assert (view.get("b:x"), view.get("a:off"), view.get("a:never")) == (None, None, None)
    assert view.by_direct_name("b_x_action") is None
    assert view.by_direct_name("a_off_action") is None
    assert (len(view), "a:x" in view, "b:x" in view) == (1, True, False)


def test_a_tool_that_is_down_stays_in_the_view() -> None:
    catalog = a_catalog("a:x")
    catalog.set_availability("a", False, "down")
    (entry,) = catalog.snapshot.view(DEFAULT).entries
    assert not entry.callable


def test_tools_whose_direct_names_clash_both_get_hashed_names() -> None:
    view = a_catalog("a_b:c", "a:b_c", "a:other").snapshot.view(DEFAULT)
    assert names(view) == {"a:b_c": hashed("a:b_c"), "a:other": "a_other_action", "a_b:c": hashed("a_b:c")}
    assert hashed("a:b_c") != hashed("a_b:c")


def test_a_workflow_and_an_action_of_one_name_do_not_clash() -> None:
    catalog = Catalog()
    catalog.publish("a", [a_tool("a:b"), a_tool("a:b_workflow", kind=Kind.WORKFLOW)])
    assert names(catalog.snapshot.view(DEFAULT)) == {"a:b": "a_b_action", "a:b_workflow": "a_b_workflow_workflow"}


def test_nobody_can_take_over_a_hashed_name_by_being_called_like_it() -> None:
    disguise = hashed("a:b_c").removeprefix("a_").removesuffix("_action")
    view = a_catalog("a_b:c", "a:b_c", f"a:{disguise}").snapshot.view(DEFAULT)
    assert names(view)["a_b:c"] == hashed("a_b:c")
    assert names(view)[f"a:{disguise}"] == hashed(f"a:{disguise}")
    assert names(view)["a:b_c"] == hashed("a:b_c")
    assert len(set(names(view).values())) == 3


def test_switching_a_tool_off_renames_no_other() -> None:
    catalog = a_catalog("a_b:c", "a:b_c")
    catalog.apply_settings("a_b:c", SWITCHED_OFF)
    assert names(catalog.snapshot.view(DEFAULT)) == {"a:b_c": hashed("a:b_c")}


def test_direct_names_of_three_hundred_odd_tools_are_all_fit_for_models() -> None:
    catalog = Catalog()
    catalog.publish("odd", [Tool("odd", f"größe / {number} " + "x" * number + "!", "") for number in range(300)])
    view = catalog.snapshot.view(DEFAULT)
    assert len(view) == 300
    assert all(len(name) <= LONGEST_DIRECT_NAME and name.isascii() for name in names(view).values())


def test_a_server_of_bare_names_gives_direct_names_only_where_own_names_clash() -> None:
    view = a_catalog("a:search", "b:search", "b:add").snapshot.view(Server("one", names="bare"))
    assert names(view) == {"a:search": "a_search_action", "b:add": "add", "b:search": "b_search_action"}


def test_a_bare_name_that_looks_like_a_direct_name_does_not_shadow_it() -> None:
    view = a_catalog("a:search", "b:search", "c:a_search_action").snapshot.view(Server("one", names="bare"))
    by_id = names(view)
    assert len(set(by_id.values())) == 3
    assert by_id["b:search"] == "b_search_action"
    assert by_id["c:a_search_action"] == "c_a_search_action_action"


def test_of_tools_that_no_hash_tells_apart_the_first_stays_and_the_others_are_problems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolyard.catalog.naming.direct_name", lambda *_, **__: "same_action")
    view = a_catalog("a_b:c", "a:b_c").snapshot.view(DEFAULT)
    assert names(view) == {"a:b_c": "same_action"}
    assert [(problem.namespace, problem.name) for problem in view.problems] == [("a_b", "c")]


def test_a_view_is_made_once_per_server_and_snapshot() -> None:
    catalog = a_catalog("a:x")
    snapshot = catalog.snapshot
    assert snapshot.view(DEFAULT) is snapshot.view(Server("default"))
    catalog.publish("b", [a_tool("b:x")])
    assert catalog.snapshot.view(DEFAULT) is not snapshot.view(DEFAULT)


def test_the_fingerprint_stays_when_clients_would_see_the_same() -> None:
    catalog = a_catalog("a:x", "b:x")
    server = Server("one", tools=("a:*",))
    before = catalog.snapshot.view(server).fingerprint
    catalog.publish("b", [])
    catalog.set_availability("a", False, "down")
    catalog.apply_settings("a:x", ToolSettings(time_limit=1, approval="always"))
    catalog.publish("a", [a_tool("a:x", cluster="New")])
    assert catalog.snapshot.view(server).fingerprint == before


def test_the_fingerprint_ignores_what_an_operator_has_replaced() -> None:
    catalog = Catalog()
    catalog.apply_settings("a:x", ToolSettings(description="Operator's words."))
    catalog.publish("a", [Tool("a", "x", "old", wire={"name": "x", "description": "old"})])
    before = catalog.snapshot.view(DEFAULT).fingerprint
    catalog.publish("a", [Tool("a", "x", "new", wire={"name": "x", "description": "new"})])
    assert catalog.snapshot.view(DEFAULT).fingerprint == before
    catalog.apply_settings("a:x", ToolSettings())
    assert catalog.snapshot.view(DEFAULT).fingerprint != before


def test_the_fingerprint_changes_with_everything_that_clients_see() -> None:
    catalog = a_catalog("a:x", "a:y")
    seen = [catalog.snapshot.view(DEFAULT).fingerprint]

    def look(server: Server = DEFAULT) -> None:
        seen.append(catalog.snapshot.view(server).fingerprint)

    catalog.publish("a", [a_tool("a:x", "words"), a_tool("a:y")])
    look()
    catalog.publish("a", [a_tool("a:x", "words", arguments={"q": ""}), a_tool("a:y")])
    look()
    catalog.apply_settings("a:x", ToolSettings(description="other words"))
    look()
    catalog.apply_settings("a:y", SWITCHED_OFF)
    look()
    look(Server("bare", names="bare"))
    look(Server("agents", agent_mode=True))
    look(Server("titled", title="Titled"))
    catalog.publish("a", [Tool("a", "x", "words", title="X")])
    look()
    catalog.publish("a", [Tool("a", "x", "words", wire={"name": "x", "_meta": {"k": 1}})])
    look()
    assert len(set(seen)) == len(seen)
