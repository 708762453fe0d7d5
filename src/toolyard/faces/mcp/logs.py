"""What tools log while they run, passed on to the client that called: as much of it as it asked for.

A modern client asks for it with each request; a legacy one once for its session, and hears everything until it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.question import LogSink
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.wire import INVALID_PARAMS, Era, RpcError, notification

META_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""From the least to the most severe (RFC 5424)."""
_SEVERITY = {level: severity for severity, level in enumerate(LEVELS)}
_EMPTY = b"{}"


def log_level(ctx: Context) -> str | None:
    """The least severe level that this client asked for; None when it named none.

    Raises:
        RpcError: there is no such level (-32602).
    """
    if ctx.era is Era.MODERN:
        return _checked(ctx.meta[META_LOG_LEVEL]) if META_LOG_LEVEL in ctx.meta else None
    note = ctx.face.sessions.note(ctx.session) if ctx.session is not None else None
    return None if note is None else note.log_level


def log_sink(ctx: Context) -> LogSink | None:
    """Sends notifications on the request's own stream; None where this client wants or can hear nothing."""
    level = log_level(ctx)
    if not ctx.may_stream or (level is None and ctx.era is Era.MODERN):
        return None
    least = 0 if level is None else _SEVERITY[level]
    push = ctx.push

    def tell(said: JsonObject) -> None:
        if _SEVERITY.get(str(said.get("level")), _SEVERITY["info"]) >= least:
            params: dict[str, JsonValue] = {"level": "info", **said}
            push(notification("notifications/message", params))

    return tell


async def set_log_level(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """For all later requests of this legacy session, on any node within seconds."""
    level = _checked(params.get("level"))
    if ctx.session is not None:
        await ctx.face.sessions.change_note(ctx.session, lambda note: replace(note, log_level=level))
    return _EMPTY


def _checked(level: object) -> str:
    if not isinstance(level, str) or level not in _SEVERITY:
        raise RpcError(INVALID_PARAMS, f"A log level is one of {', '.join(LEVELS)}.")
    return level
