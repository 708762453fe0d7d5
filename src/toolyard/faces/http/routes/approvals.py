"""Approvals: what waits for a decision, and the decision."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from toolyard.core.approval import AlreadyDecided, ApprovalRecord
from toolyard.core.call import Origin
from toolyard.core.clock import rfc3339
from toolyard.core.errors import NotFound
from toolyard.core.principal import Principal, Scope
from toolyard.faces.http.access import Who, Yard, needs
from toolyard.faces.http.models import Listed
from toolyard.faces.http.paging import Page
from toolyard.faces.http.problems import problem
from toolyard.faces.http.session_models import ApprovalOut, DecisionBody

router = APIRouter(tags=["Approvals"])
_QUEUE = (Scope.APPROVE, Scope.READ, Scope.MANAGE)


class ApprovalsQuery(Page):
    state: Literal["pending", "decided"] | None = Field(default=None, description="Both, when left out.")
    session: str | None = Field(default=None, max_length=200)


@router.get("/approvals", **needs(*_QUEUE, Scope.CALL))
async def list_approvals(yard: Yard, principal: Who, query: Annotated[ApprovalsQuery, Query()]) -> Listed[ApprovalOut]:
    """Pending decisions, the longest waiting first; decided ones newest first.

    A key that only calls sees those of its own calls.
    """
    page = await yard.approvals.page(
        query.state,
        limit=query.limit,
        cursor=query.cursor,
        principal=None if _sees_all(principal) else principal.label,
        session=query.session,
    )
    origins = await yard.calls.origins([record.call_id for record in page.items])
    items = [_shown(yard, record, origins.get(record.call_id)) for record in page.items]
    return Listed(items=items, next_cursor=page.next_cursor)


@router.get("/approvals/{approval_id}", **needs(*_QUEUE, Scope.CALL))
async def get_approval(yard: Yard, principal: Who, approval_id: str) -> ApprovalOut:
    """One of them. A key that only calls sees those of its own calls."""
    return await _out(yard, await _visible(yard, principal, approval_id))


@router.post(
    "/approvals/{approval_id}",
    **needs(Scope.APPROVE, Scope.MANAGE, Scope.CALL),
    response_model=ApprovalOut,
    responses={409: {"description": "Decided already; `approval` holds the first decision."}},
)
async def decide(yard: Yard, principal: Who, approval_id: str, body: DecisionBody) -> Any:
    """Approve, approve with other arguments, or reject. The first decision counts.

    The gate `operator` needs the scope `approve` and somebody else than the caller; the gate `user` is decided by the
    session's own principal, and by nobody else.
    """
    await _visible(yard, principal, approval_id)
    try:
        decided = await yard.approvals.decide(
            approval_id,
            decision=body.decision,
            principal=principal,
            reason=body.reason,
            arguments=body.arguments,
            scope=body.scope,
        )
    except AlreadyDecided as error:
        return await _conflict(yard, error)
    return await _out(yard, decided)


async def _conflict(yard: Yard, error: AlreadyDecided) -> Response:
    first = await _out(yard, error.approval)
    return problem(
        409, "conflict", error.message, suggestion=error.suggestion, more={"approval": first.model_dump(mode="json")}
    )


async def _visible(yard: Yard, principal: Principal, approval_id: str) -> ApprovalRecord:
    """
    Raises:
        NotFound: no such approval, or one that the caller may not know of.
    """
    record = await yard.approvals.get(approval_id)
    if record.principal != principal.label and not _sees_all(principal):
        raise NotFound(f"There is no approval {approval_id[:200]!r}.")
    return record


def _sees_all(principal: Principal) -> bool:
    return any(principal.may(scope) for scope in _QUEUE)


async def _out(yard: Yard, record: ApprovalRecord) -> ApprovalOut:
    origins = await yard.calls.origins([record.call_id])
    return _shown(yard, record, origins.get(record.call_id))


def _shown(yard: Yard, record: ApprovalRecord, origin: Origin | None) -> ApprovalOut:
    """`origin` is None when the record of the call was deleted with old ones."""
    left = None if record.is_decided else max(0.0, round(record.deadline - yard.clock.now(), 3))
    return ApprovalOut(
        id=record.id,
        call_id=record.call_id,
        state="decided" if record.is_decided else "pending",
        gate=record.gate,
        tool=record.tool,
        arguments=_parsed(record.arguments),
        principal=record.principal,
        origin=origin,
        server=record.server,
        session_id=record.session_id,
        why=record.why,
        created=rfc3339(record.created),
        deadline=rfc3339(record.deadline),
        seconds_left=left,
        decision=record.decision,
        decided_by=record.decided_by,
        decided_at=None if record.decided_at is None else rfc3339(record.decided_at),
        reason=record.reason,
        edited_arguments=_parsed(record.edited_arguments),
        scope=record.scope,
        url=f"{yard.settings.url}/approvals/{record.id}",
    )


def _parsed(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)
