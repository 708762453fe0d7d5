"""The operator's event stream."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import Field

from toolyard.core.errors import BadInput, ToolyardError
from toolyard.core.names import did_you_mean
from toolyard.core.principal import Scope
from toolyard.faces.http.access import Yard, needs
from toolyard.faces.http.stream import EventStream
from toolyard.faces.http.validation import Strict

router = APIRouter(tags=["Events"])
TOPICS = ("approval", "call", "catalog", "provider")


class EventsQuery(Strict):
    topics: str | None = Field(
        default=None, max_length=200, description=f"Some of {', '.join(TOPICS)}, with commas; or all."
    )
    after: int | None = Field(default=None, ge=0, description="As `Last-Event-ID`, for those who cannot send it.")


@router.get(
    "/events",
    **needs(Scope.READ),
    response_class=Response,
    status_code=200,
    responses={200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}},
)
async def stream_events(
    yard: Yard,
    request: Request,
    query: Annotated[EventsQuery, Query()],
    last_event_id: Annotated[str | None, Header()] = None,
) -> Any:
    """What happens, as it happens: approvals, calls, providers, the catalog. `id:` numbers grow; a reader that comes
    back with `Last-Event-ID` gets what it missed, or the event `missed` when that is too long ago.
    """

    async def still_allowed() -> bool:
        try:
            return (await yard.gate.principal(request.scope)).may(Scope.READ)
        except ToolyardError:
            return False

    after = _number(last_event_id) if last_event_id is not None else query.after
    return EventStream(yard.bus, _topics(query.topics), after=after, still_allowed=still_allowed)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise BadInput("Last-Event-ID is not one of ours.", where="header:Last-Event-ID", suggestion="Leave it out.")
    return int(text)


def _topics(text: str | None) -> tuple[str, ...]:
    if text is None:
        return TOPICS
    topics = tuple(part.strip() for part in text.split(","))
    for topic in topics:
        if topic not in TOPICS:
            known = did_you_mean(topic, TOPICS) or f"Known are {', '.join(TOPICS)}."
            raise BadInput(f"There is no topic {topic[:40]!r}.", where="query:topics", suggestion=known)
    return topics
