"""MCP endpoints, managed over HTTP."""

from __future__ import annotations

import httpx2
import pytest


async def test_a_server_is_made_changed_and_deleted(local: httpx2.AsyncClient) -> None:
    made = await local.post("/v1/servers", json={"id": "sales", "tools": ["yard:*", "!yard:fail"], "names": "bare"})
    assert (made.status_code, made.headers["location"]) == (201, "/v1/servers/sales")
    assert made.json() == {
        "id": "sales",
        "tools": ["yard:*", "!yard:fail"],
        "names": "bare",
        "agent_mode": False,
        "retrieve_skill": False,
        "skills": [],
        "title": None,
        "description": None,
        "auto_approve": True,
        "token_in_url": False,
        "url": "http://127.0.0.1:8420/mcp/sales",
        "tool_count": 7,
    }
    assert (await local.get("/v1/servers/sales")).json() == made.json()
    changed = (await local.patch("/v1/servers/sales", json={"tools": ["yard:echo"], "title": "Sales"})).json()
    assert changed == {**made.json(), "tools": ["yard:echo"], "title": "Sales", "tool_count": 1}
    back = (await local.patch("/v1/servers/sales", json={"title": None, "names": None})).json()
    assert (back["title"], back["names"]) == (None, "direct")
    call = {"arguments": {"text": "x"}, "server": "sales"}
    assert (await local.post("/v1/tools/yard:echo/call", json=call)).status_code == 200
    assert (await local.post("/v1/tools/yard:write/call", json=call)).status_code == 404
    assert [item["id"] for item in (await local.get("/v1/servers")).json()["items"]] == ["default", "sales"]
    assert (await local.delete("/v1/servers/sales")).status_code == 204
    assert (await local.get("/v1/servers/sales")).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/servers", {"id": "default"}, 409),
        ("POST", "/v1/servers", {"id": "Not An Id"}, 422),
        ("POST", "/v1/servers", {}, 422),
        ("POST", "/v1/servers", {"id": "a", "tool": ["*"]}, 422),
        ("POST", "/v1/servers", {"id": "a", "tools": "*"}, 422),
        ("POST", "/v1/servers", {"id": "a", "names": "short"}, 422),
        ("POST", "/v1/servers", [], 422),
        ("PATCH", "/v1/servers/default", {"id": "other"}, 422),
        ("PATCH", "/v1/servers/nosuch", {"title": "x"}, 404),
        ("DELETE", "/v1/servers/default", None, 409),
        ("DELETE", "/v1/servers/nosuch", None, 404),
    ],
)
async def test_a_change_that_cannot_be_is_refused(
    local: httpx2.AsyncClient, method: str, path: str, body: object, status: int
) -> None:
    before = (await local.get("/v1/servers")).json()
    answer = await local.request(method, path, json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert (await local.get("/v1/servers")).json() == before
