"""The pages of MCP servers: made, changed, seen as a client sees them, tried by hand, removed."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from playwright.async_api import expect

from tests.faces.console.browser import Tabs
from tests.faces.console.page import Page
from tests.faces.http.client import client_of
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.catalog import Server
from toolyard.core.record import CallFilter
from toolyard.faces.asgi import build as build_all
from toolyard.manifest import Manifest, parse_server

FORM = {
    "id": "few",
    "tools": "shop:*\n!shop:ord*",
    "names": "direct",
    "title": "A few",
    "description": "",
    "skills": "",
}


@pytest.fixture
async def client(app: App) -> httpx2.AsyncClient:
    """Over all faces: what a client sees is asked of the MCP face."""
    return client_of(build_all(app))


async def post(client: httpx2.AsyncClient, path: str, **form: str) -> httpx2.Response:
    csrf = Page.of(await client.get("/servers")).all("input", name="csrf")[0].attributes["value"]
    return await client.post(path, data={**form, "csrf": csrf})


@requirement("server.toggles")
async def test_a_server_is_made_changed_and_removed(client: httpx2.AsyncClient, app: App) -> None:
    made = await post(client, "/servers", **FORM)
    assert (made.status_code, made.headers["location"]) == (303, "/servers/few?notice=server-added")
    assert app.servers["few"] == Server("few", tools=("shop:*", "!shop:ord*"), title="A few")
    changed = await post(client, "/servers/few", **{**FORM, "names": "bare", "agent_mode": "1", "skills": "a*\nb"})
    assert changed.headers["location"] == "/servers/few?notice=server-saved"
    kept = app.servers["few"]
    assert (kept.names, kept.agent_mode, kept.retrieve_skill, kept.skills) == ("bare", True, False, ("a*", "b"))
    assert (await post(client, "/remove-server/few")).headers["location"] == "/servers?notice=server-removed"
    assert "few" not in app.servers


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"id": "No Spaces"}, "id"),
        ({"id": "default"}, "There is a server &#39;default&#39; already."),
        ({"names": "odd"}, "names"),
    ],
)
async def test_what_cannot_be_a_server_is_told_and_what_was_typed_stays(
    client: httpx2.AsyncClient, app: App, wrong: dict[str, str], says: str
) -> None:
    refused = await post(client, "/servers", **{**FORM, **wrong})
    assert refused.status_code == 422
    page = Page.of(refused)
    assert says in refused.text
    assert page.one("p", class_="field-error").attributes["id"] == f"{next(iter(wrong))}-error"
    assert page.one("input", id="title").attributes["value"] == "A few"
    assert page.one("textarea", id="tools").text == FORM["tools"]
    assert list(app.servers) == ["default"]


@requirement("server.direct")
@requirement("server.toggles")
async def test_the_page_shows_exactly_what_a_client_is_sent(client: httpx2.AsyncClient, app: App) -> None:
    await app.save_server(Server("few", tools=("shop:*",), retrieve_skill=True))
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
        "Accept": "application/json, text/event-stream",
    }
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    sent = (await client.post("/mcp/few", json=request, headers=headers)).json()["result"]["tools"]
    page = Page.of(await client.get("/servers/few"))
    shown = [element.text for element in page.all("code", class_="seen-name")]
    assert shown == [tool["name"] for tool in sent]
    assert shown[:2] == ["GET_KNOWLEDGE_INDEX", "LOAD_SKILL"]
    assert page.one("a", href="/tools/shop:order").text == "shop:order"
    await app.save_server(Server("few", tools=("shop:*",), agent_mode=True))
    page = Page.of(await client.get("/servers/few"))
    assert [one.text for one in page.all("code", class_="seen-name")] == ["RESOLVE_ACTIONS", "EXECUTE_ACTION"]


async def test_agent_mode_is_tried_by_hand_and_the_call_is_on_record(client: httpx2.AsyncClient, app: App) -> None:
    resolved = await post(client, "/servers/default/try", tool="RESOLVE_ACTIONS", query="Order Pet Shop\n")
    assert "Answered" in resolved.text
    assert "<strong>order</strong>" in resolved.text
    form = {"tool": "EXECUTE_ACTION", "application_slug": "shop", "action_id": "order", "type": "action"}
    bad = await post(client, "/servers/default/try", **form, payload="{broken")
    good = await post(client, "/servers/default/try", **form, payload='{"pet": {"name": "Rex"}, "size": "small"}')
    assert "Failed" in bad.text
    assert "Answered" in good.text
    page = await app.calls.page(CallFilter(server="default", tool="shop:order"))
    assert sorted(record.state.value for record in page.items) == ["COMPLETE", "ERROR"]
    log = Page.of(await client.get("/calls?server=default"))
    assert len([row for row in log.all("a") if "shop:order" in row.text]) == 2
    assert (await app.calls.page(CallFilter(server="other"))).items == ()


async def test_a_title_can_be_taken_away_again(client: httpx2.AsyncClient, app: App) -> None:
    await post(client, "/servers", **FORM)
    await post(client, "/servers/few", **{**FORM, "title": ""})
    assert app.servers["few"] == Server("few", tools=("shop:*", "!shop:ord*"))


async def test_while_patterns_are_typed_the_tools_they_show_are_counted_and_named(
    client: httpx2.AsyncClient, app: App
) -> None:
    entries = app.catalog.snapshot.view(Server("few", tools=("shop:*", "!shop:ord*"))).entries
    typed = Page.of(await post(client, "/server-matches", tools="shop:*\n!shop:ord*\nshopp", names="direct"))
    assert f"{len(entries)} tool" in typed.one("p", class_="fits").text
    assert next(chip.text for chip in typed.all("span", class_="chip")) == f"shop:* {len(entries) + 1}"
    assert "fits no tool" in typed.one("span", class_="chip odd").text
    assert len(typed.all("li")) == len(entries)
    bare = Page.of(await post(client, "/server-matches", tools="shop:order", names="bare"))
    assert bare.one("li").text == "order shop:order"


async def test_agent_mode_is_tried_without_scripts_on_the_page_itself(client: httpx2.AsyncClient) -> None:
    tried = await post(client, "/servers/default/try", tool="RESOLVE_ACTIONS", query="Order <b>Pet</b> Shop")
    page = Page.of(tried)
    assert page.one("textarea", id="query").text == "Order <b>Pet</b> Shop"
    assert "<b>Pet" not in tried.text
    assert any("RESOLVE_ACTIONS" in heading.text for heading in page.all("h3"))


async def test_the_log_of_a_server_keeps_to_it_when_more_filters_are_chosen(client: httpx2.AsyncClient) -> None:
    form = {"tool": "EXECUTE_ACTION", "application_slug": "shop", "action_id": "order", "type": "action"}
    await post(client, "/servers/default/try", **form, payload="{broken")
    log = Page.of(await client.get("/calls?server=default"))
    assert log.one("input", name="server").attributes["value"] == "default"
    assert any("Server: default" in chip.text for chip in log.all("a", class_="chip"))
    narrowed = [one.attributes["href"] for one in log.all("a") if "tool=shop" in one.attributes.get("href", "")]
    assert narrowed
    assert all("server=default" in href for href in narrowed)


async def test_the_address_with_a_key_is_offered_only_where_it_is_switched_on(
    client: httpx2.AsyncClient, app: App
) -> None:
    await app.save_server(Server("few", token_in_url=True))
    assert "/mcp/few/t/YOUR_KEY" in (await client.get("/connect?server=few")).text
    assert "/t/YOUR_KEY" not in (await client.get("/connect")).text


async def test_a_server_of_the_manifest_is_shown_but_not_changed_here(tmp_path: Path) -> None:
    manifest = Manifest(servers=(parse_server({"id": "fixed", "tools": ["shop:*"]}),))
    async with (
        App.running(Settings(data_dir=tmp_path, demo=True), manifest) as app,
        client_of(build_all(app)) as client,
    ):
        page = Page.of(await client.get("/servers/fixed"))
        assert page.all("button", class_="button primary") == []
        assert "declared in the manifest" in page.html
        assert (await post(client, "/servers/fixed", **FORM)).status_code == 422
        assert (await client.get("/servers/nowhere")).status_code == 404


async def test_a_person_makes_a_server_and_looks_at_a_definition(tabs: Tabs) -> None:
    page = await tabs.open("/servers")
    await page.get_by_text("Add a server").click()
    await page.get_by_label("Id", exact=True).fill("few")
    await page.get_by_label("Tools", exact=True).fill("shop:order")
    await expect(page.locator(".matches")).to_contain_text("1 tool fits")
    await page.get_by_label("Tools", exact=True).fill("shop:*")
    await page.get_by_role("button", name="Add server").click()
    await expect(page.get_by_role("status")).to_contain_text("Server added")
    await page.locator(".seen-name", has_text="shop_order_action").click()
    await expect(page.get_by_label("the definition of shop_order_action", exact=True)).to_contain_text('"inputSchema"')
    await page.get_by_label("RESOLVE_ACTIONS", exact=True).fill("Order Pet Shop")
    await page.get_by_role("button", name="Resolve").click()
    await expect(page.locator("#attempt")).to_contain_text("order")
    await page.get_by_role("link", name="Connect a client").click()
    await expect(page.locator("main")).to_contain_text("/mcp/few")
