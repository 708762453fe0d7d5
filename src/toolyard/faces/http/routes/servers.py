"""Servers: the MCP endpoints that we serve, each a slice of the catalog."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response

from toolyard.app.servers import config_of, server_of
from toolyard.catalog import Server
from toolyard.core.errors import BadInput, Conflict, NotFound
from toolyard.core.principal import Scope
from toolyard.faces.http.access import Yard, needs
from toolyard.faces.http.models import JsonMap, Listed, ServerOut
from toolyard.faces.http.paging import Page, cut
from toolyard.manifest import dump_server, parse_server

router = APIRouter(tags=["Servers"])
_SEE = (Scope.READ, Scope.CALL, Scope.MANAGE)
_ENTRY: Any = Body(
    description="As an entry of the manifest's `servers`.",
    examples=[{"id": "sales", "tools": ["crm:*", "!crm:delete*"], "names": "bare"}],
)


@router.get("/servers", **needs(*_SEE))
async def list_servers(yard: Yard, page: Annotated[Page, Query()]) -> Listed[ServerOut]:
    """Every MCP endpoint, sorted by id."""
    servers = sorted(yard.servers.values(), key=lambda server: server.id)
    found, next_cursor = cut(servers, page, key=lambda server: server.id)
    return Listed(items=[_server_out(yard, server) for server in found], next_cursor=next_cursor)


@router.post("/servers", **needs(Scope.MANAGE), status_code=201)
async def make_server(yard: Yard, response: Response, body: Annotated[JsonMap, _ENTRY]) -> ServerOut:
    """Open another MCP endpoint."""
    server = server_of(parse_server(body))
    if server.id in yard.servers:
        raise Conflict(f"There is a server {server.id!r} already.", suggestion="Change it with PATCH.")
    await yard.save_server(server)
    response.headers["Location"] = f"/v1/servers/{server.id}"
    return _server_out(yard, server)


@router.get("/servers/{server_id}", **needs(*_SEE))
async def get_server(yard: Yard, server_id: str) -> ServerOut:
    """One MCP endpoint."""
    return _server_out(yard, _known(yard, server_id))


@router.patch("/servers/{server_id}", **needs(Scope.MANAGE))
async def change_server(yard: Yard, server_id: str, body: Annotated[JsonMap, _ENTRY]) -> ServerOut:
    """Change the fields that are given; null goes back to the default. Connected clients are told."""
    before = _known(yard, server_id)
    if body.get("id", server_id) != server_id:
        raise BadInput("The id of a server cannot change.", where="/id", suggestion="Make a new one and delete this.")
    entry = {**dump_server(config_of(before)), "id": server_id, **body}
    after = server_of(parse_server({name: value for name, value in entry.items() if value is not None}))
    await yard.save_server(after)
    return _server_out(yard, after)


@router.delete("/servers/{server_id}", **needs(Scope.MANAGE), status_code=204)
async def delete_server(yard: Yard, server_id: str) -> None:
    """Close an MCP endpoint. Its tools stay."""
    await yard.delete_server(server_id)


def _known(yard: Yard, server_id: str) -> Server:
    server = yard.servers.get(server_id)
    if server is None:
        raise NotFound(f"There is no server {server_id!r}.", suggestion="List them with GET /v1/servers.")
    return server


def _server_out(yard: Yard, server: Server) -> ServerOut:
    return ServerOut(
        id=server.id,
        tools=list(server.tools),
        names=server.names,
        agent_mode=server.agent_mode,
        retrieve_skill=server.retrieve_skill,
        skills=list(server.skills),
        title=server.title,
        description=server.description,
        auto_approve=server.auto_approve,
        token_in_url=server.token_in_url,
        url=f"{yard.settings.url}/mcp/{server.id}",
        tool_count=len(yard.catalog.snapshot.view(server).entries),
    )
