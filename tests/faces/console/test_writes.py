"""What the console changes, and who is kept from changing it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx2
import pytest

from tests.faces.console.page import Page
from tests.faces.http.client import client_of
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.core.call import CallRequest, Origin
from toolyard.core.principal import LOCAL_OPERATOR, Scope
from toolyard.faces.console import build

WRITES = [
    "/try/shop:order",
    "/try-form/shop:order",
    "/tool-settings/shop:order",
    "/delete-cluster/Shop",
    "/import",
    "/calls/call_x/cancel",
    "/providers",
    "/refresh-provider/shop",
    "/remove-provider/shop",
    "/keys",
    "/revoke-key/x",
    "/logout",
    "/theme",
]
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Kennel", "version": "1"},
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {"/dogs": {"get": {"operationId": "listDogs", "summary": "All dogs"}, "post": {"operationId": "addDog"}}},
}


@pytest.mark.parametrize("path", WRITES)
async def test_a_write_without_the_token_is_refused_and_changes_nothing(
    app: App, client: httpx2.AsyncClient, path: str
) -> None:
    before = app.catalog.snapshot
    for data in ({}, {"csrf": "wrong"}):
        response = await client.post(path, data={"name": "x", "scope": "admin", **data})
        assert response.status_code == 403, path
        assert "Reload the page" in Page.of(response).one("main").text
    assert app.catalog.snapshot is before
    assert await app.keys.list() == []


async def test_every_form_that_writes_sends_the_token(client: httpx2.AsyncClient) -> None:
    paths = ["/", "/tools", "/tools/shop:order", "/import", "/providers", "/keys", "/delete-cluster/Shop"]
    for path in paths:
        page = Page.of(await client.get(path))
        forms = [one for one in page.all("form") if one.attributes.get("method") == "post"]
        tokens = [one for one in page.all("input", name="csrf") if "form" in one.inside]
        assert forms, path
        assert len(tokens) == len(forms), path
        assert json.loads(page.one("body").attributes["hx-headers:inherited"]) == {"X-CSRF-Token": page.csrf}


async def test_another_sites_page_cannot_write_even_with_the_token(client: httpx2.AsyncClient, csrf: str) -> None:
    response = await client.post("/keys", data={"csrf": csrf, "name": "x"}, headers={"origin": "https://evil.example"})
    assert response.status_code == 403


@requirement("http.keys")
async def test_a_key_is_shown_once_works_and_can_be_revoked(app: App, client: httpx2.AsyncClient, csrf: str) -> None:
    data = {"csrf": csrf, "name": "ci", "scope": "call", "lifetime": "30"}
    made = await client.post("/keys", data=data)
    assert made.status_code == 201
    secret = re.findall(r"ty_[a-z2-7]{12}_[\w-]{43}", Page.of(made).one("main").text)[0]
    assert (await app.keys.verify(secret)).name == "ci"
    listed = await client.get("/keys")
    assert secret not in listed.text
    key = (await app.keys.list())[0]
    assert f"/revoke-key/{key.id}" in listed.text
    assert (await client.get(f"/revoke-key/{key.id}")).status_code == 200
    await client.post(f"/revoke-key/{key.id}", data={"csrf": csrf})
    assert (await app.keys.list())[0].revoked is not None


async def test_a_key_form_with_a_mistake_says_so_and_keeps_what_was_entered(
    client: httpx2.AsyncClient, csrf: str
) -> None:
    response = await client.post("/keys", data={"csrf": csrf, "name": "ci", "lifetime": "30"})
    assert response.status_code == 422
    page = Page.of(response)
    assert "A key needs at least one scope." in page.one("main").text
    assert page.one("input", name="name").attributes["value"] == "ci"


async def test_settings_of_a_tool_are_kept_and_shown(app: App, client: httpx2.AsyncClient, csrf: str) -> None:
    data = {"csrf": csrf, "time_limit": "2.5", "description": "Our words"}
    response = await client.post("/tool-settings/shop:order", data=data)
    assert response.headers["location"] == "/tools/shop:order?notice=saved"
    entry = app.catalog.snapshot.get("shop:order")
    assert entry is not None
    assert (entry.settings.enabled, entry.settings.time_limit, entry.description) == (False, 2.5, "Our words")
    page = Page.of(await client.get(response.headers["location"]))
    assert "switched this tool off" in page.one("main").text
    assert page.one("input", name="time_limit").attributes["value"] == "2.5"


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "1e9"])
async def test_a_time_limit_that_is_none_is_explained(
    app: App, client: httpx2.AsyncClient, csrf: str, text: str
) -> None:
    response = await client.post("/tool-settings/shop:order", data={"csrf": csrf, "enabled": "1", "time_limit": text})
    assert response.status_code == 422
    assert "is no time limit" in Page.of(response).one("main").text
    entry = app.catalog.snapshot.get("shop:order")
    assert entry is not None
    assert entry.settings.time_limit is None


@requirement("console.start")
@pytest.mark.parametrize("way", ["paste", "file"])
async def test_an_import_by_paste_or_file_shows_its_report_and_its_tools(
    app: App, client: httpx2.AsyncClient, csrf: str, way: str
) -> None:
    text = json.dumps(DOCUMENT)
    data = {"csrf": csrf, "way": way, "text": text if way == "paste" else "", "cluster": "Dogs", "base_url": ""}
    files = {"file": ("kennel.json", text.encode() if way == "file" else b"", "application/json")}
    response = await client.post("/import", data=data, files=files)
    assert response.status_code == 200
    page = Page.of(response)
    assert page.by_id("report-title").text.strip() == "2 tools imported"
    links = [link.attributes["href"] for link in page.all("a") if link.attributes["href"].startswith("/tools/dogs:")]
    assert sorted(links) == ["/tools/dogs:addDog", "/tools/dogs:listDogs"]
    assert app.catalog.snapshot.cluster("Dogs") is not None


@requirement("console.start")
async def test_an_import_by_htmx_streams_its_progress_and_then_the_report(
    client: httpx2.AsyncClient, csrf: str
) -> None:
    data = {"way": "paste", "text": json.dumps(DOCUMENT)}
    files = {"file": ("", b"", "application/octet-stream")}
    headers = {"hx-request": "true", "x-csrf-token": csrf}
    response = await client.post("/import", data=data, files=files, headers=headers)
    assert response.headers["content-type"].startswith("text/event-stream")
    messages = response.text.strip().split("\n\n")
    assert all(line.startswith("data: ") for message in messages for line in message.splitlines())
    assert "Reading the document" in messages[0]
    assert "2 tools imported" in messages[-1].replace("\ndata: ", "\n")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"way": "url", "url": ""}, "There is no address to import from."),
        ({"way": "url", "url": "file:///etc/passwd"}, "is no address of a document."),
        ({"way": "paste", "text": ""}, "There is no text to import."),
        ({"way": "file"}, "No file was chosen, or it is empty."),
        ({"way": "paste", "text": "not: an api"}, "Nothing was imported"),
        ({"way": "url", "url": "http://127.0.0.1:1/none.json"}, "Nothing was imported"),
    ],
)
async def test_an_import_that_cannot_be_done_says_why_and_keeps_the_form(
    client: httpx2.AsyncClient, csrf: str, data: dict[str, str], said: str
) -> None:
    response = await client.post("/import", data={"csrf": csrf, **data})
    assert response.status_code == 422
    page = Page.of(response)
    assert said in page.one("main").text
    assert page.one("input", name="url").attributes["value"] == data.get("url", "")


async def test_a_provider_is_added_by_command_and_removed(app: App, client: httpx2.AsyncClient, csrf: str) -> None:
    data = {
        "csrf": csrf,
        "id": "gone",
        "way": "command",
        "command": "/no/such/program --flag 'two words'",
        "env": "A=b=c",
    }
    response = await client.post("/providers", data=data)
    assert response.headers["location"] == "/providers?notice=provider-added"
    page = Page.of(await client.get("/providers"))
    assert "/no/such/program" in page.by_id("p-gone").text
    assert "Down" in page.by_id("p-gone").text
    assert (await client.post("/remove-provider/gone", data={"csrf": csrf})).status_code == 303
    assert app.supervisor.provider("gone") is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"id": "Bad Id", "url": "http://x/mcp"}, "cannot be a provider id"),
        ({"id": "x", "url": "ftp://x"}, "is no address of an MCP server"),
        ({"id": "x", "way": "command", "command": ""}, "There is no command"),
        ({"id": "x", "way": "command", "command": "a 'b"}, "The command cannot be read"),
        ({"id": "x", "url": "http://x/mcp", "headers": "hunter2"}, "Line 1 is not of the form Name: value"),
        ({"id": "shop", "url": "http://x/mcp"}, "There is a provider 'shop' already"),
    ],
)
async def test_a_provider_that_cannot_be_added_is_explained(
    client: httpx2.AsyncClient, csrf: str, data: dict[str, str], said: str
) -> None:
    response = await client.post("/providers", data={"csrf": csrf, "way": "url", **data})
    assert response.status_code == 422
    assert said in Page.of(response).one("main").text
    assert "hunter2" not in response.text


async def test_the_log_is_filtered_by_its_address_paged_and_exported(app: App, client: httpx2.AsyncClient) -> None:
    for number in range(60):
        arguments = {"pet": {"name": f"pet{number}"}, "size": "small"}
        await app.calls.invoke(CallRequest("shop:order", arguments, LOCAL_OPERATOR, Origin.CLI))
    await app.calls.invoke(CallRequest("shop:till", {}, LOCAL_OPERATOR, Origin.MCP))
    page = Page.of(await client.get("/calls?state=ERROR"))
    assert len([row for row in page.all("tr") if row.attributes.get("id", "").startswith("call_")]) == 1
    assert "State: ERROR" in page.one("main").text
    page = Page.of(await client.get("/calls?q=pet37"))
    assert len([row for row in page.all("tr") if "id" in row.attributes]) == 1
    first = Page.of(await client.get("/calls?tool=shop:order"))
    assert len([row for row in first.all("tr") if "id" in row.attributes]) == 50
    second = Page.of(await client.get(first.one("a", rel="next").attributes["href"]))
    assert len([row for row in second.all("tr") if "id" in row.attributes]) == 10
    assert not second.all("a", rel="next")
    exported = await client.get("/calls/export?format=jsonl&tool=shop:order")
    assert len(exported.text.splitlines()) == 60
    assert (await client.get("/calls/export?format=csv")).text.count("shop:till") >= 1
    assert (await client.get("/calls?state=WRONG")).status_code == 422


async def test_login_takes_a_link_once_and_every_write_needs_the_sessions_token(tmp_path: Path) -> None:
    async with App.running(Settings(data_dir=tmp_path / "closed")) as app:
        face = build(app)
        async with client_of(face) as client:
            refused = await client.get("/")
            assert refused.status_code == 401
            assert "toolyard login-link" in Page.of(refused).one("main").text
            link = await app.operators.new_link("http://127.0.0.1:8420")
            assert (await client.get(link)).status_code == 200
            assert (await client.get("/")).status_code == 401  # looking at the link does not use it up
            entered = await client.post(link, headers={"sec-fetch-site": "same-origin"})
            assert (entered.status_code, entered.headers["location"]) == (303, "/")
            cookie = entered.headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Lax" in cookie
            page = Page.of(await client.get("/keys"))
            assert "operator:operator" in page.one("header").text
            assert (await client.post("/keys", data={"name": "x", "scope": "call"})).status_code == 403
            data = {"csrf": page.csrf, "name": "x", "scope": "call", "lifetime": ""}
            assert (await client.post("/keys", data=data)).status_code == 201
            assert (await client.post(link)).status_code == 401
            out = await client.post("/logout", data={"csrf": page.csrf})
            assert "logged out" in Page.of(out).one("h1").text
            assert (await client.get("/")).status_code == 401


async def test_another_site_cannot_log_somebody_in(app: App, client: httpx2.AsyncClient) -> None:
    link = await app.operators.new_link("http://127.0.0.1:8420")
    assert (await client.post(link, headers={"sec-fetch-site": "cross-site"})).status_code == 403
    assert (await client.post(link)).status_code == 303


async def test_the_theme_is_remembered_and_leads_back_only_to_us(client: httpx2.AsyncClient, csrf: str) -> None:
    response = await client.post("/theme", data={"csrf": csrf, "theme": "dark", "back": "/calls"})
    assert response.headers["location"] == "/calls"
    assert Page.of(await client.get("/")).one("html").attributes["data-theme"] == "dark"
    for back in ("//evil.example", "/\\evil.example", "https://evil.example"):
        answer = await client.post("/theme", data={"csrf": csrf, "theme": "auto", "back": back})
        assert answer.headers["location"] == "/"


async def test_connect_shows_the_real_address_and_the_chosen_server(app: App, client: httpx2.AsyncClient) -> None:
    text = Page.of(await client.get("/connect")).one("main").text
    assert "http://127.0.0.1:8420/mcp" in text
    assert "YOUR_KEY" not in text  # demo mode needs none
    from toolyard.catalog import Server

    await app.save_server(Server("sales", tools=("shop:order",)))
    page = Page.of(await client.get("/connect?server=sales"))
    assert "http://127.0.0.1:8420/mcp/sales" in page.one("main").text
    assert "1 tool." in page.one("main").text
    assert [link.text for link in page.all("a", aria_current="true")] == ["sales"]


async def test_scopes_are_asked_for_before_a_body_is_read(app: App) -> None:
    _, secret = await app.keys.create("caller", [Scope.CALL])
    async with client_of(build(app), key=secret) as client:
        response = await client.post("/import", content=b"x" * 1000)
    assert response.status_code == 403
