"""Names of tools: namespaces, ids, direct names, prefixes and suggestions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.requirements import requirement
from toolyard.core.errors import BadInput
from toolyard.core.names import (
    NAMESPACE,
    ToolClass,
    check_namespace,
    did_you_mean,
    direct_name,
    nearest,
    slugify,
    split_tool_id,
    tool_classification,
    tool_id,
)

namespaces = st.from_regex(NAMESPACE, fullmatch=True)
tool_names = st.text(min_size=1, max_size=300)


@requirement("provider.namespace")
@given(namespaces, tool_names)
def test_a_tool_id_splits_into_what_it_was_made_of(namespace: str, name: str) -> None:
    assert split_tool_id(tool_id(namespace, name)) == (namespace, name)


@pytest.mark.parametrize("text", ["", "search", ":search", "crm:", ":"])
def test_what_is_no_tool_id_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match="is no tool name") as refusal:
        split_tool_id(text)
    assert (refusal.value.where, refusal.value.suggestion) == ("tool", "Write it as provider:name, such as crm:search.")


@pytest.mark.parametrize("namespace", ["a", "crm", "pet-store_2", "0", "a" * 64])
def test_good_namespaces_are_taken(namespace: str) -> None:
    assert check_namespace(namespace) == namespace


@pytest.mark.parametrize("namespace", ["", "CRM", "-a", "a-", "_a", "a" * 65, "a b", "a:b", "é", "a\n"])
def test_bad_namespaces_are_refused(namespace: str) -> None:
    with pytest.raises(BadInput, match="cannot be a provider id"):
        check_namespace(namespace)


@given(st.text(max_size=200))
def test_a_slug_of_any_text_is_a_namespace(text: str) -> None:
    assert check_namespace(slugify(text)) == slugify(slugify(text))


def test_slugs_are_readable() -> None:
    assert [slugify(t) for t in ("Pet Store (v2)", "GitHub v3 REST API", "***", "")] == [
        "pet-store-v2", "github-v3-rest-api", "api", "api",
    ]  # fmt: skip


# -- direct names -----------------------------------------------------------------------------------------------------


@given(namespaces, tool_names, st.sampled_from(["action", "workflow"]), st.booleans())
def test_a_direct_name_is_valid_for_every_client_and_always_the_same(
    namespace: str, name: str, entity: str, always_hashed: bool
) -> None:
    made = direct_name(namespace, name, entity=entity, always_hashed=always_hashed)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", made)
    assert made.endswith(f"_{entity}")
    assert made == direct_name(namespace, name, entity=entity, always_hashed=always_hashed)


@requirement("provider.namespace")
@given(st.lists(st.tuples(namespaces, tool_names), unique=True, min_size=2, max_size=2))
def test_hashed_direct_names_of_two_tools_differ(pair: list[tuple[str, str]]) -> None:
    first, second = (direct_name(namespace, name, always_hashed=True) for namespace, name in pair)
    assert first != second


def test_direct_names_by_example() -> None:
    assert direct_name("crm", "search") == "crm_search_action"
    assert direct_name("crm", "weekly", entity="workflow") == "crm_weekly_workflow"
    assert direct_name("crm", "x" * 53) == f"crm_{'x' * 53}_action"  # 64 characters
    cut = direct_name("crm", "x" * 54)
    assert (len(cut), cut[:50]) == (64, f"crm_{'x' * 46}")
    odd, other = direct_name("crm", "find/all"), direct_name("crm", "find all")
    assert re.fullmatch(r"crm_find_all_[0-9a-f]{6}_action", odd)
    assert odd != other != direct_name("crm", "find_all")
    assert direct_name("a_b", "c") == direct_name("a", "b_c")
    assert direct_name("a_b", "c", always_hashed=True) != direct_name("a", "b_c", always_hashed=True)


# -- prefixes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("search", ToolClass.STANDARD),
        ("_search", ToolClass.INTERNAL),
        ("pre_send", ToolClass.PRE),
        ("post_send", ToolClass.POST),
        ("priv_wipe", ToolClass.PRIVATE),
        ("mcp_crm", ToolClass.MCP),
        ("prefix", ToolClass.STANDARD),
        ("post", ToolClass.STANDARD),
        ("PRE_send", ToolClass.STANDARD),
        ("_pre_send", ToolClass.INTERNAL),
        ("", ToolClass.STANDARD),
    ],
)
def test_a_prefix_tells_the_class(name: str, kind: ToolClass) -> None:
    assert tool_classification(name) is kind


# -- suggestions ------------------------------------------------------------------------------------------------------


def test_the_nearest_name_is_suggested_as_it_is_written() -> None:
    known = ["limit", "Offset", "petId"]
    assert [nearest(name, known) for name in ("limt", "offset", "PETID", "colour")] == [
        "limit",
        "Offset",
        "petId",
        None,
    ]
    assert did_you_mean("limt", known) == "Did you mean 'limit'?"
    assert did_you_mean("colour", known) is None
    assert nearest("limit", []) is None
