"""Providers, managed over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.faces.http.conftest import Clients
from tests.providers.fakes import FakeProvider
from toolyard.app import App
from toolyard.core.principal import Scope

NOBODY_THERE = "http://127.0.0.1:9/mcp"
CRM: dict[str, Any] = {
    "id": "crm",
    "kind": "mcp",
    "url": NOBODY_THERE,
    "headers": {"X-Key": "secret-1"},
    "start_timeout": 2,
}


async def test_providers_are_listed_with_how_they_are(local: httpx2.AsyncClient) -> None:
    listed = (await local.get("/v1/providers")).json()["items"]
    yard = next(item for item in listed if item["id"] == "yard")
    assert (yard["kind"], yard["state"], yard["tool_count"], yard["address"]) == ("python", "up", 8, "in the tests")
    assert (await local.get("/v1/providers/yard")).json() == yard
    assert [item["id"] for item in (await local.get("/v1/providers?limit=1")).json()["items"]] == ["toolyard"]


async def test_a_provider_that_does_not_answer_is_kept_and_shown_as_down(local: httpx2.AsyncClient) -> None:
    made = await local.post("/v1/providers", json=CRM)
    assert (made.status_code, made.headers["location"]) == (201, "/v1/providers/crm")
    shown = (await local.get("/v1/providers/crm")).json()
    assert (shown["state"], shown["tool_count"]) == ("down", 0)
    assert shown["last_error"]
    assert shown["config"] == {**CRM, "headers": {"X-Key": "***"}}
    refreshed = await local.post("/v1/providers/crm/refresh")
    assert (refreshed.status_code, refreshed.json()["code"]) == (502, "upstream")
    assert (await local.delete("/v1/providers/crm")).status_code == 204
    assert (await local.get("/v1/providers/crm")).status_code == 404


async def test_tools_that_were_left_out_are_listed_with_the_reason(local: httpx2.AsyncClient, app: App) -> None:
    odd = FakeProvider("odd", "fine", "fine", "not\x00text")
    await app.supervisor.add_and_start(odd)

    shown = (await local.get("/v1/providers/odd")).json()

    assert [tool["id"] for tool in (await local.get("/v1/tools?provider=odd")).json()["items"]] == ["odd:fine"]
    assert len(shown["skipped"]) == 2, shown["skipped"]
    assert "'fine'" in shown["skipped"][0]
    assert "\\u0000" in shown["skipped"][1]


async def test_a_refresh_asks_for_the_tools_again(local: httpx2.AsyncClient) -> None:
    answer = await local.post("/v1/providers/yard/refresh")
    assert (answer.status_code, answer.json()["state"]) == (200, "up")


async def test_a_change_keeps_what_it_does_not_name_and_never_shows_a_secret(local: httpx2.AsyncClient) -> None:
    await local.post("/v1/providers", json=CRM)
    changed = await local.patch("/v1/providers/crm", json={"timeout": 5, "headers": {"X-Key": "***", "X-New": "two"}})
    assert changed.status_code == 200, changed.text
    assert changed.json()["config"] == {**CRM, "timeout": 5, "headers": {"X-Key": "***", "X-New": "***"}}


async def test_a_kept_secret_does_not_travel_to_another_address(local: httpx2.AsyncClient) -> None:
    await local.post("/v1/providers", json=CRM)
    elsewhere = "http://127.0.0.1:10/mcp"
    for body in ({"url": elsewhere}, {"url": elsewhere, "headers": {"X-Key": "***"}}):
        refused = await local.patch("/v1/providers/crm", json=body)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/url")
        assert "headers" in refused.json()["error"] or "X-Key" in refused.json()["error"]
    assert (await local.get("/v1/providers/crm")).json()["config"]["url"] == NOBODY_THERE
    given_anew = await local.patch("/v1/providers/crm", json={"url": elsewhere, "headers": {"X-Key": "secret-2"}})
    assert (given_anew.status_code, given_anew.json()["config"]["url"]) == (200, elsewhere)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/providers", {}, 422),
        ("POST", "/v1/providers", {"id": "a", "kind": "nope"}, 422),
        ("POST", "/v1/providers", {"id": "a", "kind": "mcp", "urll": NOBODY_THERE}, 422),
        ("POST", "/v1/providers", {"id": "yard", "kind": "mcp", "url": NOBODY_THERE}, 409),
        ("POST", "/v1/providers", {"id": "toolyard", "kind": "mcp", "url": NOBODY_THERE}, 409),
        ("PATCH", "/v1/providers/nosuch", {"timeout": 5}, 404),
        ("PATCH", "/v1/providers/toolyard", {"timeout": 5}, 422),
        ("DELETE", "/v1/providers/nosuch", None, 404),
        ("DELETE", "/v1/providers/toolyard", None, 409),
        ("POST", "/v1/providers/nosuch/refresh", None, 404),
    ],
)
async def test_a_change_that_cannot_be_is_refused(
    local: httpx2.AsyncClient, method: str, path: str, body: object, status: int
) -> None:
    before = [item["id"] for item in (await local.get("/v1/providers")).json()["items"]]
    answer = await local.request(method, path, json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert [item["id"] for item in (await local.get("/v1/providers")).json()["items"]] == before


async def test_an_id_and_a_kind_are_for_good(local: httpx2.AsyncClient) -> None:
    await local.post("/v1/providers", json=CRM)
    for body, pointer in (({"id": "other"}, "/id"), ({"kind": "openapi"}, "/kind")):
        refused = await local.patch("/v1/providers/crm", json=body)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, pointer)


@pytest.mark.parametrize(
    "body",
    [
        {"id": "p", "kind": "mcp", "command": ["/bin/true"]},
        {"id": "p", "kind": "python", "module": "os"},
        {"id": "p", "kind": "openapi", "url": "/etc/passwd"},
    ],
)
async def test_running_programs_and_reading_files_needs_an_admin(clients: Clients, body: dict[str, Any]) -> None:
    manager = await clients.with_scopes(Scope.MANAGE)
    refused = await manager.post("/v1/providers", json=body)
    assert (refused.status_code, "'admin'" in refused.json()["error"]) == (403, True)
    assert (await manager.get("/v1/providers/p")).status_code == 404
