"""The queue while others decide: over its stream, and in real browsers."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect
from starlette.types import ASGIApp

from tests.faces.console.asking import CALLER, Kennel, asked, ended, set_to_ask
from tests.faces.console.browser import Tabs
from tests.faces.console.tools import SCRIPT
from tests.faces.http.client import streaming
from tests.requirements import requirement
from toolyard.app import App
from toolyard.core.call import CallRequest, CallState, Origin
from toolyard.core.principal import LOCAL_OPERATOR, Principal, PrincipalKind, Scope
from toolyard.faces.console.pages import approvals

ANNA = Principal(PrincipalKind.KEY, "k2", "anna", frozenset({Scope.APPROVE}))
REX = {"name": "Rex", "age": 3}


@pytest.fixture
async def kennel(app: App) -> Kennel:
    provider = Kennel()
    await app.supervisor.add_and_start(provider)
    await set_to_ask(app, "kennel:walk", "kennel:sell")
    return provider


async def test_a_request_appears_in_the_queue_and_says_by_whom_it_was_decided(
    app: App, face: ASGIApp, kennel: Kennel
) -> None:
    async with streaming(face, "/live/approvals") as stream:
        assert "Nothing waits for a decision." in await stream.until("\n\n")
        record = await asked(app, "kennel:walk", REX)
        await stream.until(f'id="wait-{record.id}"')
        await stream.until("1 call waits for a decision.")
        await app.approvals.decide(record.id, decision="reject", principal=ANNA)
        await stream.until(f'id="done-{record.id}"')
        await stream.until("Rejected by <strong>key:anna</strong>")


async def test_the_time_left_is_drawn_again_though_nothing_happens(
    app: App, face: ASGIApp, kennel: Kennel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "_REFRESH", 0.05)
    record = await asked(app, "kennel:walk", REX)
    async with streaming(face, "/live/approvals") as stream:
        first = await stream.until("\n\n")
        assert f'hx-target="#left-{record.id}"' in first
        assert "s left" in await stream.until("s left")


async def test_every_other_page_has_a_stream_for_the_number_in_its_menu(
    app: App, face: ASGIApp, kennel: Kennel
) -> None:
    async with streaming(face, "/live/inbox") as stream:
        await stream.until("\n\n")
        await asked(app, "kennel:walk", REX)
        await stream.until('class="count">1<')


@pytest.mark.browser
@requirement("approval.gate")
async def test_a_decision_in_one_browser_changes_the_card_in_another(tabs: Tabs, app: App, kennel: Kennel) -> None:
    mine, theirs = await tabs.open("/approvals"), await tabs.open("/approvals")
    await expect(theirs.get_by_text("Nothing waits for you")).to_be_visible()
    record = await asked(app, "kennel:walk", REX)
    for page in (mine, theirs):
        await expect(page.locator(f"#wait-{record.id}")).to_be_visible()
        await expect(page.locator("#inbox")).to_have_text("1 waiting")
    await mine.get_by_role("button", name="Approve", exact=True).click()
    for page in (mine, theirs):
        await expect(page.locator(f"#done-{record.id}")).to_contain_text("Approved by you")
        await expect(page.locator("#inbox")).to_have_text("")
    assert (await ended(app, record)).state is CallState.COMPLETE


@pytest.mark.browser
async def test_who_decides_a_moment_too_late_sees_by_whom_it_was_decided(tabs: Tabs, app: App, kennel: Kennel) -> None:
    record = await asked(app, "kennel:walk", REX)
    page = await tabs.open(f"/approvals/{record.id}")
    await page.route("**/live/**", lambda route: route.abort())
    await page.evaluate("document.querySelectorAll('[hx-sse\\\\:connect]').forEach(e => e.remove())")
    await app.approvals.decide(record.id, decision="reject", principal=ANNA, reason="Not today.")
    await page.get_by_role("button", name="Approve", exact=True).click()
    await expect(page.locator(f"#done-{record.id}")).to_contain_text("Rejected by key:anna")
    await expect(page.locator("blockquote")).to_have_text("Not today.")


@pytest.mark.browser
@requirement("approval.gate")
async def test_requests_are_decided_with_the_keyboard_alone(tabs: Tabs, app: App, kennel: Kennel) -> None:
    first = await asked(app, "kennel:walk", {"name": "Rex"})
    second = await asked(app, "kennel:sell", {"name": "Max"})
    third = await asked(app, "kennel:walk", {"name": "Bob"})
    page = await tabs.open("/approvals")
    await page.keyboard.press("a")
    await expect(page.locator("[data-card]")).to_have_count(3)
    await page.keyboard.press("j")
    await expect(page.locator(f"#wait-{first.id}")).to_be_focused()
    outline = "element => getComputedStyle(element).outlineStyle"
    assert await page.locator(f"#wait-{first.id}").evaluate(outline) != "none"
    await page.keyboard.press("a")
    await expect(page.locator(f"#done-{first.id}")).to_be_focused()
    await page.keyboard.press("j")
    await page.keyboard.press("a")
    await expect(page.get_by_role("button", name="Yes, approve")).to_be_focused()
    assert not (await app.approvals.get(second.id)).is_decided
    await page.keyboard.press("Enter")
    await expect(page.locator(f"#done-{second.id}")).to_be_focused()
    await page.keyboard.press("j")
    await page.keyboard.press("r")
    await page.keyboard.type("Take Rex instead.")
    await page.keyboard.press("Enter")
    await expect(page.locator(f"#done-{third.id}")).to_contain_text("Take Rex instead.")
    states = [(await ended(app, record)).state for record in (first, second, third)]
    assert states == [CallState.COMPLETE, CallState.COMPLETE, CallState.ERROR]


@pytest.mark.browser
async def test_what_somebody_types_stays_while_the_queue_changes_around_it(
    tabs: Tabs, app: App, kennel: Kennel
) -> None:
    record = await asked(app, "kennel:walk", REX)
    page = await tabs.open("/approvals")
    card = page.locator(f"#wait-{record.id}")
    await card.get_by_text("Reject …").click()
    await card.get_by_label("Reason").fill("Because I")
    other = await asked(app, "kennel:walk", {"name": "Max"})
    await expect(page.locator(f"#wait-{other.id}")).to_be_visible()
    await expect(page.get_by_role("status")).to_have_text("2 calls wait for a decision.")
    await expect(card.get_by_label("Reason")).to_have_value("Because I")
    await expect(card.get_by_label("Reason")).to_be_focused()


@pytest.mark.browser
@requirement("approval.edit")
async def test_a_call_is_approved_with_other_arguments(tabs: Tabs, app: App, kennel: Kennel) -> None:
    record = await asked(app, "kennel:walk", REX)
    page = await tabs.open("/approvals")
    await page.keyboard.press("j")
    await page.keyboard.press("e")
    await expect(page.get_by_label("name")).to_have_value("Rex")
    await page.get_by_label("age").fill("-1")
    await page.get_by_role("button", name="Approve", exact=True).click()
    await expect(page.get_by_label("age")).to_have_attribute("aria-invalid", "true")
    await page.get_by_label("age").fill("7")
    await expect(page.locator("#changes ins")).to_have_text("7")
    await page.get_by_role("button", name="Approve", exact=True).click()
    await expect(page.get_by_role("status").first).to_contain_text("Approved with your arguments")
    await ended(app, record)
    assert kennel.ran == [{"name": "Rex", "age": 7}]


@pytest.mark.browser
async def test_deciding_works_without_script(tabs: Tabs, app: App, kennel: Kennel) -> None:
    record = await asked(app, "kennel:sell", REX)
    page = await tabs.open("/approvals", script=False)
    await page.get_by_role("button", name="Approve").click()
    await page.get_by_role("button", name="Yes, approve").click()
    await expect(page.get_by_text("Approved. The call goes on.")).to_be_visible()
    assert (await ended(app, record)).state is CallState.COMPLETE


@pytest.mark.browser
async def test_a_call_from_a_tools_page_waits_there_and_goes_on_when_it_is_approved(
    tabs: Tabs, app: App, kennel: Kennel
) -> None:
    page = await tabs.open("/tools/kennel:walk")
    await page.get_by_label("name").fill("Rex")
    await page.get_by_role("button", name="Call", exact=True).click()
    await page.get_by_role("link", name="Open the request").click()
    await expect(page.get_by_role("heading", name="A call waits for a decision")).to_be_visible()
    waiting = (await app.approvals.page("pending", limit=1, cursor=None)).items[0]
    log = await tabs.open(f"/calls/{waiting.call_id}")
    await expect(log.get_by_text("Waits for a decision")).to_be_visible()
    await app.approvals.decide(waiting.id, decision="approve", principal=ANNA)
    await expect(log.get_by_text("Approved by key:anna")).to_be_visible()
    await expect(log.locator("#call")).to_contain_text('"ran"')


@pytest.mark.browser
async def test_the_queue_fits_a_narrow_dark_screen(tabs: Tabs, app: App, kennel: Kennel) -> None:
    waiting = await asked(app, "kennel:sell", {"name": "W" * 400})
    decided = await asked(app, "kennel:walk", {"name": f"{SCRIPT}{'x' * 300}"})
    await app.approvals.decide(decided.id, decision="reject", principal=LOCAL_OPERATOR, reason="V" * 300)
    page = await tabs.open("/approvals", width=360, dark=True)
    for width in (360, 320):
        await page.set_viewport_size({"width": width, "height": 800})
        for path in ("", f"/{waiting.id}", f"/{waiting.id}/edit", "/history", f"/{decided.id}"):
            await page.goto(f"/approvals{path}")
            assert await _sideways(page) <= 0, (path, width)
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 21, 23)"
    assert await page.evaluate("window.owned") is None


async def _sideways(page: Page) -> int:
    root = "document.documentElement"
    return await page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")


async def test_calls_that_no_policy_asks_about_are_not_held_up(app: App, kennel: Kennel) -> None:
    outcome = await app.calls.invoke(
        CallRequest("shop:order", {"pet": {"name": "Rex"}, "size": "small"}, CALLER, Origin.HTTP)
    )
    assert outcome.state is CallState.COMPLETE
    assert (await app.approvals.page("pending", limit=1, cursor=None)).items == ()
