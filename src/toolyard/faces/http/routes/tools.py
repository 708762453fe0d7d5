"""Tools: found, shown, overridden by operators, called."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response
from pydantic import Field

from toolyard.catalog import Entry, Hit, ToolSettings
from toolyard.core.call import CallRequest, Origin
from toolyard.core.errors import BadInput, Conflict, NotFound
from toolyard.core.names import split_tool_id
from toolyard.core.principal import Scope
from toolyard.core.tool import Kind
from toolyard.faces.http.access import Who, Yard, needs
from toolyard.faces.http.calling import LONGEST_WAIT, answer_call
from toolyard.faces.http.idempotency import checked_key
from toolyard.faces.http.models import (
    CallBody,
    CallEnded,
    CallStarted,
    Listed,
    ToolOut,
    ToolPatch,
    ToolPolicy,
)
from toolyard.faces.http.paging import Page, cut

router = APIRouter(tags=["Tools"])
_SEE = (Scope.CALL, Scope.READ, Scope.MANAGE)


class ToolsQuery(Page):
    cluster: str | None = None
    provider: str | None = Field(default=None, description="The namespace.")
    kind: Kind | None = None
    q: str | None = Field(default=None, max_length=1000, description="Search; the best come first, on one page.")
    schemas: bool = Field(default=True, description="With the schemas of each tool.")

    @property
    def is_filtered(self) -> bool:
        return any(wanted is not None for wanted in (self.cluster, self.provider, self.kind))


@router.get("/tools", **needs(*_SEE))
async def list_tools(yard: Yard, query: Annotated[ToolsQuery, Query()]) -> Listed[ToolOut]:
    """The tools of the catalog, sorted by id; with `q`, the best matches first."""
    if query.q is not None:
        only = partial(_wanted, query=query) if query.is_filtered else None
        hits = await yard.catalog.search(query.q, limit=query.limit, prefixes=True, only=only)
        return Listed(items=[_hit_out(hit, schemas=query.schemas) for hit in hits])
    entries = [entry for entry in yard.catalog.snapshot.entries if _wanted(entry, query)]
    page, next_cursor = cut(entries, query, key=lambda entry: entry.id)
    return Listed(items=[tool_out(entry, schemas=query.schemas) for entry in page], next_cursor=next_cursor)


@router.post(
    "/tools/{tool_id:path}/call",
    **needs(Scope.CALL),
    response_model=CallEnded,
    responses={202: {"model": CallStarted, "description": "Still running or waiting: ask at `Location`."}},
)
async def call_tool(  # noqa: PLR0917 - FastAPI hands parameters over by name
    yard: Yard,
    principal: Who,
    tool_id: str,
    body: CallBody,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for the end.")] = 30,
    idempotency_key: Annotated[str | None, Header(max_length=255)] = None,
) -> Response:
    """Call a tool.

    A tool that ran and failed is an answer: 200 with `state: ERROR`. A call that never reached its tool is the
    request's fault: 404, 422 or 403, and on record all the same.
    """
    if body.session is not None:
        await yard.sessions.get(body.session, principal)
    request = CallRequest(
        tool=tool_id,
        arguments=body.arguments,
        principal=principal,
        origin=Origin.HTTP,
        server=body.server,
        idempotency_key=None if idempotency_key is None else checked_key(idempotency_key),
        recorded_first=True,
        session=body.session,
    )
    return await answer_call(yard, request, wait)


@router.get("/tools/{tool_id:path}", **needs(*_SEE))
async def get_tool(yard: Yard, tool_id: str) -> ToolOut:
    """One tool, with its schemas and the operator's overrides."""
    return tool_out(_entry(yard, tool_id))


@router.patch("/tools/{tool_id:path}", **needs(Scope.MANAGE))
async def override_tool(yard: Yard, tool_id: str, body: ToolPatch) -> ToolOut:
    """Override a tool for everybody: switch it off, have somebody asked, limit its time, describe it better."""
    entry = _entry(yard, tool_id)
    await yard.set_tool_settings(tool_id, _changed(entry.settings, body))
    return tool_out(_entry(yard, tool_id))


@router.delete("/tools/{tool_id:path}", **needs(Scope.MANAGE), status_code=204)
async def delete_tool(yard: Yard, tool_id: str) -> None:
    """Only custom tools can be deleted one by one, and there are none yet."""
    tool = _entry(yard, tool_id).tool
    raise Conflict(
        f"{tool_id} comes from the provider '{tool.namespace}' and would come back with its next refresh.",
        suggestion=f"Switch it off (PATCH with enabled: false), or delete the cluster or the provider of this "
        f"{tool.kind} tool.",
    )


def tool_out(entry: Entry, *, schemas: bool = True) -> ToolOut:
    tool, settings = entry.tool, entry.settings
    return ToolOut(
        id=entry.id,
        namespace=tool.namespace,
        name=tool.name,
        direct_name=tool.direct_name,
        title=tool.title,
        description=entry.description,
        kind=tool.kind,
        cluster=entry.cluster,
        tags=list(tool.tags),
        method=tool.origin.get("method"),
        path=tool.origin.get("path"),
        annotations=tool.annotations.to_wire(),
        action_class=tool.action_class,
        available=entry.available,
        callable=entry.callable,
        reason=entry.reason,
        policy=ToolPolicy(
            enabled=settings.enabled,
            approval=settings.approval,
            time_limit=settings.time_limit,
            description=settings.description,
            task=settings.task,
        ),
        input_schema=dict(tool.input_schema.document()) if schemas else None,
        output_schema=dict(tool.output_schema) if schemas and tool.output_schema is not None else None,
    )


def _hit_out(hit: Hit, *, schemas: bool) -> ToolOut:
    return tool_out(hit.entry, schemas=schemas).model_copy(update={"score": hit.score, "match": hit.reason})


def _wanted(entry: Entry, query: ToolsQuery) -> bool:
    return (
        (query.cluster is None or entry.cluster == query.cluster)
        and (query.provider is None or entry.tool.namespace == query.provider)
        and (query.kind is None or entry.tool.kind is query.kind)
    )


def _entry(yard: Yard, tool_id: str) -> Entry:
    entry = yard.catalog.snapshot.get(tool_id)
    if entry is None:
        split_tool_id(tool_id)
        raise NotFound(f"There is no tool {tool_id[:200]!r}.", suggestion="Search with GET /v1/tools?q=...")
    return entry


def _changed(settings: ToolSettings, body: ToolPatch) -> ToolSettings:
    """
    Raises:
        BadInput: nothing to change.
    """
    given = body.model_dump(exclude_unset=True)
    if not given:
        raise BadInput("There is nothing to change.", suggestion=f"Give one of {', '.join(ToolPatch.model_fields)}.")
    if given.get("enabled", True) is None:
        given["enabled"] = True
    return replace(settings, **given)
