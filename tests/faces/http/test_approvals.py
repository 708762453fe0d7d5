"""Calls that wait for a decision: shown, decided once, answered on any path."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest
from starlette.types import ASGIApp

from tests.faces.http.client import streaming
from tests.faces.http.conftest import Clients
from tests.faces.http.tools import YardTools
from tests.requirements import requirement
from toolyard.app import App
from toolyard.core.call import Origin
from toolyard.core.principal import Scope

CALL = "/v1/tools/yard:write/call"


@pytest.fixture
async def caller(clients: Clients, local: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """Whose calls of `yard:write` are asked about."""
    answer = await local.patch("/v1/tools/yard:write", json={"approval": "ask"})
    assert answer.json()["policy"]["approval"] == "ask"
    return await clients.with_scopes(Scope.CALL, name="ci")


@pytest.fixture
async def reviewer(clients: Clients) -> httpx2.AsyncClient:
    return await clients.with_scopes(Scope.APPROVE, name="reviewer")


async def waiting_call(caller: httpx2.AsyncClient, text: str = "x", **more: object) -> dict[str, Any]:
    answer = await caller.post(f"{CALL}?wait=0", json={"arguments": {"text": text}, **more})
    assert answer.status_code == 202, answer.text
    started: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/calls/{started['id']}"
    return started


async def ended(caller: httpx2.AsyncClient, call_id: str) -> dict[str, Any]:
    record: dict[str, Any] = (await caller.get(f"/v1/calls/{call_id}?wait=10")).json()
    assert record["state"] in ("COMPLETE", "ERROR"), record
    return record


@requirement("approval.gate")
async def test_a_call_waits_shows_what_for_and_runs_once_it_is_approved(
    caller: httpx2.AsyncClient, reviewer: httpx2.AsyncClient, tools: YardTools
) -> None:
    started = await waiting_call(caller, "one")
    approval_id = started["waiting"]["id"]
    assert started == {
        "id": started["id"],
        "tool": "yard:write",
        "state": "PENDING",
        "waiting": {
            "kind": "approval",
            "id": approval_id,
            "deadline": started["waiting"]["deadline"],
            "url": f"http://127.0.0.1:8420/approvals/{approval_id}",
        },
    }
    record = (await caller.get(f"/v1/calls/{started['id']}")).json()
    assert (record["state"], record["waiting"]) == ("PENDING", started["waiting"])
    queue = (await reviewer.get("/v1/approvals?state=pending")).json()
    assert queue["next_cursor"] is None
    [item] = queue["items"]
    assert 0 < item.pop("seconds_left") <= 300
    assert item == {
        "id": approval_id,
        "call_id": started["id"],
        "state": "pending",
        "gate": "operator",
        "tool": "yard:write",
        "arguments": {"text": "one"},
        "principal": "key:ci",
        "origin": "http",
        "server": None,
        "session_id": None,
        "why": item["why"],
        "created": item["created"],
        "deadline": started["waiting"]["deadline"],
        "decision": None,
        "decided_by": None,
        "decided_at": None,
        "reason": None,
        "edited_arguments": None,
        "scope": None,
        "url": started["waiting"]["url"],
    }
    assert item["why"]
    assert tools.ran == []
    decided = await reviewer.post(f"/v1/approvals/{approval_id}", json={"decision": "approve"})
    assert decided.status_code == 200, decided.text
    assert (decided.json()["decision"], decided.json()["decided_by"]) == ("approve", "key:reviewer")
    assert (await ended(caller, started["id"]))["state"] == "COMPLETE"
    assert tools.ran == ["write"]
    assert (await reviewer.get("/v1/approvals?state=pending")).json()["items"] == []
    assert [one["id"] for one in (await reviewer.get("/v1/approvals?state=decided")).json()["items"]] == [approval_id]


@requirement("approval.gate")
async def test_a_rejected_call_never_runs_and_its_caller_is_told_why(
    caller: httpx2.AsyncClient, reviewer: httpx2.AsyncClient, tools: YardTools
) -> None:
    calling = asyncio.create_task(caller.post(f"{CALL}?wait=20", json={"arguments": {"text": "x"}}))
    approval_id = await first_pending(reviewer)
    await reviewer.post(f"/v1/approvals/{approval_id}", json={"decision": "reject", "reason": "Too much."})
    answer = await calling
    body = answer.json()
    assert (answer.status_code, body["state"], body["error"]["code"]) == (200, "ERROR", "rejected")
    assert "Too much." in body["error"]["error"]
    assert tools.ran == []


async def first_pending(reviewer: httpx2.AsyncClient) -> str:
    async with asyncio.timeout(10):
        while not (items := (await reviewer.get("/v1/approvals?state=pending")).json()["items"]):
            pass
    return str(items[0]["id"])


@requirement("approval.edit")
async def test_edited_arguments_are_checked_and_both_versions_stay_on_record(
    caller: httpx2.AsyncClient, reviewer: httpx2.AsyncClient
) -> None:
    started = await waiting_call(caller, "much")
    approval = f"/v1/approvals/{started['waiting']['id']}"
    wrong = await reviewer.post(approval, json={"decision": "approve", "arguments": {"text": 5}})
    assert wrong.status_code == 422
    assert (await reviewer.get(approval)).json()["state"] == "pending"
    edited = await reviewer.post(approval, json={"decision": "approve", "arguments": {"text": "less"}})
    assert edited.status_code == 200, edited.text
    shown = edited.json()
    assert (shown["arguments"], shown["edited_arguments"]) == ({"text": "much"}, {"text": "less"})
    await ended(caller, started["id"])
    result = (await caller.get(f"/v1/calls/{started['id']}/result")).json()
    assert result["structuredContent"] == {"echo": "less"}


@requirement("approval.edit")
async def test_the_second_decision_gets_the_first_one(
    caller: httpx2.AsyncClient, reviewer: httpx2.AsyncClient, clients: Clients, tools: YardTools
) -> None:
    started = await waiting_call(caller)
    other = await clients.with_scopes(Scope.APPROVE, name="other")
    approval = f"/v1/approvals/{started['waiting']['id']}"
    answers = await asyncio.gather(
        reviewer.post(approval, json={"decision": "approve"}), other.post(approval, json={"decision": "approve"})
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    won, lost = sorted(answers, key=lambda answer: answer.status_code)
    assert lost.json()["approval"]["decided_by"] == won.json()["decided_by"]
    assert won.json()["decided_by"] in lost.json()["error"]
    await ended(caller, started["id"])
    assert tools.ran == ["write"]


@requirement("approval.edit")
async def test_allowed_for_the_session_it_is_not_asked_again_there(
    caller: httpx2.AsyncClient, reviewer: httpx2.AsyncClient
) -> None:
    session = (await caller.post("/v1/sessions", json={})).json()["sessionId"]
    started = await waiting_call(caller, session=session)
    body = {"decision": "approve", "scope": "session"}
    assert (await reviewer.post(f"/v1/approvals/{started['waiting']['id']}", json=body)).json()["scope"] == "session"
    await ended(caller, started["id"])
    again = await caller.post(f"{CALL}?wait=10", json={"arguments": {"text": "2"}, "session": session})
    assert (again.status_code, again.json()["state"]) == (200, "COMPLETE")
    await waiting_call(caller, "in another session")


@requirement("approval.timeout")
async def test_an_undecided_call_ends_at_its_deadline(
    caller: httpx2.AsyncClient, reviewer: httpx2.AsyncClient, app: App, tools: YardTools
) -> None:
    started = await waiting_call(caller)
    approval_id = started["waiting"]["id"]
    await app.store.tx(lambda c: c.execute("UPDATE approvals SET deadline = 1 WHERE id = ?", approval_id).rowcount)
    await app.store.tx(lambda c: c.execute("UPDATE jobs SET wake_at = 1 WHERE state = 'waiting'").rowcount)
    record = await ended(caller, started["id"])
    assert (record["state"], record["error_code"]) == ("ERROR", "approval_timeout")
    late = await reviewer.post(f"/v1/approvals/{approval_id}", json={"decision": "approve"})
    assert (late.status_code, late.json()["approval"]["decision"]) == (409, "timeout")
    assert tools.ran == []


async def test_only_those_who_may_decide_and_others_learn_nothing(
    caller: httpx2.AsyncClient, clients: Clients, tools: YardTools
) -> None:
    started = await waiting_call(caller)
    approval = f"/v1/approvals/{started['waiting']['id']}"
    stranger = await clients.with_scopes(Scope.CALL, name="stranger")
    onlooker = await clients.with_scopes(Scope.READ, name="onlooker")
    decision = {"decision": "approve"}
    assert (await caller.get(approval)).status_code == 200
    for client, seen in ((caller, 1), (stranger, 0), (onlooker, 1)):
        assert len((await client.get("/v1/approvals?state=pending")).json()["items"]) == seen
    assert (await caller.post(approval, json=decision)).status_code == 403
    unknown = await stranger.get("/v1/approvals/approval_unknown")
    hidden = await stranger.get(approval)
    assert (hidden.status_code, unknown.status_code) == (404, 404)
    assert (await stranger.post(approval, json=decision)).status_code == 404
    assert (await onlooker.get(approval)).status_code == 200
    assert (await onlooker.post(approval, json=decision)).status_code == 403
    assert tools.ran == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/decision"),
        ({"decision": "aprove"}, "/decision"),
        ({"decision": "approve", "scope": "forever"}, "/scope"),
        ({"decision": "approve", "argument": {}}, "/argument"),
        ({"decision": "approve", "arguments": []}, "/arguments"),
    ],
)
async def test_a_decision_that_makes_no_sense_decides_nothing(
    caller: httpx2.AsyncClient, reviewer: httpx2.AsyncClient, body: object, pointer: str
) -> None:
    started = await waiting_call(caller)
    approval = f"/v1/approvals/{started['waiting']['id']}"
    answer = await reviewer.post(approval, json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
    assert (await reviewer.get(approval)).json()["state"] == "pending"


async def test_a_waiting_call_can_be_cancelled_by_its_caller(
    caller: httpx2.AsyncClient, reviewer: httpx2.AsyncClient, tools: YardTools
) -> None:
    started = await waiting_call(caller)
    cancelled = await caller.post(f"/v1/calls/{started['id']}/cancel")
    assert cancelled.json() == {"id": started["id"], "cancelled": True}
    assert (await ended(caller, started["id"]))["error_code"] == "cancelled"
    late = await reviewer.post(f"/v1/approvals/{started['waiting']['id']}", json={"decision": "approve"})
    assert late.status_code == 409
    assert tools.ran == []


async def test_the_operators_stream_tells_of_requests_and_decisions(
    caller: httpx2.AsyncClient, reviewer: httpx2.AsyncClient, face: ASGIApp
) -> None:
    async with streaming(face, "/v1/events", query="topics=approval") as stream:
        await stream.until("retry: 2000\n\n")
        started = await waiting_call(caller)
        approval_id = started["waiting"]["id"]
        await stream.until(f'"id":"{approval_id}"')
        await reviewer.post(f"/v1/approvals/{approval_id}", json={"decision": "reject"})
        await stream.until(f'"id":"{approval_id}"')


async def test_the_calls_of_a_page_of_the_queue_are_looked_up_in_one_query(
    caller: httpx2.AsyncClient, reviewer: httpx2.AsyncClient, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = [(await waiting_call(caller, text))["id"] for text in ("a", "b", "c")]
    real, looked_up = app.calls.origins, list[list[str]]()

    async def counted(call_ids: Sequence[str]) -> dict[str, Origin]:
        looked_up.append(list(call_ids))
        return await real(call_ids)

    async def one_by_one(call_id: str) -> None:
        raise AssertionError(call_id)

    monkeypatch.setattr(app.calls, "origins", counted)
    monkeypatch.setattr(app.calls, "get", one_by_one)
    items = (await reviewer.get("/v1/approvals?state=pending")).json()["items"]
    assert [(item["call_id"], item["origin"]) for item in items] == [(call_id, "http") for call_id in started]
    assert looked_up == [started]
