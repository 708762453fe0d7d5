"""Per-tool metrics from the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, Field

from toolyard.catalog import Entry
from toolyard.core.json import dumps
from toolyard.core.principal import Scope
from toolyard.faces.http.access import Yard, needs
from toolyard.faces.http.models import Listed, ToolMetricsOut
from toolyard.faces.http.validation import Strict

BYTES_PER_TOKEN = 4
"""A rough mean over English text and JSON."""
router = APIRouter(tags=["Metrics"])


class MetricsQuery(Strict):
    since: AwareDatetime | None = Field(default=None, description="RFC 3339; everything on record, when left out.")


@router.get("/metrics/tools", **needs(Scope.READ))
async def tool_metrics(yard: Yard, query: Annotated[MetricsQuery, Query()]) -> Listed[ToolMetricsOut]:
    """Calls, success and failure rate, response-time percentiles and token estimates per tool, busiest first."""
    found = await yard.calls.tool_metrics(query.since.timestamp() if query.since else 0.0)
    snapshot = yard.catalog.snapshot
    return Listed(items=[ToolMetricsOut.of(metrics, _schema_tokens(snapshot.get(metrics.tool))) for metrics in found])


def _schema_tokens(entry: Entry | None) -> int | None:
    """What a model pays to be told about the tool; None for one that is gone."""
    if entry is None:
        return None
    tool = entry.tool
    return len(dumps([tool.name, entry.description, tool.input_schema.document()])) // BYTES_PER_TOKEN
