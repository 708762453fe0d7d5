"""Every method we serve: one function each, and its place in the table below.

`handler(ctx, params) -> bytes`: the JSON of the result. What is not in the table is answered with -32601.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolyard.core.json import JsonValue, dumps
from toolyard.faces.mcp.capabilities import announced
from toolyard.faces.mcp.completion import complete_argument
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.lists import TTL_MS
from toolyard.faces.mcp.logs import set_log_level
from toolyard.faces.mcp.own_tools import own_definitions
from toolyard.faces.mcp.prompts import get_prompt, list_prompts
from toolyard.faces.mcp.resources import list_resources, list_templates, read_resource, subscribe, unsubscribe
from toolyard.faces.mcp.sessions import capabilities_of
from toolyard.faces.mcp.skills import get_skill, list_skills, read_directory
from toolyard.faces.mcp.subscriptions import listen
from toolyard.faces.mcp.tasks import cancel_task, get_task, update_task
from toolyard.faces.mcp.tool_call import call_tool
from toolyard.faces.mcp.wire import (
    LEGACY_VERSIONS,
    META_SERVER_INFO,
    METHOD_NOT_FOUND,
    MODERN_VERSIONS,
    NEWEST_LEGACY,
    Era,
    RpcError,
    as_object,
)

Handler: TypeAlias = Callable[[Context, Mapping[str, Any]], Awaitable[bytes]]

_EMPTY = b"{}"


async def initialize(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """Begins a legacy session. An unknown version is answered with the newest legacy one, and the client decides."""
    name = (as_object(params.get("clientInfo")) or {}).get("name")
    ctx.version = negotiated(params.get("protocolVersion"))
    ctx.new_session_id, ctx.session = await ctx.face.sessions.begin(
        version=ctx.version,
        server=ctx.server.id,
        principal=ctx.principal,
        capabilities=capabilities_of(as_object(params.get("capabilities")) or {}),
        client=name if isinstance(name, str) else "",
    )
    result: dict[str, JsonValue] = {
        "protocolVersion": ctx.version,
        "capabilities": announced(ctx),
        "serverInfo": ctx.face.server_info,
    }
    if ctx.server.description:
        result["instructions"] = ctx.server.description
    return dumps(result)


async def discover(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """What a modern client may learn before anything else."""
    result: dict[str, JsonValue] = {
        "resultType": "complete",
        "supportedVersions": MODERN_VERSIONS,
        "capabilities": announced(ctx),
        "ttlMs": TTL_MS,
        "cacheScope": "private",
        "_meta": {META_SERVER_INFO: ctx.face.server_info},
    }
    if ctx.server.description:
        result["instructions"] = ctx.server.description
    return dumps(result)


async def ping(ctx: Context, params: Mapping[str, Any]) -> bytes:
    return _EMPTY


async def list_tools(ctx: Context, params: Mapping[str, Any]) -> bytes:
    own = own_definitions(ctx.server)
    return ctx.face.lists.page(ctx.view, ctx.era, params.get("cursor"), ctx.face.stamp, own=own)


@dataclass(frozen=True, slots=True)
class Method:
    handler: Handler
    eras: frozenset[Era]
    streams: bool = False
    """Its answer is a stream, so its client must accept one."""


_BOTH = frozenset(Era)
_LEGACY = frozenset({Era.LEGACY})
_MODERN = frozenset({Era.MODERN})

METHODS: Mapping[str, Method] = {
    "initialize": Method(initialize, _LEGACY),
    "ping": Method(ping, _LEGACY),
    "server/discover": Method(discover, _MODERN),
    "tools/list": Method(list_tools, _BOTH),
    "tools/call": Method(call_tool, _BOTH),
    "resources/list": Method(list_resources, _BOTH),
    "resources/templates/list": Method(list_templates, _BOTH),
    "resources/read": Method(read_resource, _BOTH),
    "resources/subscribe": Method(subscribe, _LEGACY),
    "resources/unsubscribe": Method(unsubscribe, _LEGACY),
    "resources/directory/read": Method(read_directory, _BOTH),
    "skills/list": Method(list_skills, _BOTH),
    "skills/get": Method(get_skill, _BOTH),
    "prompts/list": Method(list_prompts, _BOTH),
    "prompts/get": Method(get_prompt, _BOTH),
    "completion/complete": Method(complete_argument, _BOTH),
    "tasks/get": Method(get_task, _MODERN),
    "tasks/update": Method(update_task, _MODERN),
    "tasks/cancel": Method(cancel_task, _MODERN),
    "subscriptions/listen": Method(listen, _MODERN, streams=True),
    "logging/setLevel": Method(set_log_level, _LEGACY),
}


def method_for(name: str, era: Era) -> Method:
    """
    Raises:
        RpcError: this era has no such method (-32601).
    """
    method = METHODS.get(name)
    if method is None or era not in method.eras:
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {name}")
    return method


def negotiated(requested: object) -> str:
    """The legacy version an `initialize` is answered with."""
    return requested if isinstance(requested, str) and requested in LEGACY_VERSIONS else NEWEST_LEGACY
