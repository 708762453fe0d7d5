"""What a server says it can do: one builder for `initialize` and `server/discover`."""

from __future__ import annotations

from toolyard.core.json import JsonObject, JsonValue
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.wire import EXTENSION_SKILLS, EXTENSION_TASKS, Era


def announced(ctx: Context) -> JsonObject:
    """Of this server, to a client of this era."""
    return {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
        **_extensions(ctx),
    }


def _extensions(ctx: Context) -> JsonObject:
    found: dict[str, JsonValue] = {}
    if ctx.era is Era.MODERN:
        found[EXTENSION_TASKS] = {}
    if ctx.server.retrieve_skill or ctx.server.skills:
        found[EXTENSION_SKILLS] = {"directoryRead": True}
    return {"extensions": found} if found else {}
