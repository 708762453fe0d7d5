"""Per-tool metrics from the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, Field

from toolyard.core.principal import Scope
from toolyard.faces.http.access import Yard, needs
from toolyard.faces.http.models import Listed, ToolMetricsOut
from toolyard.faces.http.validation import Strict

router = APIRouter(tags=["Metrics"])


class MetricsQuery(Strict):
    since: AwareDatetime | None = Field(default=None, description="RFC 3339; everything on record, when left out.")


@router.get("/metrics/tools", **needs(Scope.READ))
async def tool_metrics(yard: Yard, query: Annotated[MetricsQuery, Query()]) -> Listed[ToolMetricsOut]:
    """Calls, success and failure rate, response-time percentiles and token estimates per tool, busiest first."""
    found = await yard.calls.tool_metrics(query.since.timestamp() if query.since else 0.0)
    return Listed(items=[ToolMetricsOut.of(metrics) for metrics in found])
