"""`/calls`: the audit log, live, filtered by the URL; one call with all that is known of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse

from toolyard.core.call import CallState, Origin
from toolyard.core.clock import SystemClock
from toolyard.core.errors import BadInput, NotFound
from toolyard.core.principal import Scope
from toolyard.core.record import CallFilter, CallRecord
from toolyard.faces.console.cards import cards_of
from toolyard.faces.console.inbox import follow_with_inbox
from toolyard.faces.console.pages.tryit import result_context
from toolyard.faces.console.rendering import path_part, shown_json
from toolyard.faces.console.visit import Visit

_ROWS = 50
_FILTERS = ("q", "tool", "namespace", "state", "principal", "origin", "server", "span")
SPANS = {"15m": ("15 minutes", 900), "1h": ("hour", 3600), "24h": ("24 hours", 86_400), "7d": ("7 days", 604_800)}
_CUT = 10_000


async def index(visit: Visit) -> Response:
    return visit.page("calls.html", **await _state(visit))


async def live(visit: Visit) -> Response:
    async def draw() -> str:
        return visit.html("parts/calls_live.html", **await _state(visit))

    return follow_with_inbox(visit, ("call",), draw, at_most_every=0.3)


async def _state(visit: Visit) -> dict[str, Any]:
    chosen = {name: visit.query.get(name, "").strip() for name in _FILTERS}
    cursor = visit.query.get("cursor") or None
    page = await visit.app.calls.page(_filter(visit), limit=_ROWS, cursor=cursor)
    return {
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "records": page.items,
        "next_cursor": page.next_cursor,
        "cursor": cursor,
        "query": urlencode({name: value for name, value in chosen.items() if value}),
        "states": list(CallState),
        "origins": list(Origin),
        "spans": SPANS,
    }


def _filter(visit: Visit) -> CallFilter:
    query = visit.query
    state, origin, span = query.get("state"), query.get("origin"), query.get("span")
    try:
        return CallFilter(
            tool=query.get("tool") or None,
            namespace=query.get("namespace") or None,
            state=CallState(state) if state else None,
            principal=query.get("principal") or None,
            origin=Origin(origin) if origin else None,
            server=query.get("server") or None,
            since=SystemClock().now() - SPANS[span][1] if span else None,
            q=query.get("q", "").strip() or None,
        )
    except (ValueError, KeyError) as error:
        raise BadInput(
            f"There is no such filter: {error}.", where="query", suggestion="Open the call log without filters."
        ) from error


async def show(visit: Visit) -> Response:
    return visit.page("call.html", **await _one(visit))


async def live_call(visit: Visit) -> Response:
    async def draw() -> str:
        return visit.html("parts/call_live.html", **await _one(visit))

    return follow_with_inbox(visit, ("call",), draw, at_most_every=0.5)


async def _one(visit: Visit) -> dict[str, Any]:
    record = await visit.app.calls.get(visit.part("call"))
    arguments = shown_json(await visit.app.calls.full_arguments(record))
    ended = await visit.app.calls.wait(record.id, 0.01) if record.state.is_final else None
    return {
        "record": record,
        "arguments": arguments[:_CUT],
        "arguments_cut": len(arguments) > _CUT,
        "result": await result_context(visit, record.id, ended),
        "timings": _timings(record),
        "tool_exists": visit.app.catalog.snapshot.get(record.tool) is not None,
        "gates": await cards_of(visit, await visit.app.approvals.of_call(record.id)),
        "may_cancel": not record.state.is_final,
    }


def _timings(record: CallRecord) -> dict[str, float] | None:
    """Seconds before the tool ran and while it ran, and their shares of 100 for the drawing."""
    if record.finished is None:
        return None
    started = record.started if record.started is not None else record.finished
    waited, ran = max(0.0, started - record.created), max(0.0, record.finished - started)
    whole = waited + ran or 1.0
    return {"waited": waited, "ran": ran, "total": waited + ran, "share": round(100 * waited / whole, 2)}


async def full(visit: Visit) -> Response:
    """The whole of the input or the output, as it is on record."""
    record = await visit.app.calls.get(visit.part("call"))
    if visit.part("part") == "input":
        content = await visit.app.calls.full_arguments(record)
    elif visit.part("part") == "output":
        content = await visit.app.calls.full_result(record.id)
    else:
        raise NotFound("A call has an input and an output, nothing else.")
    name = f"{record.id}-{visit.part('part')}.json"
    headers = {"Content-Disposition": f'inline; filename="{name}"'}
    return Response(content, media_type="application/json", headers=headers)


async def cancel(visit: Visit) -> Response:
    call_id = visit.part("call")
    cancelled = await visit.app.calls.cancel(call_id, visit.principal)
    if cancelled:
        await visit.app.calls.wait(call_id, 2.0)
    if visit.by_htmx and visit.posted.get("from") == "try":
        ended = await visit.app.calls.wait(call_id, 0.01)
        may_read = visit.principal.may(Scope.READ)
        return visit.page("parts/outcome.html", result=await result_context(visit, call_id, ended), may_read=may_read)
    return visit.go(f"/calls/{path_part(call_id)}")


async def export(visit: Visit) -> Response:
    """Everything that matches, newest first."""
    form: Literal["jsonl", "csv"] = "csv" if visit.query.get("format") == "csv" else "jsonl"
    name = f"calls-{datetime.now(UTC):%Y%m%d-%H%M%S}.{form}"
    return StreamingResponse(
        visit.app.calls.export(_filter(visit), form),
        media_type="text/csv; charset=utf-8" if form == "csv" else "application/jsonl",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
