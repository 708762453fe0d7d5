"""From entries, one action each, to the tools that serve them; and to none where nothing does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.tools import a_tool
from tests.requirements import requirement
from toolyard.catalog import Catalog, Server, ToolSettings
from toolyard.catalog.resolution import MOST_ENTRIES, PER_FEW, PER_MANY, entities_of
from toolyard.core.json import dumps
from toolyard.core.tool import Kind


def office() -> Catalog:
    """Three apps with the same things to do."""
    catalog = Catalog()
    for app in ("hubspot", "salesforce", "github"):
        catalog.publish(
            app,
            [
                a_tool(f"{app}:create_note", "Creates a note.", arguments={"body": "What it says."}),
                a_tool(f"{app}:list_contacts", "Lists all contacts."),
                a_tool(f"{app}:delete_contact", "Deletes one contact."),
                a_tool(f"{app}:search_deals", "Finds deals by their amount."),
                a_tool(f"{app}:send_invoice", "Sends an invoice by mail."),
                a_tool(f"{app}:merge_companies", "Makes one company of two."),
            ],
        )
    catalog.publish("onboarding", [a_tool("onboarding:welcome", "Welcomes a new customer.", kind=Kind.WORKFLOW)])
    return catalog


async def ids(catalog: Catalog, *entries: str, within: Server | None = None) -> list[str]:
    view = within and catalog.snapshot.view(within)
    return [hit.entry.id for hit in (await catalog.resolve(entries, within=view)).hits]


@requirement("agentmode.resolve")
async def test_the_best_of_each_entry_comes_before_the_second_of_any() -> None:
    found = await ids(office(), "List Contacts Salesforce", "Create Note HubSpot")
    assert found[:2] == ["salesforce:list_contacts", "hubspot:create_note"]


async def test_the_named_app_decides_between_equal_actions() -> None:
    catalog = office()
    for app in ("HubSpot", "Salesforce", "GitHub", "git hub"):
        assert (await ids(catalog, f"Send Invoice {app}"))[0] == f"{app.lower().replace(' ', '')}:send_invoice"


async def test_up_to_two_entries_have_five_candidates_each_and_more_have_three() -> None:
    catalog = office()
    two = await ids(catalog, "Contact HubSpot", "Note Salesforce")
    assert len(two) <= 2 * PER_FEW
    three = await catalog.resolve(["Contact HubSpot", "Note Salesforce", "Deals GitHub"])
    assert len(three.hits) <= 3 * PER_MANY
    assert len({hit.entry.id for hit in three.hits}) == len(three.hits)


@requirement("agentmode.resolve")
@pytest.mark.parametrize("entry", ["Create Note Zendesk", "Frobnicate Zyzzyva", "?!", "Create Spaceship Zendesk"])
async def test_an_app_that_is_absent_finds_nothing(entry: str) -> None:
    resolution = await office().resolve([entry])
    assert resolution.hits == ()
    assert resolution.unmatched == (entry,)
    assert resolution.sentence.startswith(f"Couldn't find any matching actions for {entry!r}.")


async def test_an_entry_that_finds_nothing_costs_the_others_nothing() -> None:
    catalog = office()
    resolution = await catalog.resolve(["Create Note Zendesk", "Create Note HubSpot"])
    assert resolution.unmatched == ("Create Note Zendesk",)
    assert resolution.remarks == ("Nothing matches 'Create Note Zendesk'.",)
    assert resolution.hits[0].entry.id == "hubspot:create_note"


async def test_what_a_server_hides_is_as_if_it_did_not_exist() -> None:
    catalog = office()
    narrow = catalog.snapshot.view(Server("narrow", ("salesforce:*",)))
    for action in ("Merge Companies", "Create Note", "Launch Spaceship"):
        hidden = await catalog.resolve([f"{action} HubSpot"], within=narrow)
        unknown = await catalog.resolve([f"{action} Zendesk"], within=narrow)
        assert [hit.entry.id for hit in hidden.hits] == [hit.entry.id for hit in unknown.hits]
        told = hidden.sentence.replace(f"for '{action} HubSpot'", f"for '{action} Zendesk'")
        assert told == unknown.sentence
    assert "salesforce:merge_companies" in await ids(catalog, "Merge Companies", within=Server("n", ("salesforce:*",)))


async def test_a_tool_that_is_switched_off_is_not_found_within_a_server_and_one_that_is_down_is() -> None:
    catalog = office()
    catalog.apply_settings("hubspot:create_note", ToolSettings(enabled=False))
    catalog.set_availability("github", available=False, reason="down")
    assert "hubspot:create_note" not in await ids(catalog, "Create Note HubSpot", within=Server("all"))
    assert (await ids(catalog, "Create Note GitHub", within=Server("all")))[0] == "github:create_note"


async def test_words_that_politeness_adds_do_not_hide_an_action_of_a_named_app() -> None:
    assert (await ids(office(), "Please list my most recent contacts from HubSpot"))[0] == "hubspot:list_contacts"


async def test_an_operators_threshold_comes_before_the_measured_one() -> None:
    lenient, strict = Catalog(threshold=0.0), Catalog(threshold=1.0)
    for catalog in (lenient, strict):
        catalog.publish("hubspot", [a_tool("hubspot:create_note", "Creates a note.")])
    assert await ids(lenient, "Create Note Zendesk") == ["hubspot:create_note"]
    assert await ids(strict, "Create Note Zendesk") == []
    assert await ids(strict, "Create Note") == ["hubspot:create_note"]


async def test_too_many_and_too_long_entries_are_cut_and_it_is_said() -> None:
    catalog = office()
    entries = [f"Create Note HubSpot {number}" for number in range(MOST_ENTRIES + 5)]
    resolution = await catalog.resolve([*entries[:-1], "Create Note " + "very " * 100 + "HubSpot"])
    assert f"Only the first {MOST_ENTRIES} of {MOST_ENTRIES + 5} entries were read: ask again for the others." in (
        resolution.remarks
    )
    long = await catalog.resolve(["Create a note in HubSpot that says hello to all of our very good customers there"])
    assert long.hits[0].entry.id == "hubspot:create_note"
    assert long.remarks[-1].startswith("Short entries work better")


async def test_one_entry_that_names_two_apps_finds_both() -> None:
    found = await ids(office(), "List contacts from Salesforce and create a note in HubSpot")
    assert {"salesforce:list_contacts", "hubspot:create_note"} <= set(found[:4])


async def test_an_empty_catalog_answers_the_sentence() -> None:
    assert (await Catalog().resolve(["Create Note HubSpot"])).hits == ()


async def test_workflows_and_actions_are_told_apart() -> None:
    first = entities_of(await office().resolve(["Welcome new customer"]))[0]
    assert first == {"slug": "onboarding", "type": "workflow", "identifier": "welcome", "json_schema": {}}


@given(st.lists(st.text(max_size=60), max_size=6))
async def test_no_entry_breaks_it_and_none_is_answered_twice(entries: list[str]) -> None:
    catalog = CATALOG
    resolution = await catalog.resolve(entries)
    found = [hit.entry.id for hit in resolution.hits]
    assert len(found) == len(set(found))
    assert dumps(entities_of(resolution))
    asked = {" ".join(entry.split()) for entry in entries} - {""}
    assert set(resolution.unmatched) <= asked


CATALOG = office()
