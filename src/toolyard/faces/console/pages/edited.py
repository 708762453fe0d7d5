"""`/approvals/{id}/edit`: approve a call with other arguments, in the form that the tool's page has."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from toolyard.catalog import Entry
from toolyard.core.errors import BadInput, CallError, Conflict, Forbidden, NotFound, ToolyardError
from toolyard.core.json import JsonObject
from toolyard.faces.console.arguments import Change, changes
from toolyard.faces.console.cards import Card, card_of
from toolyard.faces.console.forms.shapes import obj
from toolyard.faces.console.forms.sources import Absent
from toolyard.faces.console.pages import tryit
from toolyard.faces.console.pages.approvals import decided
from toolyard.faces.console.pages.tryit import Draft
from toolyard.faces.console.rendering import path_part
from toolyard.faces.console.visit import Visit


async def show(visit: Visit) -> Response:
    card, entry = await _request(visit)
    if card.record.is_decided or not card.may_decide:
        return visit.go(_url(card))
    return _answer(visit, card, entry, tryit.drawn(entry, card.arguments))


async def redraw(visit: Visit) -> Response:
    card, entry = await _request(visit)
    return _answer(visit, card, entry, tryit.read(entry, visit.posted))


async def differences(visit: Visit) -> Response:
    """What the form would change as it stands: asked while somebody types."""
    card, entry = await _request(visit)
    draft = tryit.read(entry, visit.posted)
    return visit.page("parts/changes.html", changed=_changed(card, draft), draft=draft)


async def approve(visit: Visit) -> Response:
    card, entry = await _request(visit)
    draft = tryit.read(entry, visit.posted)
    if draft.problems:
        return _answer(visit, card, entry, draft)
    if card.destructive and visit.posted.get("confirmed") != "1" and not card.record.is_decided:
        return _answer(visit, card, entry, draft, confirming=True)
    arguments = _arguments(draft)
    visit.posted.pairs.append(("decision", "approve"))
    try:
        await decided(visit, card.record.id, arguments=arguments if _changed(card, draft) else None)
    except Conflict:
        return visit.go(_url(card))
    except (BadInput, CallError, Forbidden) as error:
        marked = tryit.with_problems(draft, entry, arguments)
        return _answer(visit, card, entry, marked, error=None if marked.problems else error)
    return visit.go("/approvals?notice=approved-edited")


async def _request(visit: Visit) -> tuple[Card, Entry]:
    """
    Raises:
        NotFound: no such request, or its tool is gone, so that nothing can be checked against it.
    """
    card = await card_of(visit, await visit.app.approvals.get(visit.part("approval")))
    if card.entry is None:
        raise NotFound(
            f"The tool {card.record.tool} is gone, so its arguments cannot be edited.",
            suggestion="Reject the request, or wait until its provider is back.",
        )
    return card, card.entry


def _arguments(draft: Draft) -> JsonObject:
    return obj(None if isinstance(draft.arguments, Absent) else draft.arguments)


def _changed(card: Card, draft: Draft) -> list[Change]:
    return changes(card.arguments, _arguments(draft))


def _url(card: Card) -> str:
    return f"/approvals/{path_part(card.record.id)}"


def _answer(
    visit: Visit,
    card: Card,
    entry: Entry,
    draft: Draft,
    *,
    confirming: bool = False,
    error: ToolyardError | None = None,
) -> Response:
    context: dict[str, Any] = {
        "card": card,
        "entry": entry,
        "draft": draft,
        "changed": _changed(card, draft),
        "confirming": confirming,
        "error": error,
        "scope": visit.posted.get("scope") or "once",
    }
    if visit.by_htmx:
        return visit.page("parts/edit.html", **context)
    return visit.page("approval_edit.html", **context, path=f"{_url(card)}/edit")
