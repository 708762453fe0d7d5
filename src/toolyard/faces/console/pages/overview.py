"""`/`: is everything well, what is going on, and what to do first."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from toolyard.core.clock import SystemClock
from toolyard.core.record import CallFilter
from toolyard.core.tool import Kind
from toolyard.faces.console.charts import minutes_chart, percentile
from toolyard.faces.console.inbox import follow_with_inbox
from toolyard.faces.console.visit import Visit
from toolyard.providers.supervisor import ProviderState

_SLOWEST = 6
_SAMPLE = 200


async def show(visit: Visit) -> Response:
    return visit.page("overview.html", **await _state(visit), first_steps=_first_steps(visit))


async def live(visit: Visit) -> Response:
    async def draw() -> str:
        return visit.html("parts/overview_live.html", **await _state(visit))

    return follow_with_inbox(visit, ("call", "provider", "catalog"), draw, at_most_every=1.0)


async def _state(visit: Visit) -> dict[str, Any]:
    app, now = visit.app, SystemClock().now()
    since = now - 3600
    counts = await app.calls.per_minute(since)
    metrics = await app.calls.tool_metrics(since)
    recent = (await app.calls.page(CallFilter(since=since), limit=_SAMPLE)).items
    durations = [record.duration * 1000 for record in recent if record.duration is not None]
    statuses = app.supervisor.statuses()
    calls, failed = sum(c.calls for c in counts), sum(c.failed for c in counts)
    return {
        "chart": minutes_chart(counts, now),
        "calls_in_hour": calls,
        "failed_in_hour": failed,
        "error_rate": failed / calls if calls else 0.0,
        "p50": percentile(durations, 0.5),
        "p95": percentile(durations, 0.95),
        "slowest": sorted((m for m in metrics if m.p95_ms is not None), key=lambda m: -(m.p95_ms or 0))[:_SLOWEST],
        "recent": recent[:6],
        "providers": sorted(statuses, key=lambda status: (status.state is ProviderState.UP, status.id)),
        "up": sum(status.state is ProviderState.UP for status in statuses),
        "tools": len(app.catalog.snapshot.entries),
        "unavailable": sum(not entry.available for entry in app.catalog.snapshot.entries),
    }


def _first_steps(visit: Visit) -> dict[str, Any]:
    """A tool that is safe to try: one of the demo's that reads, and needs no arguments."""
    snapshot = visit.app.catalog.snapshot
    entries = [entry for entry in snapshot.entries if entry.callable and entry.tool.kind is not Kind.BUILTIN]
    entries = [entry for entry in entries if visit.app.is_declared(entry.tool.namespace)] or entries
    reading = [entry for entry in entries if entry.tool.annotations.read_only]
    candidates = [entry for entry in reading if entry.tool.kind is Kind.OPENAPI] or reading or entries
    easy = [entry for entry in candidates if not entry.tool.input_schema.root.get("required")]
    return {"tool": next(iter(easy or candidates), None)}
