"""Tool definitions by provider, for inference servers that hand them to a model (seed s3)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from toolyard.catalog import Entry
from toolyard.core.errors import NotFound
from toolyard.core.principal import Scope
from toolyard.faces.http.access import Yard, needs
from toolyard.faces.http.gateway_models import GatewayProvider, GatewayTool, ProviderTools
from toolyard.faces.http.models import Listed
from toolyard.faces.http.paging import Page, cut

router = APIRouter(tags=["Providers"])
_SEE = (Scope.READ, Scope.CALL, Scope.MANAGE)


@router.get("/mcp/providers", **needs(*_SEE))
async def list_gateway_providers(yard: Yard, page: Annotated[Page, Query()]) -> Listed[GatewayProvider]:
    """The providers that have tools to offer, sorted by name."""
    snapshot = yard.catalog.snapshot
    found, next_cursor = cut(sorted(snapshot.shelves), page, key=lambda name: name)
    items = [GatewayProvider(name=name, tools=len(_offered(snapshot.shelves[name].entries))) for name in found]
    return Listed(items=items, next_cursor=next_cursor)


@router.get("/mcp/providers/{name}", **needs(*_SEE))
async def provider_tools(yard: Yard, name: str) -> ProviderTools:
    """Every tool of a provider that can be called now, with its schemas."""
    shelf = yard.catalog.snapshot.shelves.get(name)
    if shelf is None:
        raise NotFound(f"There is no provider {name[:100]!r}.", suggestion="List them with GET /v1/mcp/providers.")
    return ProviderTools(name=name, tools=[_tool(entry) for entry in _offered(shelf.entries)])


def _offered(entries: tuple[Entry, ...]) -> list[Entry]:
    return [entry for entry in entries if entry.callable]


def _tool(entry: Entry) -> GatewayTool:
    tool = entry.tool
    return GatewayTool(
        id=entry.id,
        name=tool.name,
        title=tool.title,
        description=entry.description,
        input_schema=dict(tool.input_schema.document()),
        output_schema=None if tool.output_schema is None else dict(tool.output_schema),
        annotations=dict(tool.annotations.to_wire()),
    )
