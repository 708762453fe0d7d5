"""Servers as they are declared and kept, and as the catalog knows them."""

from __future__ import annotations

from collections.abc import Iterable

from toolyard.catalog import Server
from toolyard.core.json import JsonObject
from toolyard.manifest import ServerConfig, dump_server, parse_server
from toolyard.store import providers as rows
from toolyard.store.base import Connection

DEFAULT_SERVER = Server("default", title="Everything", description="Every tool of this yard.")


def all_servers(kept: Iterable[tuple[str, JsonObject]], declared: Iterable[ServerConfig]) -> dict[str, Server]:
    """The default one, those made at run time, and those of the manifest, which come first."""
    known = {DEFAULT_SERVER.id: DEFAULT_SERVER}
    known |= {server_id: server_of(parse_server({**config, "id": server_id})) for server_id, config in kept}
    return known | {config.id: server_of(config) for config in declared}


def save(c: Connection, server: Server) -> None:
    rows.save_server(c, server.id, dump_server(config_of(server)))


def server_of(config: ServerConfig) -> Server:
    return Server(
        id=config.id,
        tools=config.tools,
        names=config.names,
        agent_mode=config.agent_mode,
        retrieve_skill=config.retrieve_skill,
        skills=config.skills,
        title=config.title,
        description=config.description,
        auto_approve=config.auto_approve,
        token_in_url=config.token_in_url,
    )


def config_of(server: Server) -> ServerConfig:
    return ServerConfig(
        id=server.id,
        tools=server.tools,
        names=server.names,
        agent_mode=server.agent_mode,
        retrieve_skill=server.retrieve_skill,
        skills=server.skills,
        title=server.title,
        description=server.description,
        auto_approve=server.auto_approve,
        token_in_url=server.token_in_url,
    )
