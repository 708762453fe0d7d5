"""Tools over HTTP: listed, searched, overridden, called."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from tests.faces.http.conftest import Clients
from tests.faces.http.tools import YardTools
from tests.requirements import requirement
from toolyard.app import App
from toolyard.core.approval import AutoApprove
from toolyard.core.call import CallRequest, Origin
from toolyard.core.principal import LOCAL_OPERATOR, Scope
from toolyard.core.tool import Tool

ODD = "yard:odd/name with ünïcode/call"
ODD_PATH = "/v1/tools/yard%3Aodd%2Fname%20with%20%C3%BCn%C3%AFcode%2Fcall"


async def ids(client: httpx2.AsyncClient, path: str) -> list[str]:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


async def test_a_tool_is_shown_with_schema_annotations_availability_and_policy(local: httpx2.AsyncClient) -> None:
    answer = await local.get("/v1/tools/yard:echo")
    assert answer.json() == {
        "id": "yard:echo",
        "namespace": "yard",
        "name": "echo",
        "direct_name": "yard_echo_action",
        "title": None,
        "description": "The tool echo.",
        "kind": "python",
        "cluster": "Yard",
        "tags": [],
        "method": None,
        "path": None,
        "annotations": {"readOnlyHint": True},
        "action_class": "read",
        "available": True,
        "callable": True,
        "reason": None,
        "policy": {"enabled": True, "approval": None, "time_limit": None, "description": None, "task": None},
        "input_schema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "output_schema": None,
        "score": None,
        "match": None,
    }


async def test_tools_are_filtered_and_searched(local: httpx2.AsyncClient) -> None:
    assert ODD not in await ids(local, "/v1/tools?cluster=Yard")
    assert await ids(local, "/v1/tools?cluster=Ungrouped&provider=yard") == [ODD]
    assert await ids(local, "/v1/tools?kind=mcp") == []
    assert (await ids(local, "/v1/tools?q=echo"))[0] == "yard:echo"
    assert await ids(local, "/v1/tools?q=tool&cluster=Ungrouped&provider=yard&limit=1") == [ODD]
    found = (await local.get("/v1/tools?q=echo&schemas=false")).json()["items"][0]
    assert found["score"] > 0
    assert found["match"]
    assert found["input_schema"] is None


async def test_a_filtered_search_finds_what_ranks_low_among_all_tools(local: httpx2.AsyncClient, app: App) -> None:
    app.catalog.publish("many", [Tool("many", f"echo_{number}", "Echo a text, as an echo.") for number in range(700)])
    assert "yard:echo" not in await ids(local, "/v1/tools?q=text echo&limit=5")
    assert (await ids(local, "/v1/tools?q=text echo&provider=yard&limit=5"))[0] == "yard:echo"


async def test_pages_give_every_tool_once(local: httpx2.AsyncClient) -> None:
    whole, found, cursor = await ids(local, "/v1/tools?provider=yard"), list[str](), None
    for _ in range(20):
        params: dict[str, Any] = {"provider": "yard", "limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await local.get("/v1/tools", params=params)).json()
        found += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == whole == sorted(whole)
    assert len(found) == 8


@pytest.mark.parametrize(
    ("query", "pointer", "suggestion"),
    [
        ("limt=3", "query:limt", "Did you mean 'limit'?"),
        ("limit=0", "query:limit", None),
        ("limit=501", "query:limit", None),
        ("limit=many", "query:limit", None),
        ("kind=mpc", "query:kind", None),
        ("cursor=%2A%2A", "/cursor", "Use 'next_cursor' of the page before."),
        ("cursor=%F0%9F%98%80", "/cursor", "Use 'next_cursor' of the page before."),
    ],
)
async def test_a_bad_parameter_is_named(
    local: httpx2.AsyncClient, query: str, pointer: str, suggestion: str | None
) -> None:
    answer = await local.get(f"/v1/tools?{query}")
    body = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert (body["code"], body["status"], body["title"]) == ("invalid", 422, "Invalid input")
    assert [error["pointer"] for error in body["errors"]] == [pointer]
    assert body["suggestion"] == suggestion


async def test_a_name_with_odd_characters_is_found_overridden_and_called(
    local: httpx2.AsyncClient, tools: YardTools
) -> None:
    assert (await local.get(ODD_PATH)).json()["id"] == ODD
    assert (await local.patch(ODD_PATH, json={"time_limit": 5})).json()["policy"]["time_limit"] == 5
    answer = await local.post(f"{ODD_PATH}/call", json={"arguments": {"text": "x"}})
    assert (answer.status_code, answer.json()["tool"], answer.json()["state"]) == (200, ODD, "COMPLETE")
    assert tools.ran == ["odd/name with ünïcode/call"]


async def test_an_operators_overrides_are_in_force_at_once_and_can_be_taken_back(local: httpx2.AsyncClient) -> None:
    changed = await local.patch("/v1/tools/yard:echo", json={"description": "Better.", "time_limit": 2.5})
    assert changed.json()["policy"] == {
        "enabled": True,
        "approval": None,
        "time_limit": 2.5,
        "description": "Better.",
        "task": None,
    }
    off = (await local.patch("/v1/tools/yard:echo", json={"enabled": False})).json()
    assert (off["description"], off["callable"], off["policy"]["time_limit"]) == ("Better.", False, 2.5)
    assert "switched" in off["reason"]
    assert (await local.post("/v1/tools/yard:echo/call", json={"arguments": {"text": "x"}})).status_code == 404
    back = await local.patch("/v1/tools/yard:echo", json=dict.fromkeys(("enabled", "description", "time_limit")))
    assert back.json()["policy"] == {
        "enabled": True,
        "approval": None,
        "time_limit": None,
        "description": None,
        "task": None,
    }


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, []),
        ({"enable": True}, ["/enable"]),
        ({"enabled": "yes"}, ["/enabled"]),
        ({"time_limit": 0}, ["/time_limit", "/time_limit"]),
        ({"time_limit": "5"}, ["/time_limit", "/time_limit"]),
        ({"approval": "sometimes"}, ["/approval"]),
        ([], [""]),
    ],
)
async def test_an_override_that_makes_no_sense_changes_nothing(
    local: httpx2.AsyncClient, body: object, pointers: list[str]
) -> None:
    before = (await local.get("/v1/tools/yard:echo")).json()
    answer = await local.patch("/v1/tools/yard:echo", json=body)
    assert answer.status_code == 422
    assert [error["pointer"].rpartition("/")[0] or error["pointer"] for error in answer.json().get("errors", [])][
        :1
    ] == pointers[:1]
    assert (await local.get("/v1/tools/yard:echo")).json() == before


async def test_only_custom_tools_can_be_deleted(local: httpx2.AsyncClient) -> None:
    answer = await local.delete("/v1/tools/yard:echo")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "Switch it off" in answer.json()["suggestion"]
    assert (await local.delete("/v1/tools/yard:nosuch")).status_code == 404
    assert (await local.get("/v1/tools/no-colon")).status_code == 422


async def test_a_call_answers_with_its_result(local: httpx2.AsyncClient) -> None:
    answer = await local.post("/v1/tools/yard:echo/call", json={"arguments": {"text": "hello"}})
    body = answer.json()
    assert answer.status_code == 200
    assert body == {
        "id": body["id"],
        "tool": "yard:echo",
        "state": "COMPLETE",
        "result": {
            "content": [{"type": "text", "text": '{"echo":"hello"}'}],
            "structured": {"echo": "hello"},
            "is_error": False,
            "images": [],
            "meta": None,
        },
        "error": None,
        "warnings": [],
    }


async def test_a_tool_that_failed_is_an_answer(local: httpx2.AsyncClient) -> None:
    answer = await local.post("/v1/tools/yard:fail/call", json={"arguments": {"text": "please"}})
    assert (answer.status_code, answer.json()["state"]) == (200, "ERROR")
    assert answer.json()["error"] == {
        "error": "The far side said no to please.",
        "code": "upstream",
        "suggestion": "Ask nicely.",
    }


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("yard:nosuch", {"arguments": {"text": "x"}}, (404, "not_found")),
        ("yard:echo", {"arguments": {"text": 5}}, (422, "invalid_arguments")),
        ("yard:echo", {"arguments": {"txt": "x"}}, (422, "invalid_arguments")),
        ("yard:echo", {"arguments": {"text": "x"}, "server": "nosuch"}, (404, "not_found")),
    ],
)
async def test_a_call_that_never_reached_its_tool_is_the_requests_fault_and_on_record(
    local: httpx2.AsyncClient, tools: YardTools, path: str, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    answer = await local.post(f"/v1/tools/{path}/call", json=body)
    problem = answer.json()
    code = problem["code"]
    assert (answer.status_code, code) == expected
    assert tools.ran == []
    record = (await local.get(f"/v1/calls/{problem['call_id']}")).json()
    assert (record["state"], record["error_code"], record["error"]) == ("ERROR", code, problem["error"])


@pytest.mark.parametrize(
    ("content", "status", "told"),
    [
        (b"{", 422, "The body is no JSON: "),
        (b"[1]", 422, "valid"),
        (b'{"arguments": [1]}', 422, "/arguments"),
        (b'{"arguments": {}, "argument": {}}', 422, "/argument"),
        (b'{"arguments": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, 400, "nested too deeply"),
        (b'{"arguments": {"text": "\xff"}}', 400, "not UTF-8"),
    ],
)
async def test_a_body_that_cannot_be_read_runs_nothing(
    local: httpx2.AsyncClient, tools: YardTools, content: bytes, status: int, told: str
) -> None:
    answer = await local.post("/v1/tools/yard:echo/call", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, told in answer.json()["error"]) == (status, True), answer.text
    assert tools.ran == []


async def test_a_call_that_takes_longer_is_followed_at_its_location(
    local: httpx2.AsyncClient, tools: YardTools
) -> None:
    answer = await local.post("/v1/tools/yard:slow/call?wait=0", json={"arguments": {"text": "later"}})
    assert answer.status_code == 202
    location = answer.headers["location"]
    assert location == f"/v1/calls/{answer.json()['id']}"
    async with asyncio.timeout(5):
        await tools.begun.wait()
    assert (await local.get(location)).json()["state"] == "PROCESSING"
    tools.let_go.set()
    outcome = await _ended(local, location)
    assert outcome["state"] == "COMPLETE"
    assert (await local.get(outcome["result_url"])).json()["structuredContent"] == {"echo": "later"}


async def test_a_reading_call_that_takes_longer_can_be_followed_too(
    local: httpx2.AsyncClient, tools: YardTools
) -> None:
    answer = await local.post("/v1/tools/yard:slow-read/call?wait=0", json={"arguments": {"text": "later"}})
    assert answer.status_code == 202
    async with asyncio.timeout(5):
        await tools.begun.wait()
    assert (await local.get(answer.headers["location"])).json()["state"] == "PROCESSING"
    tools.let_go.set()
    assert (await _ended(local, answer.headers["location"]))["state"] == "COMPLETE"


async def _ended(client: httpx2.AsyncClient, location: str) -> dict[str, Any]:
    async with asyncio.timeout(5):
        while (found := (await client.get(location)).json())["state"] == "PROCESSING":
            await asyncio.sleep(0)
    return found


async def test_a_running_call_is_cancelled_and_its_provider_told(local: httpx2.AsyncClient, tools: YardTools) -> None:
    answer = await local.post("/v1/tools/yard:slow/call?wait=0", json={"arguments": {"text": "x"}})
    async with asyncio.timeout(5):
        await tools.begun.wait()
        cancelled = await local.post(f"{answer.headers['location']}/cancel")
        await tools.cancelled.wait()
    assert cancelled.json() == {"id": answer.json()["id"], "cancelled": True}
    ended = await _ended(local, answer.headers["location"])
    assert (ended["state"], ended["error_code"]) == ("ERROR", "cancelled")
    again = await local.post(f"{answer.headers['location']}/cancel")
    assert again.json()["cancelled"] is False
    assert (await local.post("/v1/calls/call_nosuch/cancel")).status_code == 404


async def test_a_reading_call_of_another_face_is_cancelled_too(
    local: httpx2.AsyncClient, app: App, tools: YardTools
) -> None:
    request = CallRequest("yard:slow-read", {"text": "x"}, LOCAL_OPERATOR, Origin.MCP)
    calling = asyncio.create_task(app.calls.invoke(request))
    async with asyncio.timeout(5):
        await tools.begun.wait()
        cancelled = await local.post(f"/v1/calls/{request.call_id}/cancel")
        outcome = await calling
    assert cancelled.json() == {"id": request.call_id, "cancelled": True}
    assert outcome.failure is not None
    assert outcome.failure.code == "cancelled"


async def test_somebody_elses_call_is_cancelled_by_those_who_manage_only(
    local: httpx2.AsyncClient, clients: Clients, tools: YardTools
) -> None:
    other, manager = await clients.with_scopes(Scope.CALL), await clients.with_scopes(Scope.MANAGE)
    started = await local.post("/v1/tools/yard:slow/call?wait=0", json={"arguments": {"text": "x"}})
    cancel = f"{started.headers['location']}/cancel"
    async with asyncio.timeout(5):
        await tools.begun.wait()
        assert (await other.post(cancel)).status_code == 404
        assert (await manager.post(cancel)).json()["cancelled"] is True
        await tools.cancelled.wait()


@pytest.mark.parametrize("wait", ["-1", "301", "soon", "nan"])
async def test_a_wait_that_makes_no_sense_is_refused(local: httpx2.AsyncClient, tools: YardTools, wait: str) -> None:
    answer = await local.post(f"/v1/tools/yard:echo/call?wait={wait}", json={"arguments": {"text": "x"}})
    assert (answer.status_code, tools.ran) == (422, [])


async def test_an_idempotency_key_runs_a_tool_once(local: httpx2.AsyncClient, tools: YardTools) -> None:
    async def call(text: str) -> httpx2.Response:
        return await local.post(
            "/v1/tools/yard:write/call", json={"arguments": {"text": text}}, headers={"idempotency-key": "k1"}
        )

    first, second = await call("x"), await call("x")
    assert first.json() == second.json()
    assert tools.ran == ["write"]
    assert (await call("other")).status_code == 409


@requirement("approval.gate")
async def test_a_cluster_can_be_set_to_ask_for_its_calls(local: httpx2.AsyncClient, app: App) -> None:
    asking = await local.patch("/v1/clusters/Yard", json={"auto_approve": False})
    assert (asking.status_code, asking.json()["auto_approve"]) == (200, False)
    call = await local.post("/v1/tools/yard:echo/call?wait=0", json={"arguments": {"text": "x"}})
    assert (call.json()["state"], call.json()["waiting"]["kind"]) == ("PENDING", "approval")
    assert (await local.patch("/v1/clusters/Yard", json={"auto_approve": None})).json()["auto_approve"] is None
    assert (await local.patch("/v1/clusters/Yard", json={"auto_approve": "perhaps"})).status_code == 422
    assert (await local.patch("/v1/clusters/None", json={"auto_approve": True})).status_code == 404


@requirement("cluster.list-delete")
async def test_a_deleted_cluster_is_gone_with_all_its_tools(local: httpx2.AsyncClient, app: App) -> None:
    listed = (await local.get("/v1/clusters")).json()["items"]
    assert {"name": "Yard", "tools": 7, "available": 7, "namespaces": ["yard"], "auto_approve": None} in listed
    answer = await local.delete("/v1/clusters/Yard")
    assert (answer.status_code, answer.json()) == (200, {"name": "Yard", "deleted": 7})
    assert await ids(local, "/v1/tools?provider=yard") == [ODD]
    assert [cluster["name"] for cluster in (await local.get("/v1/clusters")).json()["items"]] == ["Ungrouped"]
    call = await local.post("/v1/tools/yard:echo/call", json={"arguments": {"text": "x"}})
    assert (call.status_code, call.json()["code"]) == (404, "not_found")
    assert (await local.delete("/v1/clusters/Yard")).status_code == 404


async def test_each_part_of_the_catalog_asks_for_its_scope(clients: Clients) -> None:
    reader, caller = await clients.with_scopes(Scope.READ), await clients.with_scopes(Scope.CALL)
    for client in (reader, caller):
        assert (await client.get("/v1/tools")).status_code == 200
        for refused in (
            await client.patch("/v1/tools/yard:echo", json={"enabled": False}),
            await client.delete("/v1/clusters/Yard"),
        ):
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
            assert "'manage'" in refused.json()["error"]
    refused = await reader.post("/v1/tools/yard:echo/call", json={"arguments": {"text": "x"}})
    assert refused.status_code == 403


async def test_which_calls_become_tasks_is_an_operators_setting(local: httpx2.AsyncClient) -> None:
    changed = await local.patch("/v1/tools/yard:echo", json={"task": "never"})
    assert changed.json()["policy"]["task"] == "never"
    assert (await local.patch("/v1/tools/yard:echo", json={"task": "sometimes"})).status_code == 422
    back = await local.patch("/v1/tools/yard:echo", json={"task": None})
    assert back.json()["policy"]["task"] is None


async def test_a_cluster_that_goes_while_it_is_decided_for_is_not_found(
    local: httpx2.AsyncClient, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = app.policies.set_cluster

    async def decided_and_gone(name: str, auto_approve: AutoApprove | None) -> None:
        await real(name, auto_approve)
        await app.delete_cluster(name)

    monkeypatch.setattr(app.policies, "set_cluster", decided_and_gone)
    gone = await local.patch("/v1/clusters/Yard", json={"auto_approve": False})
    assert (gone.status_code, gone.json()["error"]) == (404, "The cluster 'Yard' is gone.")
    assert app.policies.clusters == {"Yard": False}
