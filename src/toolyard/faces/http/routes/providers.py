"""Providers: where tools come from, how they are, and how to change them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response

from toolyard.app.imports import UPLOADED
from toolyard.core.clock import rfc3339
from toolyard.core.errors import BadInput, NotFound
from toolyard.core.principal import Principal, Scope
from toolyard.faces.http.access import Who, Yard, needs
from toolyard.faces.http.models import JsonMap, Listed, ProviderOut
from toolyard.faces.http.paging import Page, cut
from toolyard.faces.http.routes.provider_changes import merged
from toolyard.manifest import (
    McpConfig,
    OpenApiConfig,
    PluginConfig,
    ProviderConfig,
    PythonConfig,
    dump_provider,
    parse_provider,
)
from toolyard.providers.supervisor import ProviderStatus

router = APIRouter(tags=["Providers"])
_SEE = (Scope.READ, Scope.MANAGE)
_ENTRY: Any = Body(
    description="As an entry of the manifest's `providers`. Commands, Python modules and files need the scope `admin`.",
    examples=[{"id": "crm", "kind": "mcp", "url": "https://crm.example.com/mcp"}],
)


@router.get("/providers", **needs(*_SEE))
async def list_providers(yard: Yard, page: Annotated[Page, Query()]) -> Listed[ProviderOut]:
    """Every provider and how it is, sorted by id."""
    statuses = sorted(yard.supervisor.statuses(), key=lambda status: status.id)
    found, next_cursor = cut(statuses, page, key=lambda status: status.id)
    return Listed(items=[_provider_out(yard, status) for status in found], next_cursor=next_cursor)


@router.post("/providers", **needs(Scope.MANAGE), status_code=201)
async def add_provider(yard: Yard, principal: Who, response: Response, body: Annotated[JsonMap, _ENTRY]) -> ProviderOut:
    """Add a provider and contact it. One that does not answer is kept, shown as down, and tried again."""
    config = parse_provider(body)
    _require_admin_for_this_machine(config, principal)
    status = await yard.add_provider(config)
    response.headers["Location"] = f"/v1/providers/{config.id}"
    return _provider_out(yard, status)


@router.get("/providers/{provider_id}", **needs(*_SEE))
async def get_provider(yard: Yard, provider_id: str) -> ProviderOut:
    """One provider and how it is."""
    return _provider_out(yard, _status(yard, provider_id))


@router.patch("/providers/{provider_id}", **needs(Scope.MANAGE))
async def change_provider(
    yard: Yard, principal: Who, provider_id: str, body: Annotated[JsonMap, _ENTRY]
) -> ProviderOut:
    """Change the fields that are given; null goes back to the default. A secret shown as `***` stays as it is."""
    _status(yard, provider_id)
    present = yard.provider_config(provider_id)
    if present is None:
        raise BadInput(f"{provider_id!r} is built in and has nothing to change.")
    config = parse_provider(merged(dump_provider(present, reveal=True), body))
    _require_admin_for_this_machine(config, principal)
    return _provider_out(yard, await yard.update_provider(config))


@router.delete("/providers/{provider_id}", **needs(Scope.MANAGE), status_code=204)
async def delete_provider(yard: Yard, provider_id: str) -> None:
    """Remove a provider and all its tools."""
    await yard.remove_provider(provider_id)


@router.post("/providers/{provider_id}/refresh", **needs(Scope.MANAGE))
async def refresh_provider(yard: Yard, provider_id: str) -> ProviderOut:
    """Ask a provider for its tools again, now."""
    _status(yard, provider_id)
    return _provider_out(yard, await yard.refresh_provider(provider_id))


def _require_admin_for_this_machine(config: ProviderConfig, principal: Principal) -> None:
    """Running a program, importing code and reading a file are the server's own powers, not those of a key that
    manages tools (docs/decisions/050).

    Raises:
        Forbidden
    """
    uses_the_machine = (
        isinstance(config, PythonConfig | PluginConfig)
        or (isinstance(config, McpConfig) and config.command is not None)
        or (isinstance(config, OpenApiConfig) and config.is_file)
    )
    if uses_the_machine:
        principal.require(Scope.ADMIN)


def _status(yard: Yard, provider_id: str) -> ProviderStatus:
    """
    Raises:
        NotFound
    """
    if yard.supervisor.provider(provider_id) is None:
        raise NotFound(f"There is no provider {provider_id[:100]!r}.", suggestion="List them with GET /v1/providers.")
    return yard.supervisor.status(provider_id)


def _provider_out(yard: Yard, status: ProviderStatus) -> ProviderOut:
    config = yard.provider_config(status.id)
    return ProviderOut(
        id=status.id,
        kind=status.kind,
        address=status.address,
        state=status.state.value,
        era=status.era,
        latency_ms=status.latency_ms,
        last_error=status.last_error,
        tool_count=status.tool_count,
        skipped=[*status.skipped, *_left_out(yard, status.id)],
        since=rfc3339(status.since),
        required=status.required,
        retry_at=None if status.retry_at is None else rfc3339(status.retry_at),
        declared=yard.is_declared(status.id),
        config=None if config is None else _shown(config),
    )


def _shown(config: ProviderConfig) -> dict[str, Any]:
    shown = dict(dump_provider(config, reveal=False))
    if shown.get("url") == UPLOADED:
        del shown["url"]
    return shown


def _left_out(yard: Yard, namespace: str) -> list[str]:
    """What the catalog itself would not take."""
    problems = yard.catalog.snapshot.problems
    return [f"{problem.name!r}: {problem.reason}" for problem in problems if problem.namespace == namespace]
