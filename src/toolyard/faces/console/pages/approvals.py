"""`/approvals`: the queue of calls that wait for a decision, live; one request; what was decided."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from toolyard.core.approval import ApprovalRecord, ApprovalScope, Decision
from toolyard.core.errors import BadInput, CallError, Conflict, Forbidden, ToolyardError
from toolyard.core.json import JsonObject
from toolyard.faces.console.cards import Card, card_of, cards_of
from toolyard.faces.console.inbox import follow_with_inbox
from toolyard.faces.console.rendering import path_part
from toolyard.faces.console.visit import Visit

_ROWS = 50
_LINGER = 30.0
"""Seconds for which a request that was decided elsewhere stays on the page, saying by whom."""
_REFRESH = 5.0
"""Seconds after which the time left is drawn again."""
_LONGEST_REASON = 2000
_FILTERS = ("decision", "tool", "principal", "decided_by")
TOPICS = ("approval",)


async def index(visit: Visit) -> Response:
    cursor = visit.query.get("cursor") or None
    page = await visit.app.approvals.page("pending", limit=_ROWS, cursor=cursor)
    return visit.page(
        "approvals.html",
        cards=await cards_of(visit, page.items),
        next_cursor=page.next_cursor,
        cursor=cursor,
        **_asking(),
    )


async def live(visit: Visit) -> Response:
    """The first page of the queue; what leaves it is shown decided for a while, in its place."""
    queue = _Queue(visit)
    return follow_with_inbox(visit, TOPICS, queue.draw, at_most_every=0.2, again=_REFRESH)


class _Queue:
    """What one open page was shown."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._waiting: set[str] = set()
        self._decided: dict[str, ApprovalRecord] = {}

    async def draw(self) -> str:
        visit, now = self._visit, self._visit.app.clock.now()
        page = await visit.app.approvals.page("pending", limit=_ROWS, cursor=None)
        waiting = {record.id for record in page.items}
        for approval_id in self._waiting - waiting:
            record = await visit.app.approvals.get(approval_id)
            if record.is_decided:
                self._decided[approval_id] = record
        self._waiting = waiting
        self._decided = {
            key: record for key, record in self._decided.items() if now - (record.decided_at or now) < _LINGER
        }
        shown = sorted([*page.items, *self._decided.values()], key=lambda record: (record.created, record.id))
        return visit.html(
            "parts/approvals_live.html",
            cards=await cards_of(visit, shown),
            next_cursor=page.next_cursor,
            cursor=None,
            **_asking(),
        )


async def show(visit: Visit) -> Response:
    return visit.page("approval.html", card=await _card(visit), **_asking(whole=True))


async def live_one(visit: Visit) -> Response:
    await _card(visit)  # an unknown one is told before the stream begins

    async def draw() -> str:
        return visit.html("parts/approval_live.html", card=await _card(visit), **_asking(whole=True))

    return follow_with_inbox(visit, TOPICS, draw, at_most_every=0.2, again=_REFRESH)


async def _card(visit: Visit) -> Card:
    return await card_of(visit, await visit.app.approvals.get(visit.part("approval")))


def _asking(**said: Any) -> dict[str, Any]:
    """How a card is drawn: alone on its page (`whole`), as the answer to its form (`focused`), with its question."""
    error: ToolyardError | None = None
    plain: dict[str, Any] = {"whole": False, "focused": False, "confirming": False, "error": error, "scope": "once"}
    return plain | said


async def decide(visit: Visit) -> Response:
    """Approve or reject. A destructive tool asks once more; what cannot be decided any more says who did."""
    card = await _card(visit)
    posted = visit.posted
    approving = posted.get("decision") == "approve"
    scope = posted.get("scope") or "once"
    if approving and card.destructive and posted.get("confirmed") != "1" and not card.record.is_decided:
        return _answer(visit, card, confirming=True, scope=scope)
    try:
        await decided(visit, card.record.id)
    except (Forbidden, BadInput, CallError) as error:
        return _answer(visit, await _card(visit), code=422, error=error, scope=scope)
    except Conflict:
        return _answer(visit, await _card(visit))
    if not visit.by_htmx:
        return visit.go(f"/approvals?notice={'approved' if approving else 'rejected'}")
    return _answer(visit, await _card(visit))


async def decided(visit: Visit, approval_id: str, *, arguments: JsonObject | None = None) -> ApprovalRecord:
    """Write what the form says.

    Raises:
        AlreadyDecided, Forbidden, NotFound
        BadInput, CallError: the reason or the edited arguments cannot be accepted; nothing is decided.
    """
    posted = visit.posted
    choice, reason = posted.get("decision"), posted.get("reason").replace("\r\n", "\n")
    if choice not in ("approve", "reject"):
        raise BadInput("A decision is to approve or to reject.", where="decision")
    if len(reason) > _LONGEST_REASON:
        raise BadInput(
            f"A reason holds at most {_LONGEST_REASON:,} characters; this has {len(reason):,}.", where="reason"
        )
    for_session = choice == "approve" and posted.get("scope") == "session"
    return await visit.app.approvals.decide(
        approval_id,
        decision=choice,
        principal=visit.principal,
        reason=reason or None,
        arguments=arguments,
        scope=ApprovalScope.SESSION if for_session else ApprovalScope.ONCE,
    )


def _answer(visit: Visit, card: Card, *, code: int = 200, **said: Any) -> Response:
    if visit.by_htmx:
        alone = visit.posted.get("page") == "one"
        drawn = _asking(whole=alone, focused=True, **said)
        return visit.page("parts/approval_card.html", code=code, card=card, **drawn)
    path = f"/approvals/{path_part(card.record.id)}"
    return visit.page("approval.html", code=code, card=card, path=path, **_asking(whole=True, **said))


async def history(visit: Visit) -> Response:
    chosen = {name: visit.query.get(name, "").strip() for name in _FILTERS}
    cursor = visit.query.get("cursor") or None
    try:
        decision = Decision(chosen["decision"]) if chosen["decision"] else None
    except ValueError:
        raise BadInput(
            f"There is no decision {chosen['decision'][:40]!r}.",
            where="decision",
            suggestion="Open the history without filters.",
        ) from None
    page = await visit.app.approvals.page(
        "decided",
        limit=_ROWS,
        cursor=cursor,
        decision=decision,
        tool=chosen["tool"] or None,
        principal=chosen["principal"] or None,
        decided_by=chosen["decided_by"] or None,
    )
    return visit.page(
        "approval_history.html",
        cards=await cards_of(visit, page.items),
        next_cursor=page.next_cursor,
        cursor=cursor,
        chosen=chosen,
        filtered=any(chosen.values()),
        query=urlencode({name: value for name, value in chosen.items() if value}),
        decisions=DECISIONS,
    )


DECISIONS = {
    Decision.APPROVE: "Approved",
    Decision.REJECT: "Rejected",
    Decision.TIMEOUT: "Expired",
    Decision.CANCELLED: "Cancelled",
}
