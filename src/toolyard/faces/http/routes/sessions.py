"""Sessions: made with the tools of their client, read and followed by their numbered events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import Field

from toolyard.core.clock import rfc3339
from toolyard.core.errors import BadInput, Forbidden, Unauthenticated
from toolyard.core.principal import Scope
from toolyard.core.session import Session
from toolyard.durable.log import SessionEvent
from toolyard.faces.http.access import Who, Yard, needs
from toolyard.faces.http.models import Listed
from toolyard.faces.http.paging import Page
from toolyard.faces.http.session_models import (
    SessionBody,
    SessionEventOut,
    SessionMade,
    SessionOut,
    ToolEventBody,
    ToolEventMade,
)
from toolyard.faces.http.session_stream import SessionStream, event_to_wire

router = APIRouter(tags=["Sessions"])
_OWN_OR_ALL = (Scope.CALL, Scope.READ)


class EventsQuery(Page):
    after: int | None = Field(default=None, ge=0, le=2**53, description="Only events after this offset.")


@router.post("/sessions", **needs(Scope.CALL), status_code=201)
async def create_session(yard: Yard, principal: Who, body: SessionBody, response: Response) -> SessionMade:
    """Begin a session. `extensions.tools` are executed by the client itself, which learns of its calls by the event
    stream or at `GET /v1/tools/requests/{sessionId}`.
    """
    customizations = body.customizations.model_dump(by_alias=True, exclude_unset=True)
    session = await yard.sessions.create(principal, customizations)
    response.headers["Location"] = f"/v1/sessions/{session.id}"
    return SessionMade(sessionId=session.id)


@router.get("/sessions", **needs(*_OWN_OR_ALL))
async def list_sessions(yard: Yard, principal: Who, query: Annotated[Page, Query()]) -> Listed[SessionOut]:
    """Sessions, newest first. A key without the scope `read` sees its own."""
    found, cursor = await yard.sessions.page(principal, limit=query.limit, cursor=query.cursor)
    return Listed(items=[_out(session) for session in found], next_cursor=cursor)


@router.get("/sessions/{session_id}", **needs(*_OWN_OR_ALL))
async def get_session(yard: Yard, principal: Who, session_id: str) -> SessionOut:
    return _out(await yard.sessions.readable(session_id, principal))


@router.delete("/sessions/{session_id}", **needs(Scope.CALL, Scope.MANAGE), status_code=204)
async def delete_session(yard: Yard, principal: Who, session_id: str) -> None:
    """End a session: its open calls are cancelled, and nothing can be added to it."""
    await yard.sessions.delete(session_id, principal)


@router.get(
    "/sessions/{session_id}/events",
    **needs(*_OWN_OR_ALL),
    response_model=Listed[SessionEventOut],
    response_model_exclude_unset=True,
    responses={
        200: {
            "description": "A page, oldest first; with `Accept: text/event-stream` the events as they happen.",
            "content": {"text/event-stream": {}},
        }
    },
)
async def session_events(  # noqa: PLR0917 - FastAPI hands parameters over by name
    yard: Yard,
    principal: Who,
    request: Request,
    session_id: str,
    query: Annotated[EventsQuery, Query()],
    accept: Annotated[str, Header()] = "application/json",
    last_event_id: Annotated[str | None, Header()] = None,
) -> Any:
    """The session's log: offsets 1, 2, 3... without gaps, the same on every node.

    As a stream, each event's `id:` is its offset; come back with `Last-Event-ID` (or `after`) for what you missed.
    """
    session = await yard.sessions.readable(session_id, principal)
    if "text/event-stream" not in accept.lower():
        events = await yard.sessions.events(session_id, principal, after=_after(query), limit=query.limit + 1)
        return _page(events, query.limit)
    after = _last_event(last_event_id) if last_event_id is not None else _after(query)
    if after > session.seq:
        raise BadInput(
            f"The session {session_id} has {session.seq} events, so number {after} is not one of them.",
            where="header:Last-Event-ID" if last_event_id is not None else "query:after",
            suggestion="Event numbers belong to one session. Leave it out to read from the first event on.",
        )

    async def still_allowed() -> bool:
        try:
            return await yard.gate.principal(request.scope) == principal
        except (Unauthenticated, Forbidden):
            return False

    async def page(number: int, limit: int) -> Sequence[SessionEvent]:
        return await yard.sessions.events(session_id, principal, after=number, limit=limit)

    def follow(number: int) -> AsyncGenerator[SessionEvent, None]:
        return yard.sessions.follow(session_id, principal, after=number)

    return SessionStream(page, follow, after=after, still_allowed=still_allowed)


@router.post("/sessions/{session_id}/tool_events", **needs(Scope.CALL), status_code=201)
async def inject_tool_event(yard: Yard, principal: Who, session_id: str, body: ToolEventBody) -> ToolEventMade:
    """Add an event as if a tool had told it. The model sees it from the next turn on.

    The same `idempotency_key` again answers with the first event and adds nothing.
    """
    injected = await yard.sessions.inject(
        session_id,
        principal,
        tool_id=body.tool_id,
        arguments=body.arguments,
        result=body.result,
        idempotency_key=body.idempotency_key,
        trigger_processing=body.trigger_processing,
    )
    return ToolEventMade(event_id=injected.event_id, offset=injected.offset)


def _out(session: Session) -> SessionOut:
    return SessionOut(
        id=session.id,
        principal=session.principal,
        agent_id=session.agent_id,
        active_turn=session.active_turn,
        tools=sorted(session.tools),
        mcp_providers=list(session.mcp_providers),
        customizations=dict(session.customizations),
        meta=dict(session.meta),
        events=session.seq,
        created=rfc3339(session.created),
    )


def _page(events: Sequence[SessionEvent], limit: int) -> dict[str, Any]:
    shown = events[:limit]
    more = len(events) > limit
    return {"items": [event_to_wire(event) for event in shown], "next_cursor": str(shown[-1].seq) if more else None}


def _after(query: EventsQuery) -> int:
    """`after` for the first page; the cursor of the page before, which is such a number too, for the others."""
    if query.cursor is None:
        return query.after or 0
    return _number(query.cursor, where="query:cursor", suggestion="Use 'next_cursor' of the page before.")


def _last_event(text: str) -> int:
    return _number(
        text, where="header:Last-Event-ID", suggestion="Send the `id:` of the last event, or leave it out to read all."
    )


def _number(text: str, *, where: str, suggestion: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise BadInput(f"{text[:40]!r} is not the number of an event.", where=where, suggestion=suggestion)
    return int(text)
