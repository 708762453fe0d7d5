"""Tools that a session's client executes: its open calls, signs of life, results."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from toolyard.core.call import CallRequest, CallState, Origin
from toolyard.core.clock import rfc3339
from toolyard.core.errors import BadInput
from toolyard.core.principal import Scope
from toolyard.core.session import CLIENT_NAMESPACE
from toolyard.faces.http.access import Who, Yard, needs
from toolyard.faces.http.calling import LONGEST_WAIT, answer_call
from toolyard.faces.http.idempotency import checked_key
from toolyard.faces.http.models import CallEnded, CallStarted
from toolyard.faces.http.session_models import (
    BeatBody,
    BeatOut,
    BeatsBody,
    BeatsOut,
    ClientRequestOut,
    ResponseBody,
    ResponseTaken,
    SessionCallBody,
)

router = APIRouter(tags=["Client tools"])


@router.post(
    "/sessions/{session_id}/tools/{name}/call",
    **needs(Scope.CALL),
    response_model=CallEnded,
    responses={202: {"model": CallStarted, "description": "Still open: ask at `Location`."}},
)
async def call_session_tool(  # noqa: PLR0917 - FastAPI hands parameters over by name
    yard: Yard,
    principal: Who,
    session_id: str,
    name: str,
    body: SessionCallBody,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for the end.")] = 30,
    idempotency_key: Annotated[str | None, Header(max_length=255)] = None,
) -> Response:
    """Call a tool that the session's client brought along, and have the client execute it."""
    await yard.sessions.get(session_id, principal)
    request = CallRequest(
        tool=f"{CLIENT_NAMESPACE}:{name}",
        arguments=body.arguments,
        principal=principal,
        origin=Origin.HTTP,
        idempotency_key=None if idempotency_key is None else checked_key(idempotency_key),
        recorded_first=True,
        session=session_id,
    )
    return await answer_call(yard, request, wait)


@router.get("/tools/requests/{session_id}", **needs(Scope.CALL))
async def open_requests(
    yard: Yard,
    principal: Who,
    session_id: str,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for a first one.")] = 0,
) -> list[ClientRequestOut]:
    """The calls that this session's client has to execute. The first heartbeat takes one up."""
    found = await yard.client_calls.open(session_id, principal, wait=wait)
    return [
        ClientRequestOut(
            requestId=request.request_id,
            name=request.name,
            arguments=dict(request.arguments),
            state=CallState(request.state),
            deadline=None if request.deadline is None else rfc3339(request.deadline),
        )
        for request in found
    ]


@router.post("/tools/request/{session_id}/{request_id}/heartbeat", **needs(Scope.CALL))
async def heartbeat(yard: Yard, principal: Who, session_id: str, request_id: str, body: BeatBody) -> BeatOut:
    """A sign of life, every 250 ms or so while you work on the call; or its failure, with the state ERROR."""
    if body.state == "ERROR":
        if body.error is None:
            raise BadInput("A call that failed says why.", where="/error", suggestion="Send `error` with a message.")
        await yard.client_calls.fail(session_id, request_id, principal, body.error)
        return BeatOut(state=CallState.ERROR)
    if body.error is not None:
        raise BadInput(
            "An error needs the state ERROR.", where="/error", suggestion="Send state ERROR, or leave `error` out."
        )
    await yard.client_calls.beat(session_id, request_id, principal, body.heartbeat)
    return BeatOut(state=CallState.PROCESSING)


@router.post("/tools/heartbeats", **needs(Scope.CALL))
async def heartbeats(yard: Yard, principal: Who, body: BeatsBody) -> BeatsOut:
    """Signs of life for many calls at once. One that this node has not heard of yet is looked up within two seconds."""
    return BeatsOut(gone=yard.client_calls.beat_many(principal, body.requests))


@router.post("/tools/response/{session_id}/{request_id}", **needs(Scope.CALL))
async def respond(yard: Yard, principal: Who, session_id: str, request_id: str, body: ResponseBody) -> ResponseTaken:
    """The result of a call. It is checked against the tool's response shape; a wrong one leaves the call open.

    The state COMPLETE ends the call as such, FAILED as an error; PENDING only says that you are still at it.
    """
    state = await yard.client_calls.respond(session_id, request_id, principal, body.response)
    return ResponseTaken(requestId=request_id, state=state)
