"""Keys over HTTP, and what happens without one."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from tests.faces.http.client import BASE, client_of
from tests.faces.http.conftest import Clients
from tests.faces.http.tools import YardTools
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.core.principal import Scope
from toolyard.faces.http import build
from toolyard.identity.cookies import cookie_name


@requirement("http.keys")
async def test_the_life_of_a_key(local: httpx2.AsyncClient, app: App) -> None:
    expires = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    made = await local.post("/v1/keys", json={"name": "ci", "scopes": ["call", "read"], "expires": expires})
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    body = made.json()
    key = body.pop("key")
    assert made.headers["location"] == f"/v1/keys/{body['id']}"
    shown = (await local.get(f"/v1/keys/{body['id']}")).json()
    assert shown == body
    assert (shown["live"], shown["last_used"], shown["revoked"]) == (True, None, None)

    async with client_of(build(app), key=key) as holder:
        assert (await holder.get("/v1/tools")).status_code == 200
        refused = await holder.get("/v1/keys")
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        await app.store.flush()
        listed = (await local.get("/v1/keys")).json()["items"]
        assert [item["id"] for item in listed] == [body["id"]]
        assert listed[0]["last_used"] is not None
        revoked = await local.delete(f"/v1/keys/{body['id']}")
        assert (revoked.status_code, revoked.json()["live"]) == (200, False)
        gone = await holder.get("/v1/tools")
        assert (gone.status_code, gone.json()["code"]) == (401, "unauthenticated")
        assert gone.headers["www-authenticate"] == 'Bearer realm="toolyard"'


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({}, 422, "/name"),
        ({"name": "ci", "scopes": []}, 422, "/scopes"),
        ({"name": "ci", "scopes": ["everything"]}, 422, "/scopes/0"),
        ({"name": " ci", "scopes": ["call"]}, 422, "/name"),
        ({"name": "ci", "scope": ["call"]}, 422, "/scope"),
        ({"name": "ci", "scopes": ["call"], "expires": "2020-01-01T00:00:00Z"}, 422, "/expires"),
        ({"name": "ci", "scopes": ["call"], "expires": "2099-01-01T00:00:00"}, 422, "/expires"),
        ({"name": "ci", "scopes": ["call"], "expires": "soon"}, 422, "/expires"),
    ],
)
async def test_a_key_that_makes_no_sense_is_not_made(
    local: httpx2.AsyncClient, body: object, status: int, pointer: str
) -> None:
    answer = await local.post("/v1/keys", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (status, pointer), answer.text
    assert (await local.get("/v1/keys")).json()["items"] == []


async def test_a_name_that_is_taken_and_a_key_that_is_not_there(local: httpx2.AsyncClient) -> None:
    await local.post("/v1/keys", json={"name": "ci", "scopes": ["call"]})
    assert (await local.post("/v1/keys", json={"name": "ci", "scopes": ["call"]})).status_code == 409
    assert (await local.delete("/v1/keys/nosuch")).status_code == 404
    assert (await local.get("/v1/keys/nosuch")).status_code == 404


async def test_keys_are_paged_newest_first(local: httpx2.AsyncClient) -> None:
    for number in range(5):
        await local.post("/v1/keys", json={"name": f"k{number}", "scopes": ["call"]})
    first = (await local.get("/v1/keys?limit=3")).json()
    second = (await local.get(f"/v1/keys?limit=3&cursor={first['next_cursor']}")).json()
    assert [item["name"] for item in first["items"] + second["items"]] == ["k4", "k3", "k2", "k1", "k0"]
    assert second["next_cursor"] is None


@requirement("http.keys")
async def test_without_demo_mode_every_part_needs_a_key(tmp_path: Path, tools: YardTools) -> None:
    async with App.running(Settings(data_dir=tmp_path / "closed")) as app, client_of(build(app)) as nobody:
        await app.supervisor.add_and_start(tools)
        document = (await _with_key(app, Scope.READ)).get("/openapi.json")
        paths = (await document).json()["paths"]
        asked = 0
        for path, operations in paths.items():
            for method in operations:
                answer = await nobody.request(method, path.replace("{", "").replace("}", ""))
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), (method, path)
                asked += 1
        for path in ("/docs", "/openapi.json", "/metrics", "/v1/nosuch", "/api/tools", f"/blobs/{'x' * 10}"):
            assert (await nobody.get(path)).status_code == 401, path
        assert asked > 20
        assert (await nobody.get("/healthz")).json() == {"status": "ok"}
        assert (await nobody.get("/readyz")).json() == {"status": "ready"}
        assert tools.ran == []


async def _with_key(app: App, *scopes: Scope) -> httpx2.AsyncClient:
    _, key = await app.keys.create("-".join(scopes), scopes)
    return client_of(build(app), key=key)


@requirement("http.keys")
async def test_an_operator_logs_in_by_link_and_changes_things_with_the_csrf_token(tmp_path: Path) -> None:
    async with App.running(Settings(data_dir=tmp_path / "closed")) as app, client_of(build(app)) as browser:
        link = await app.operators.first_link(BASE)
        assert link is not None
        session = await app.operators.redeem(link.rpartition("/")[2])
        browser.headers["cookie"] = f"{cookie_name(BASE)}={session.cookie}"
        assert (await browser.get("/v1/keys")).status_code == 200
        body = {"name": "ci", "scopes": ["call"]}
        forged = await browser.post("/v1/keys", json=body)
        assert (forged.status_code, "CSRF" in forged.json()["error"]) == (403, True)
        made = await browser.post("/v1/keys", json=body, headers={"x-csrf-token": session.csrf})
        assert made.status_code == 201
        await app.operators.logout(session.cookie)
        assert (await browser.get("/v1/keys")).status_code == 401


async def test_an_admin_makes_a_login_link_for_another_operator(local: httpx2.AsyncClient, app: App) -> None:
    made = await local.post("/v1/login-links")
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    base, _, token = made.json()["url"].rpartition("/login/")
    assert base == BASE
    session = await app.operators.redeem(token)
    assert await app.operators.session(session.cookie) == session


async def test_every_operation_refuses_a_key_without_its_scope(
    local: httpx2.AsyncClient, clients: Clients, tools: YardTools
) -> None:
    """By the API's own document: each operation names its scopes, and a key with all the others does not do."""
    document = (await local.get("/openapi.json")).json()
    asked = 0
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            others = set(Scope) - {Scope.ADMIN} - set(operation["x-scopes"])
            if not others:
                continue
            client = await clients.with_scopes(*others, name=f"{method} {path}"[:64])
            body = {"name": "x", "scopes": ["call"]} if path.endswith("/keys") else {}
            sent = body if "requestBody" in operation else None
            answer = await client.request(method, path.replace("{", "").replace("}", ""), json=sent)
            assert answer.status_code == 403, (method, path, answer.text)
            asked += 1
    assert asked > 15
    assert tools.ran == []


async def test_no_secret_is_ever_shown_or_logged(
    local: httpx2.AsyncClient, clients: Clients, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    holder = await clients.with_scopes(Scope.ADMIN, name="holder")
    key = clients.keys[0]
    canary = "canary-4711-secret"
    await local.post(
        "/v1/providers",
        json={"id": "crm", "kind": "mcp", "url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": canary}},
    )
    texts = list[str]()
    for path in ("/v1/keys", "/v1/providers", "/v1/providers/crm", "/v1/calls", "/metrics", "/readyz", "/v1/tools"):
        texts.append((await holder.get(path)).text)
    texts.append((await holder.get("/v1/calls", headers={"accept": "application/jsonl"})).text)
    texts.append((await holder.patch("/v1/providers/crm", json={"url": "http://127.0.0.1:10/mcp"})).text)
    texts.append((await client_of(build(app), key=key + "x").get("/v1/keys")).text)
    texts.append(caplog.text)
    everything = json.dumps(texts)
    assert '"***' in texts[2]
    assert canary not in everything
    assert key.rpartition("_")[2] not in everything
