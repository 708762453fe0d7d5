"""Resolution: from what somebody wants done to the actions that do it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field

from toolyard.catalog import Server
from toolyard.catalog.resolution import entities_of
from toolyard.core.errors import NotFound
from toolyard.core.principal import Scope
from toolyard.faces.http.access import Yard, needs
from toolyard.faces.http.models import Given, JsonMap
from toolyard.faces.http.validation import Strict

router = APIRouter(tags=["Tools"])
_WHOLE_CATALOG = Server("whole catalog")


class ResolveBody(Strict):
    integration_query: list[Annotated[str, Field(min_length=1, max_length=2_000)]] = Field(
        min_length=1,
        max_length=200,
        description="One entry per action: a verb, an object and the app's name.",
        examples=[["List Contacts Salesforce", "Create Note HubSpot"]],
    )
    server: str | None = Field(default=None, description="Only tools of this server; without it, of the whole catalog.")


class Entity(Given):
    slug: str
    type: Literal["action", "workflow"]
    identifier: str
    json_schema: JsonMap


@router.post("/resolve", **needs(Scope.CALL, Scope.READ, Scope.MANAGE))
async def resolve_actions(yard: Yard, body: ResolveBody) -> list[Entity] | str:
    """The actions for each entry, as RESOLVE_ACTIONS answers: the best of each entry first; a sentence where nothing
    matches. Nothing is run."""
    server = _WHOLE_CATALOG if body.server is None else yard.servers.get(body.server)
    if server is None:
        raise NotFound(f"There is no server {body.server!r}.", suggestion="List them with GET /v1/servers.")
    view = yard.catalog.snapshot.view(server)
    resolution = await yard.catalog.resolve(body.integration_query, within=view)
    if not resolution.hits:
        return resolution.sentence
    return [Entity.model_validate(entity) for entity in entities_of(resolution)]
