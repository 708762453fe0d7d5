"""Calls: the audit log, one call, its whole result, cancelling."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Header, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import AwareDatetime, Field

from toolyard.calls.export import to_wire
from toolyard.core.call import CallState, Origin
from toolyard.core.errors import BadInput, ErrorCode, NotFound
from toolyard.core.principal import Principal, Scope
from toolyard.core.record import CallFilter, CallRecord
from toolyard.faces.http.access import Who, Yard, needs
from toolyard.faces.http.calling import LONGEST_WAIT, waiting_out
from toolyard.faces.http.models import CallOut, CallSummary, Cancelled, Listed
from toolyard.faces.http.paging import Page

router = APIRouter(tags=["Calls"])
_OWN_OR_ALL = (Scope.READ, Scope.CALL)
_FORMS: tuple[tuple[str, Literal["jsonl", "csv"], str], ...] = (
    ("application/jsonl", "jsonl", "application/jsonl"),
    ("application/x-ndjson", "jsonl", "application/x-ndjson"),
    ("text/csv", "csv", "text/csv; charset=utf-8"),
)


class CallsQuery(Page):
    tool: str | None = None
    provider: str | None = Field(default=None, description="The namespace.")
    state: CallState | None = None
    code: ErrorCode | None = Field(default=None, description="Why it failed.")
    principal: str | None = Field(default=None, description="As shown in a record: `key:ci`.")
    origin: Origin | None = Field(default=None, description="The face it came through.")
    server: str | None = Field(default=None, description="The MCP server it came through.")
    session: str | None = Field(default=None, description="The session that the calls belong to.")
    since: AwareDatetime | None = Field(default=None, description="RFC 3339.")
    until: AwareDatetime | None = Field(default=None, description="RFC 3339.")
    q: str | None = Field(
        default=None, max_length=1000, description="Searched in tool, caller, arguments, result and error."
    )


@router.get(
    "/calls",
    **needs(*_OWN_OR_ALL),
    response_model=Listed[CallSummary],
    responses={
        200: {
            "description": "One page; or every match as an export, by the Accept header.",
            "content": {"application/jsonl": {}, "text/csv": {}},
        }
    },
)
async def list_calls(
    yard: Yard,
    principal: Who,
    query: Annotated[CallsQuery, Query()],
    accept: Annotated[str, Header()] = "application/json",
) -> Any:
    """The audit log, newest first. A key without the scope `read` sees its own calls.

    With `Accept: application/jsonl` or `text/csv` every match is exported, whole and streamed.
    """
    wanted = _filter(query, principal)
    for asked, form, media_type in _FORMS:
        if asked in accept.lower():
            headers = {"Content-Disposition": f'attachment; filename="calls.{form}"'}
            return StreamingResponse(yard.calls.export(wanted, form), media_type=media_type, headers=headers)
    page = await yard.calls.page(wanted, limit=query.limit, cursor=query.cursor)
    return {"items": [to_wire(record) for record in page.items], "next_cursor": page.next_cursor}


@router.get("/calls/{call_id}", **needs(*_OWN_OR_ALL), response_model=CallOut)
async def get_call(
    yard: Yard,
    principal: Who,
    call_id: str,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for its end.")] = 0,
) -> Any:
    """One call with its exact arguments, on any node; with `wait`, once it has ended or so many seconds have passed."""
    record = await _visible(yard, principal, call_id)
    if not record.state.is_final and wait > 0:
        await yard.calls.wait(call_id, wait)
        record = await yard.calls.get(call_id)
    waiting = None if record.waiting is None else (await yard.calls.outcome(call_id)).waiting
    arguments = await yard.calls.full_arguments(record)
    has_result = record.output_bytes is not None
    return {
        **to_wire(record),
        "arguments": orjson.loads(arguments),
        "result_url": f"/v1/calls/{call_id}/result" if has_result else None,
        "waiting": waiting and waiting_out(waiting),
    }


@router.get("/calls/{call_id}/result", **needs(*_OWN_OR_ALL), response_model=dict[str, Any])
async def get_result(yard: Yard, principal: Who, call_id: str) -> Response:
    """The whole result as the tool gave it, uncut: an MCP `CallToolResult`."""
    await _visible(yard, principal, call_id)
    return Response(
        await yard.calls.full_result(call_id),
        media_type="application/json",
        headers={"X-Content-Type-Options": "nosniff"},
    )


@router.post("/calls/{call_id}/cancel", **needs(Scope.CALL, Scope.MANAGE))
async def cancel_call(yard: Yard, principal: Who, call_id: str) -> Cancelled:
    """Cancel a running call; the provider is told. Somebody else's call needs the scope `manage`."""
    try:
        record = await yard.calls.get(call_id)
    except NotFound:  # a call that only reads is on record when it has ended
        if await yard.calls.cancel(call_id, principal):
            return Cancelled(id=call_id, cancelled=True)
        raise
    if not principal.may(Scope.MANAGE):
        _check_visible(record, principal)
    running = not record.state.is_final and await yard.calls.cancel(call_id, principal)
    return Cancelled(id=call_id, cancelled=running)


def _filter(query: CallsQuery, principal: Principal) -> CallFilter:
    if query.since and query.until and query.since >= query.until:
        raise BadInput("'since' is not before 'until'.", where="query:since")
    return CallFilter(
        tool=query.tool,
        namespace=query.provider,
        state=query.state,
        error_code=query.code,
        principal=query.principal if principal.may(Scope.READ) else principal.label,
        origin=query.origin,
        server=query.server,
        session=query.session,
        since=query.since.timestamp() if query.since else None,
        until=query.until.timestamp() if query.until else None,
        q=query.q,
    )


async def _visible(yard: Yard, principal: Principal, call_id: str) -> CallRecord:
    """
    Raises:
        NotFound: no such call, or one that the caller may not know of.
    """
    record = await yard.calls.get(call_id)
    _check_visible(record, principal)
    return record


def _check_visible(record: CallRecord, principal: Principal) -> None:
    if not principal.may(Scope.READ) and record.principal != principal.label:
        raise NotFound(f"There is no call {record.id!r}.")
