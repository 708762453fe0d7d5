"""The console in a real Chromium: what a person does, with script and keyboard and a narrow dark screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.faces.console.browser import Tabs
from tests.faces.console.test_writes import DOCUMENT
from tests.faces.console.tools import Hostile, Shop
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.core.call import CallRequest, Origin
from toolyard.core.principal import LOCAL_OPERATOR
from toolyard.core.record import CallFilter
from toolyard.core.tool import Tool
from toolyard.faces.asgi import build
from toolyard.serving import listening_socket, serving

pytestmark = pytest.mark.browser

PAGES = [
    *("/", "/tools", "/tools?q=order", "/tools/shop:order", "/import", "/calls", "/providers", "/keys", "/connect"),
    *("/servers", "/servers/default", "/skills"),
]


async def test_the_front_page_leads_to_a_first_call(tabs: Tabs) -> None:
    page = await tabs.open("/")
    await page.get_by_role("link", name="Call a tool").click()
    await page.get_by_role("button", name="Call", exact=True).click()
    await expect(page.locator("#outcome")).to_contain_text("Complete")
    await page.get_by_role("link", name="Open in the log").click()
    await expect(page.get_by_role("heading", name="Output")).to_be_visible()


@requirement("console.start")
async def test_an_api_is_imported_by_paste_and_its_tools_are_found(tabs: Tabs) -> None:
    page = await tabs.open("/import")
    await page.get_by_text("I will paste it").click()
    await page.get_by_label("The whole document").fill(json.dumps(DOCUMENT))
    await page.get_by_label("Cluster name").fill("Kennel")
    await page.get_by_role("button", name="Import", exact=True).click()
    await expect(page.get_by_role("heading", name="2 tools imported")).to_be_visible()
    await page.get_by_role("link", name="Open the cluster").click()
    await page.get_by_label("Search tools").fill("all dogs")
    await expect(page.locator(".tool-rows li").first).to_contain_text("kennel:listDogs")
    assert "q=all+dogs" in page.url or "q=all%20dogs" in page.url


@requirement("console.start")
async def test_a_nested_call_is_filled_in_made_and_seen_live_by_somebody_else(tabs: Tabs, app: App) -> None:
    watcher = await tabs.open("/calls")
    await expect(watcher.get_by_text("No calls yet")).to_be_visible()
    page = await tabs.open("/tools/shop:order")
    await page.get_by_label("name").fill("Rex")
    await page.get_by_role("button", name="Add item").click()
    await page.get_by_label("tags 1").fill("good")
    await page.get_by_role("button", name="Add item").click()
    await page.get_by_label("tags 2").fill("dog")
    await page.get_by_label("size").select_option("large")
    await page.get_by_label("By phone").check()
    await page.locator("input[name$='/phone']").fill("12 34")
    await page.get_by_role("button", name="Call", exact=True).click()
    await expect(page.locator("#outcome")).to_contain_text("Complete")
    await expect(page.locator("#outcome pre")).to_contain_text('"phone": "12 34"')
    record = (await app.calls.page(CallFilter())).items[0]
    assert json.loads(record.arguments or "") == {
        "pet": {"name": "Rex", "tags": ["good", "dog"]},
        "size": "large",
        "contact": {"phone": "12 34"},
    }
    await expect(watcher.locator(f"#{record.id}")).to_contain_text("shop:order")


async def test_a_mistake_is_shown_at_its_field_and_the_rest_stays(tabs: Tabs) -> None:
    page = await tabs.open("/tools/shop:order")
    await page.get_by_label("name").fill("Rex")
    await page.get_by_label("age").fill("-3")
    await page.get_by_role("button", name="Call", exact=True).click()
    await expect(page.get_by_label("age")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_label("size")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_label("name")).to_have_value("Rex")
    await page.get_by_role("button", name="JSON", exact=True).click()
    await expect(page.get_by_label("Arguments JSON")).to_have_value(
        '{\n  "pet": {\n    "name": "Rex",\n    "age": -3\n  }\n}'
    )
    await page.get_by_role("button", name="Form", exact=True).click()
    await expect(page.get_by_label("age")).to_have_value("-3")


async def test_a_running_call_is_cancelled_from_the_form(tabs: Tabs, shop: Shop) -> None:
    page = await tabs.open("/tools/shop:slow")
    await page.get_by_role("button", name="Call", exact=True).click()
    await page.get_by_role("button", name="Cancel the call").click()
    await expect(page.locator("#outcome")).to_contain_text("cancelled")
    assert shop.cancelled.is_set()


@requirement("console.start")
async def test_everything_can_be_done_with_the_keyboard_alone(tabs: Tabs) -> None:
    page = await tabs.open("/tools")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("/")
    await expect(page.get_by_label("Search tools")).to_be_focused()
    await page.keyboard.type("order a pet")
    await page.wait_for_url("**q=order*a*pet*")  # the last of the searches, so that no list comes after this one
    await expect(page.locator(".tool-rows li").first).to_contain_text("shop:order")
    await page.keyboard.press("Escape")
    await expect(page.get_by_label("Search tools")).to_have_value("order a pet")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/tools/shop:order")
    await _tab_to(page, "name")
    await page.keyboard.type("Rex")
    await _tab_to(page, "size")
    await page.keyboard.type("s")
    await page.keyboard.press("Tab")
    await _tab_to(page, None, "Call")
    await page.keyboard.press("Enter")
    await expect(page.locator("#outcome")).to_contain_text("Complete")


async def test_a_list_that_is_searched_again_keeps_the_focus_on_its_row(tabs: Tabs) -> None:
    page = await tabs.open("/tools?q=order")
    await page.keyboard.press("j")
    row = page.get_by_role("link", name="shop:order").first
    await expect(row).to_be_focused()
    await row.evaluate("link => { link.dataset.old = 'yes' }")
    await page.evaluate("document.getElementById('q').dispatchEvent(new Event('change', {bubbles: true}))")
    await expect(page.locator("[data-old]")).to_have_count(0)
    await expect(row).to_be_focused()


async def _tab_to(page: Page, label: str | None, button: str | None = None) -> None:
    wanted = (
        page.get_by_label(label, exact=False).first if label else page.get_by_role("button", name=button, exact=True)
    )
    for _ in range(60):
        if await wanted.evaluate("element => element === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not lead to {label or button}")


@requirement("cluster.list-delete")
async def test_a_cluster_is_deleted_after_a_question(tabs: Tabs, app: App) -> None:
    page = await tabs.open("/tools")
    await page.get_by_role("link", name="Delete cluster Shop").click()
    await page.get_by_role("button", name="Delete 5 tools").click()
    await expect(page.get_by_role("status")).to_contain_text("The cluster and its tools are gone")
    assert app.catalog.snapshot.get("shop:order") is None


async def test_pages_fit_a_narrow_dark_screen_and_follow_the_colour_scheme(tabs: Tabs, app: App) -> None:
    arguments = {"pet": {"name": "W" * 300}, "size": "small"}
    outcome = await app.calls.invoke(CallRequest("shop:order", arguments, LOCAL_OPERATOR, Origin.CLI))
    page = await tabs.open("/", width=360, dark=True)
    for width in (360, 320):
        await page.set_viewport_size({"width": width, "height": 800})
        for path in [*PAGES, f"/calls/{outcome.call_id}", "/delete-cluster/Shop", "/cluster-policy/Shop"]:
            await page.goto(path)
            root = "document.documentElement"
            assert await page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") <= 0, (path, width)
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 21, 23)"
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("button", name="Colours: auto").click()
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("button", name="Colours: dark").click()
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(246, 246, 244)"


async def test_the_menu_works_on_a_narrow_screen(tabs: Tabs) -> None:
    page = await tabs.open("/", width=360)
    await expect(page.get_by_role("navigation", name="Main")).to_be_hidden()
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("link", name="Providers", exact=True).click()
    await expect(page.get_by_role("heading", name="Providers")).to_be_visible()


async def test_hostile_words_run_nothing(tabs: Tabs, app: App, hostile: Hostile) -> None:
    page = await tabs.open("/tools")
    await page.locator("a[href*='/tools/hostile']").click()
    await page.get_by_role("button", name="Call", exact=True).click()
    await expect(page.locator("#outcome")).to_contain_text("Complete")
    for path in ("/", "/calls", "/providers", "/connect"):
        await page.goto(path)
        assert await page.evaluate("window.owned") is None


async def test_the_console_works_without_script(tabs: Tabs) -> None:
    page = await tabs.open("/tools/shop:order", script=False)
    await page.get_by_label("name").fill("Rex")
    await page.get_by_role("button", name="Add item").click()
    await page.get_by_label("tags 1").fill("good")
    await page.get_by_label("size").select_option("small")
    await page.get_by_role("button", name="Call", exact=True).click()
    await expect(page.locator("#outcome")).to_contain_text("Complete")


async def test_a_large_cluster_is_loaded_when_it_is_opened_and_grows_on_demand(tabs: Tabs, app: App) -> None:
    app.catalog.publish("many", [Tool("many", f"tool{number:03}", "", cluster="Many") for number in range(160)])
    page = await tabs.open("/tools")
    many = page.locator("details", has_text="Many")
    await expect(many.locator("li")).to_have_count(0)
    await many.locator("summary").click()
    await expect(many.locator("li")).to_have_count(100)
    await page.get_by_text("Show 60 more of 60").click()
    await expect(many.locator("li")).to_have_count(160)


async def test_what_somebody_opened_stays_open_while_the_page_changes(tabs: Tabs, app: App) -> None:
    await app.calls.invoke(CallRequest("shop:till", {}, LOCAL_OPERATOR, Origin.CLI))
    page = await tabs.open("/")
    await page.get_by_text("The same as a table").click()
    stat = page.locator(".stats dd").first
    await expect(stat).to_have_text("1")
    await app.calls.invoke(CallRequest("shop:till", {}, LOCAL_OPERATOR, Origin.CLI))
    await expect(stat).to_have_text("2")
    assert await page.locator("#chart-table").get_attribute("open") is not None


async def test_a_page_finds_its_way_back_after_the_server_was_restarted(tmp_path: Path, browser: Browser) -> None:
    settings = Settings(data_dir=tmp_path / "yard", demo=True)
    with listening_socket("127.0.0.1", 0) as socket:
        port = socket.getsockname()[1]
        tabs = Tabs(browser, f"http://127.0.0.1:{port}", forgiving="net::ERR")
        async with App.running(settings) as app, serving(build(app), socket):
            page = await tabs.open("/calls")
            await expect(page.get_by_text("No calls yet")).to_be_visible()
            app.bus.close()
    with listening_socket("127.0.0.1", port) as socket:
        async with App.running(settings) as app, serving(build(app), socket):
            outcome = await app.calls.invoke(CallRequest("nobody:home", {}, LOCAL_OPERATOR, Origin.CLI))
            await expect(page.locator(f"#{outcome.call_id}")).to_be_visible()
            await tabs.close()


async def test_a_tab_complains_about_what_the_policy_refuses(app: App, browser: Browser) -> None:
    with listening_socket("127.0.0.1", 0) as socket:
        async with serving(build(app), socket):
            tabs = Tabs(browser, f"http://127.0.0.1:{socket.getsockname()[1]}")
            page = await tabs.open("/keys")
            inline = "document.body.append(Object.assign(document.createElement('script'), {text: 'window.x=1'}))"
            async with page.expect_console_message():
                await page.evaluate(inline)
            with pytest.raises(AssertionError, match="Content Security Policy"):
                await tabs.close()
