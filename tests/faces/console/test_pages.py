"""Every page: its status, landmarks, headers, and that nothing hostile becomes markup."""

from __future__ import annotations

import re

import httpx2
import pytest
from starlette.types import ASGIApp

from tests.faces.console.page import Page
from tests.faces.console.tools import SCRIPT, Hostile
from tests.faces.http.client import client_of
from tests.requirements import requirement
from toolyard.app import App
from toolyard.core.call import CallRequest, Origin
from toolyard.core.principal import LOCAL_OPERATOR, Scope

PAGES = ["/", "/tools", "/tools?q=order", "/tools/shop:order", "/import", "/calls", "/providers", "/keys", "/connect"]
CONFIRMATIONS = ["/delete-cluster/Shop", "/remove-provider/shop"]


@pytest.mark.parametrize("path", PAGES + CONFIRMATIONS)
async def test_a_page_has_landmarks_one_heading_a_title_and_labels(client: httpx2.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert response.status_code == 200
    page = Page.of(response)
    assert page.one("html").attributes["lang"] == "en"
    assert page.all("title")[0].text.endswith("· Toolyard")
    assert page.one("main").attributes["id"] == "main"
    assert page.one("nav", aria_label="Main")
    assert page.all("a", href="#main")[0].text == "Skip to content"
    assert len(page.all("h1")) == 1
    labels = {label.attributes.get("for") for label in page.all("label")}
    for element in page.elements:
        is_field = element.tag in ("input", "select", "textarea") and element.attributes.get("type") != "hidden"
        if is_field:
            assert element.attributes.get("id") in labels or "label" in element.inside, element.attributes
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in page.elements:
        for described in element.attributes.get("aria-describedby", "").split():
            assert described in ids
        for labelled in element.attributes.get("aria-labelledby", "").split():
            assert labelled in ids


@pytest.mark.parametrize("path", [*PAGES, "/nowhere", "/static/console.css", "/login/x"])
async def test_every_answer_carries_the_strict_policy(client: httpx2.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'self'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "object-src": "'none'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
    }
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", PAGES)
async def test_no_page_has_inline_script_or_style(client: httpx2.AsyncClient, path: str) -> None:
    page = Page.of(await client.get(path))
    assert all(script.attributes.get("src", "").startswith("/static/") for script in page.all("script"))
    assert not page.all("style")
    for element in page.elements:
        assert "style" not in element.attributes
        assert not [name for name in element.attributes if name.startswith(("on", "hx-on"))]


@pytest.mark.parametrize(
    ("path", "current"), [("/", "Overview"), ("/tools/shop:order", "Tools"), ("/calls", "Calls"), ("/keys", "Keys")]
)
async def test_the_menu_says_where_one_is(client: httpx2.AsyncClient, path: str, current: str) -> None:
    page = Page.of(await client.get(path))
    assert [link.text.strip() for link in page.all("a", aria_current="page")] == [current]


async def test_hostile_names_descriptions_and_results_stay_text(
    app: App, client: httpx2.AsyncClient, hostile: Hostile
) -> None:
    tool = next(entry for entry in app.catalog.snapshot.entries if entry.tool.namespace == hostile.id)
    words = next(iter(tool.tool.input_schema.root["properties"]))  # type: ignore[call-overload, arg-type]
    request = CallRequest(tool.id, {words: SCRIPT}, LOCAL_OPERATOR, Origin.CONSOLE)
    outcome = await app.calls.invoke(request)
    await app.calls.invoke(CallRequest("shop:till", {}, LOCAL_OPERATOR, Origin.CONSOLE))
    # Reading by the API gives a path that is quoted as the pages quote it.
    paths = ["/", "/tools", "/tools?q=tool", "/calls", f"/calls/{outcome.call_id}", "/providers", "/connect"]
    listed = Page.of(await client.get("/tools"))
    paths += sorted({link.attributes["href"] for link in listed.all("a") if "hostile:" in link.attributes["href"]})
    paths += [link.attributes["href"] for link in listed.all("a") if "/delete-cluster/" in link.attributes["href"]]
    assert len(paths) == 10
    for path in paths:
        response = await client.get(path)
        assert response.status_code == 200, path
        page = Page.of(response)
        assert all("src" in script.attributes for script in page.all("script")), path
        assert not [one for one in page.all("img") if "onerror" in one.attributes], path
        assert SCRIPT not in response.text, path


async def test_a_search_shows_hits_with_their_reason(client: httpx2.AsyncClient) -> None:
    page = Page.of(await client.get("/tools?q=order a pet"))
    first = next(element for element in page.elements if element.attributes.get("class") == "tool-reason")
    assert first.text.strip()
    assert "shop:order" in page.by_id("tools").text


@requirement("cluster.list-delete")
async def test_tools_are_listed_by_cluster_with_method_path_and_summary(client: httpx2.AsyncClient) -> None:
    page = Page.of(await client.get("/tools"))
    clusters = [element.text for element in page.all("summary")]
    assert [re.sub(r"\s+", " ", text).strip() for text in clusters] == [
        "Shop 5 tools · shop",
        "Ungrouped 1 tool · toolyard",
    ]
    row = next(link for link in page.all("a") if link.attributes.get("href") == "/tools/shop:order")
    assert [word for word in row.text.split("\n") if word.strip()] == [
        "    POST", "    /orders", "    Order a pet.", "    shop:order",
    ]  # fmt: skip


@requirement("cluster.list-delete")
async def test_deleting_a_cluster_asks_first_and_then_removes_all_its_tools(
    app: App, client: httpx2.AsyncClient, csrf: str
) -> None:
    asked = Page.of(await client.get("/delete-cluster/Shop"))
    assert "Delete 5 tools" in asked.one("main").text
    answer = await client.post("/delete-cluster/Shop", data={"csrf": csrf})
    assert (answer.status_code, answer.headers["location"]) == (303, "/tools?notice=cluster-deleted")
    assert "shop:order" not in (await client.get("/tools")).text
    assert app.catalog.snapshot.get("shop:order") is None
    assert (await client.get("/delete-cluster/Shop")).status_code == 404


async def test_a_tool_with_slashes_and_spaces_in_its_name_has_a_page(client: httpx2.AsyncClient) -> None:
    listed = Page.of(await client.get("/tools"))
    href = next(link.attributes["href"] for link in listed.all("a") if "odd" in link.attributes.get("href", ""))
    assert href == "/tools/shop:odd%2Fname%20with%20%C3%BCn%C3%AFcode"
    assert "Has an odd name." in Page.of(await client.get(href)).one("main").text


async def test_an_unknown_page_and_an_unknown_tool_are_explained(client: httpx2.AsyncClient) -> None:
    for path in ("/nowhere", "/tools/shop:none", "/calls/call_none", "/static/../site.py"):
        response = await client.get(path)
        assert response.status_code == 404, path
        assert Page.of(response).one("h1").text == "Nothing here"


async def test_a_mistake_of_ours_is_a_page_in_the_same_design(
    app: App, face: ASGIApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(since: float) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(app.calls, "per_minute", broken)
    transport = httpx2.ASGITransport(face, raise_app_exceptions=False, client=("127.0.0.1", 50000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420") as client:
        response = await client.get("/")
    assert response.status_code == 500
    assert Page.of(response).one("h1").text == "Something went wrong"
    assert "secret detail" not in response.text
    assert "content-security-policy" in response.headers


async def test_a_key_sees_only_the_pages_of_its_scopes(app: App, face: ASGIApp) -> None:
    _, secret = await app.keys.create("caller", [Scope.CALL])
    async with client_of(face, key=secret) as client:
        assert (await client.get("/tools")).status_code == 200
        refused = await client.get("/keys")
    assert refused.status_code == 403
    assert "admin" in Page.of(refused).one("main").text
