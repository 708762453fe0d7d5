"""Tools that a session's client executes, over HTTP as its documentation has it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from starlette.types import ASGIApp

from tests.faces.http.client import streaming
from tests.faces.http.conftest import Clients
from tests.requirements import requirement
from toolyard.app import App
from toolyard.core.principal import Scope

LOCATIONS = {
    "name": "getLocations",
    "description": "Retrieves a list of warehouse locations",
    "requestArgs": {
        "properties": {"includeInactive": {"type": "boolean", "description": "Include inactive locations"}},
    },
    "responseShape": {
        "properties": {
            "locations": {
                "type": "array",
                "items": {"type": "object", "properties": {"id": {"type": "number"}, "name": {"type": "string"}}},
            },
            "error": {"type": "string"},
        },
    },
}


@pytest.fixture
async def client(clients: Clients) -> httpx2.AsyncClient:
    return await clients.with_scopes(Scope.CALL, name="app")


def customizations(*definitions: dict[str, Any]) -> dict[str, Any]:
    return {"customizations": {"extensions": {"tools": {one["name"]: one for one in definitions}}}}


async def new_session(client: httpx2.AsyncClient, *definitions: dict[str, Any]) -> str:
    answer = await client.post("/v1/sessions", json=customizations(*(definitions or (LOCATIONS,))))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["sessionId"])


async def called(client: httpx2.AsyncClient, session: str, *, wait: float = 0, **arguments: object) -> dict[str, Any]:
    answer = await client.post(
        f"/v1/sessions/{session}/tools/getLocations/call?wait={wait}", json={"arguments": arguments}
    )
    assert answer.status_code == (200 if wait else 202), answer.text
    body: dict[str, Any] = answer.json()
    return body


async def picked_up(client: httpx2.AsyncClient, session: str) -> str:
    """A call that its client has taken up."""
    call = await called(client, session)
    request = str(call["waiting"]["id"])
    assert (await beat(client, session, request)).status_code == 200
    return request


async def beat(client: httpx2.AsyncClient, session: str, request: str, **fields: object) -> httpx2.Response:
    body = fields or {"state": "PROCESSING", "heartbeat": 1_700_000_000_000}
    return await client.post(f"/v1/tools/request/{session}/{request}/heartbeat", json=body)


async def respond(client: httpx2.AsyncClient, session: str, request: str, response: object) -> httpx2.Response:
    return await client.post(f"/v1/tools/response/{session}/{request}", json={"response": response})


DONE = {"state": "COMPLETE", "locations": [{"id": 1, "name": "Main"}]}


@requirement("client.tools")
@requirement("client.pickup")
@requirement("client.response")
async def test_a_call_is_picked_up_worked_on_and_answered(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    assert (await client.get(f"/v1/tools/requests/{session}")).json() == []
    calling = asyncio.create_task(called(client, session, wait=20, includeInactive=True))
    [request] = (await client.get(f"/v1/tools/requests/{session}?wait=10")).json()
    assert request == {
        "requestId": request["requestId"],
        "name": "getLocations",
        "arguments": {"includeInactive": True, "sessionId": session},
        "state": "PENDING",
        "deadline": request["deadline"],
    }
    first = await beat(client, session, request["requestId"])
    assert (first.status_code, first.json()) == (200, {"state": "PROCESSING"})
    [request] = (await client.get(f"/v1/tools/requests/{session}")).json()
    assert request["state"] == "PROCESSING"
    for _ in range(3):
        assert (await beat(client, session, request["requestId"])).json() == {"state": "PROCESSING"}
    answer = await respond(client, session, request["requestId"], DONE)
    assert (answer.status_code, answer.json()) == (200, {"requestId": request["requestId"], "state": "COMPLETE"})
    ended = await calling
    assert (ended["state"], ended["result"]["structured"]) == ("COMPLETE", DONE)
    assert (await client.get(f"/v1/tools/requests/{session}")).json() == []


@requirement("client.pickup")
async def test_the_clients_stream_tells_of_its_calls_and_their_ends(client: httpx2.AsyncClient, face: ASGIApp) -> None:
    session = await new_session(client)
    headers = {"authorization": client.headers["authorization"], "accept": "text/event-stream"}
    async with streaming(face, f"/v1/sessions/{session}/events", headers=headers) as stream:
        await stream.until("retry: 2000\n\n")
        request = await picked_up(client, session)
        told = await stream.until('"execution":"client"')
        assert '"type":"tool_call"' in told + await stream.until("\n\n")
        await respond(client, session, request, DONE)
        await stream.until('"type":"tool_result"')


@requirement("client.injected-fields")
async def test_the_injected_fields_are_there_whether_the_definition_names_them_or_not(
    client: httpx2.AsyncClient,
) -> None:
    named = {
        "name": "named",
        "description": "Names them itself",
        "requestArgs": {"properties": {"sessionId": {"type": "string"}}, "required": ["sessionId"]},
        "responseShape": {"properties": {"state": {"type": "string"}}},
    }
    session = await new_session(client, LOCATIONS, named)
    request = await picked_up(client, session)
    missing = await respond(client, session, request, {"locations": []})
    assert missing.status_code == 422
    assert "state" in missing.text
    unknown = await respond(client, session, request, {"state": "DONE"})
    assert unknown.status_code == 422
    assert (await respond(client, session, request, DONE)).status_code == 200


@requirement("client.heartbeat")
async def test_an_error_beat_ends_the_call_and_its_caller_is_told(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    calling = asyncio.create_task(called(client, session, wait=20))
    [request] = (await client.get(f"/v1/tools/requests/{session}?wait=10")).json()
    await beat(client, session, request["requestId"])
    failed = await beat(client, session, request["requestId"], state="ERROR", error="Query timed out after 30 seconds")
    assert (failed.status_code, failed.json()) == (200, {"state": "ERROR"})
    ended = await calling
    assert ended["state"] == "ERROR"
    assert "Query timed out after 30 seconds" in ended["error"]["error"]
    assert (await beat(client, session, request["requestId"])).status_code == 409


@requirement("client.heartbeat")
async def test_one_request_beats_for_many_calls_and_learns_which_are_gone(client: httpx2.AsyncClient, app: App) -> None:
    session = await new_session(client)
    requests = [await picked_up(client, session) for _ in range(3)]
    await respond(client, session, requests[0], DONE)
    pairs = [[session, request] for request in requests]
    batch = {"requests": [*pairs, ["no", "such"]]}
    answer = await client.post("/v1/tools/heartbeats", json=batch)
    assert (answer.status_code, answer.json()) == (200, {"gone": [pairs[0]]})
    await app.client_calls.flush()
    answer = await client.post("/v1/tools/heartbeats", json=batch)
    assert answer.json() == {"gone": [pairs[0], ["no", "such"]]}


@requirement("client.response")
async def test_a_response_is_taken_once_and_a_wrong_one_leaves_the_call_open(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    request = await picked_up(client, session)
    wrong = await respond(client, session, request, {"state": "COMPLETE", "locations": [{"id": "one"}]})
    assert wrong.status_code == 422
    assert "locations" in wrong.json()["errors"][0]["pointer"]
    [still] = (await client.get(f"/v1/tools/requests/{session}")).json()
    assert still["state"] == "PROCESSING"
    assert (await respond(client, session, request, DONE)).status_code == 200
    assert (await respond(client, session, request, DONE)).status_code == 200
    other = await respond(client, session, request, {"state": "COMPLETE", "locations": []})
    assert other.status_code == 409


@requirement("client.disconnect")
@requirement("client.abandoned")
async def test_a_call_whose_client_falls_silent_is_abandoned_and_a_late_response_refused(
    client: httpx2.AsyncClient, app: App
) -> None:
    session = await new_session(client)
    calling = asyncio.create_task(called(client, session, wait=60))
    [request] = (await client.get(f"/v1/tools/requests/{session}?wait=10")).json()
    await beat(client, session, request["requestId"])
    await fall_silent(app)
    async with asyncio.timeout(30):
        ended = await calling
    assert (ended["state"], ended["error"]["code"]) == ("ERROR", "abandoned")
    late = await respond(client, session, request["requestId"], DONE)
    assert late.status_code == 409
    record = (await client.get(f"/v1/calls/{ended['id']}")).json()
    assert record["error_code"] == "abandoned"


async def fall_silent(app: App) -> None:
    """As if the last beat of every call had come long ago."""
    await app.client_calls.flush()
    await app.store.tx(lambda c: c.execute("UPDATE call_leases SET lease_until = 1").rowcount)


async def test_another_principals_session_looks_like_none(client: httpx2.AsyncClient, clients: Clients) -> None:
    session = await new_session(client)
    request = await picked_up(client, session)
    stranger = await clients.with_scopes(Scope.CALL, name="stranger")
    for of_session, of_request in ((session, request), ("session_no", request)):
        answers = [
            await stranger.get(f"/v1/sessions/{of_session}"),
            await stranger.get(f"/v1/sessions/{of_session}/events"),
            await stranger.delete(f"/v1/sessions/{of_session}"),
            await stranger.get(f"/v1/tools/requests/{of_session}"),
            await beat(stranger, of_session, of_request),
            await respond(stranger, of_session, of_request, DONE),
            await stranger.post(f"/v1/sessions/{of_session}/tools/getLocations/call", json={}),
            await stranger.post(f"/v1/sessions/{of_session}/tool_events", json={"tool_id": "a", "result": 1}),
            await stranger.post("/v1/tools/yard:echo/call", json={"arguments": {"text": "x"}, "session": of_session}),
        ]
        assert [answer.status_code for answer in answers] == [404] * len(answers)
        said = [answer.text.replace(of_session, "S").replace(of_request, "R") for answer in answers]
        if of_session == session:
            of_others = said
    assert said == of_others
    pairs = {"requests": [[session, request]]}
    assert (await stranger.post("/v1/tools/heartbeats", json=pairs)).json() == {"gone": pairs["requests"]}
    assert (await client.post("/v1/tools/heartbeats", json=pairs)).json() == {"gone": []}


async def test_a_request_that_is_not_there_and_one_not_picked_up(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    assert (await beat(client, session, "no-such")).status_code == 404
    assert (await respond(client, session, "no-such", DONE)).status_code == 404
    call = await called(client, session)
    early = await respond(client, session, call["waiting"]["id"], DONE)
    assert (early.status_code, early.json()["state"]) == (200, "COMPLETE")


@requirement("client.response")
async def test_a_failed_response_ends_the_call_as_an_error_and_a_pending_one_does_not(
    client: httpx2.AsyncClient,
) -> None:
    session = await new_session(client)
    request = await picked_up(client, session)
    pending = await respond(client, session, request, {"state": "PENDING"})
    assert (pending.status_code, pending.json()["state"]) == (200, "PROCESSING")
    failed = await respond(client, session, request, {"state": "FAILED", "error": "No warehouse."})
    assert (failed.status_code, failed.json()["state"]) == (200, "ERROR")
    record = (await client.get(f"/v1/calls/{request}")).json()
    assert (record["state"], "No warehouse." in record["error"]) == ("ERROR", True)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"state": "DONE"}, "/state"),
        ({"heartbeat": 5}, "/state"),
        ({"state": "PROCESSING", "heartbeat": "now"}, "/heartbeat"),
        ({"state": "PROCESSING", "heartbeat": -1}, "/heartbeat"),
        ({"state": "PROCESSING", "heartbeats": 5}, "/heartbeats"),
        ({"state": "PROCESSING", "error": "x"}, "/error"),
        ({"state": "ERROR"}, "/error"),
        ([], ""),
    ],
)
async def test_a_beat_that_makes_no_sense_is_explained(client: httpx2.AsyncClient, body: Any, pointer: str) -> None:
    session = await new_session(client)
    request = await picked_up(client, session)
    answer = await client.post(f"/v1/tools/request/{session}/{request}/heartbeat", json=body)
    assert answer.status_code == 422, answer.text
    assert pointer in [
        error["pointer"].removesuffix("/int").removesuffix("/float") for error in answer.json()["errors"]
    ]


async def test_fifty_megabytes_are_refused(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    request = await picked_up(client, session)
    answer = await respond(client, session, request, {"state": "COMPLETE", "error": "x" * 50_000_000})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert (await respond(client, session, request, DONE)).status_code == 200


@requirement("client.tools")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"customizations": {"extensions": {"tools": {"other": LOCATIONS}}}}, "getLocations"),
        ({"customizations": {"extensions": {"tools": [LOCATIONS]}}}, "/customizations/extensions/tools"),
        (customizations({**LOCATIONS, "name": "_hidden"}), "_hidden"),
        (customizations({**LOCATIONS, "name": "priv_pay"}), "priv_pay"),
        (customizations({**LOCATIONS, "name": "mcp_x"}), "mcp_x"),
        (customizations({**LOCATIONS, "name": "no spaces"}), "no spaces"),
        (customizations({**LOCATIONS, "requestArgs": {"properties": {"a": {"type": "sting"}}}}), "requestArgs"),
        (customizations({"name": "bare", "description": "x"}), "requestArgs"),
        ({"customizations": {"extension": {}}}, "Did you mean"),
    ],
)
async def test_definitions_that_cannot_be_served_are_refused(
    client: httpx2.AsyncClient, body: dict[str, Any], said: str
) -> None:
    answer = await client.post("/v1/sessions", json=body)
    assert answer.status_code == 422, answer.text
    assert said in answer.text
