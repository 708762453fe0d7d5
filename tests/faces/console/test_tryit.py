"""The try-it form over HTTP: drawn from the schema, posted as a browser posts it, called by the one call path."""

from __future__ import annotations

import asyncio
import json

import httpx2

from tests.faces.console.page import Page
from tests.faces.console.tools import Shop
from tests.requirements import requirement
from toolyard.app import App
from toolyard.core.call import CallRequest, Origin
from toolyard.core.principal import LOCAL_OPERATOR
from toolyard.core.record import CallFilter

HTMX = {"hx-request": "true"}
FULL = {"pet": {"name": "Rex", "age": 3, "tags": ["a", "b & <c>"]}, "size": "large", "contact": {"phone": "12"}}


def fill(pairs: list[tuple[str, str]], **values: str) -> list[tuple[str, str]]:
    """With the fields (`/pet/name`) set that the keywords name (`pet__name`)."""
    named = {f"v/{key.replace('__', '/')}": value for key, value in values.items()}
    return [(name, named.get(name, text)) for name, text in pairs]


def body(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, text in pairs:
        found.setdefault(name, []).append(text)
    return found


@requirement("console.start")
async def test_arguments_come_back_through_the_drawn_form_unchanged(app: App, client: httpx2.AsyncClient) -> None:
    first = await app.calls.invoke(CallRequest("shop:order", FULL, LOCAL_OPERATOR, Origin.CLI))
    page = Page.of(await client.get(f"/tools/shop:order?from={first.call_id}"))
    response = await client.post("/try/shop:order", data=body(page.fields("/try/shop:order")))
    assert response.status_code == 200
    record = (await app.calls.page(CallFilter(origin=Origin.CONSOLE))).items[0]
    assert json.loads(record.arguments or "") == FULL
    assert (record.tool, record.state, record.principal) == ("shop:order", "COMPLETE", "local:local")
    shown = Page.of(response).by_id("outcome").text
    assert '"ordered"' in shown
    assert f"/calls/{record.id}" in response.text


@requirement("console.start")
async def test_the_form_and_json_switch_keeps_the_values(client: httpx2.AsyncClient) -> None:
    page = Page.of(await client.get("/tools/shop:order"))
    pairs = fill(page.fields("/try/shop:order"), pet__name="Rex", pet__age="not a number", size='"small"')
    as_json = Page.of(await client.post("/try-form/shop:order", data=body([*pairs, ("op", "to-json")]), headers=HTMX))
    text = as_json.by_id("json-all").text
    assert json.loads(text) == {"pet": {"name": "Rex", "age": "not a number"}, "size": "small"}
    back = as_json.fields("/try/shop:order")
    as_form = Page.of(await client.post("/try-form/shop:order", data=body([*back, ("op", "to-form")]), headers=HTMX))
    again = dict(as_form.fields("/try/shop:order"))
    # What no field can show is shown as JSON at its place.
    assert (again["v/pet/name"], again["json/pet/age"], again["v/size"]) == ("Rex", '"not a number"', '"small"')


async def test_broken_json_stays_as_typed_and_is_explained(client: httpx2.AsyncClient, csrf: str) -> None:
    data = {"csrf": csrf, "mode": "json", "json-all": '{"pet": ', "op": "to-form"}
    page = Page.of(await client.post("/try-form/shop:order", data=data, headers=HTMX))
    assert page.by_id("json-all").text.strip() == '{"pet":'
    assert "This is not JSON" in page.by_id("json-all-mistake").text


async def test_problems_are_told_at_their_fields_and_the_refused_call_is_on_record(
    app: App, client: httpx2.AsyncClient
) -> None:
    page = Page.of(await client.get("/tools/shop:order"))
    pairs = fill(page.fields("/try/shop:order"), pet__age="-1")
    answer = Page.of(await client.post("/try/shop:order", data=body(pairs), headers=HTMX))
    name = answer.one("input", name="v/pet/name")
    assert name.attributes["aria-invalid"] == "true"
    mistake = name.attributes["aria-describedby"].split()[-1]
    assert answer.by_id(mistake).text.strip() == "This is required."
    age = answer.one("input", name="v/pet/age")
    assert "minimum" in answer.by_id(age.attributes["aria-describedby"].split()[-1]).text
    assert answer.one("select", name="v/size").attributes["aria-invalid"] == "true"
    assert "invalid_arguments" in answer.by_id("outcome").text
    assert (await app.calls.page(CallFilter())).items[0].error_code == "invalid_arguments"


async def test_what_cannot_be_read_is_told_before_any_call(app: App, client: httpx2.AsyncClient) -> None:
    page = Page.of(await client.get("/tools/shop:order"))
    pairs = fill(page.fields("/try/shop:order"), pet__age="three")
    answer = Page.of(await client.post("/try/shop:order", data=body(pairs), headers=HTMX))
    field = answer.one("input", name="v/pet/age")
    assert field.attributes["value"] == "three"
    assert "Enter a whole number" in answer.by_id(field.attributes["aria-describedby"].split()[-1]).text
    assert (await app.calls.page(CallFilter())).items == ()


async def test_rows_and_variants_are_drawn_again_on_the_server(client: httpx2.AsyncClient) -> None:
    page = Page.of(await client.get("/tools/shop:order"))
    pairs = fill(page.fields("/try/shop:order"), pet__name="Rex")
    added = Page.of(
        await client.post("/try-form/shop:order", data=body([*pairs, ("op", "add/pet/tags")]), headers=HTMX)
    )
    assert added.one("input", name="v/pet/tags/0")
    pairs = [pair for pair in added.fields("/try/shop:order") if pair[0] != "pick/contact"]
    picked = await client.post(
        "/try-form/shop:order", data=body([*pairs, ("pick/contact", "1"), ("op", "pick")]), headers=HTMX
    )
    fields = dict(Page.of(picked).fields("/try/shop:order"))
    assert fields["v/pet/name"] == "Rex"
    assert "v/contact/~o1/phone" in fields
    assert "v/contact/~o0/email" not in fields


async def test_without_script_the_same_forms_give_whole_pages(client: httpx2.AsyncClient) -> None:
    page = Page.of(await client.get("/tools/shop:order"))
    pairs = page.fields("/try/shop:order")
    answer = Page.of(await client.post("/try-form/shop:order", data=body([*pairs, ("op", "add/pet/tags")])))
    assert answer.one("h1").text == "shop:order"
    assert answer.one("input", name="v/pet/tags/0")


async def test_a_long_call_is_shown_running_and_its_result_can_be_waited_for(
    client: httpx2.AsyncClient, csrf: str, shop: Shop
) -> None:
    answer = Page.of(await client.post("/try/shop:slow", data={"csrf": csrf}, headers=HTMX))
    outcome = answer.by_id("outcome")
    assert "The call is running" in outcome.text
    waiting = asyncio.create_task(client.get(outcome.attributes["hx-get"]))
    shop.let_go.set()
    async with asyncio.timeout(5):
        assert "done at last" in Page.of(await waiting).by_id("outcome").text


async def test_a_running_call_can_be_cancelled_from_its_page(
    app: App, client: httpx2.AsyncClient, csrf: str, shop: Shop
) -> None:
    call_id = app.calls.start(CallRequest("shop:slow", {}, LOCAL_OPERATOR, Origin.CONSOLE))
    async with asyncio.timeout(5):
        await shop.began.wait()
        page = Page.of(await client.get(f"/calls/{call_id}"))
        assert page.one("form", action=f"/calls/{call_id}/cancel")
        await client.post(f"/calls/{call_id}/cancel", data={"csrf": csrf})
        await shop.cancelled.wait()
    assert "cancelled" in Page.of(await client.get(f"/calls/{call_id}")).one("main").text


async def test_images_are_shown_by_their_address_on_this_server(client: httpx2.AsyncClient, csrf: str) -> None:
    answer = Page.of(await client.post("/try/shop:picture", data={"csrf": csrf}, headers=HTMX))
    image = answer.one("img", loading="lazy")
    assert image.attributes["src"].startswith("/blobs/")


async def test_whole_inputs_and_outputs_are_served_as_json(app: App, client: httpx2.AsyncClient) -> None:
    outcome = await app.calls.invoke(CallRequest("shop:order", FULL, LOCAL_OPERATOR, Origin.CLI))
    given = await client.get(f"/calls/{outcome.call_id}/input")
    assert given.json() == FULL
    output = await client.get(f"/calls/{outcome.call_id}/output")
    assert output.headers["content-type"] == "application/json"
    assert output.json()["structuredContent"] == {"ordered": FULL}
    assert (await client.get(f"/calls/{outcome.call_id}/other")).status_code == 404
