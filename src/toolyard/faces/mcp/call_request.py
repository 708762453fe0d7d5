"""What a request says about its call beside name and arguments: a key, a trace, where its progress goes."""

from __future__ import annotations

from toolyard.core.call import Progress, ProgressSink
from toolyard.core.json import JsonValue
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.wire import INVALID_PARAMS, META_IDEMPOTENCY, RpcError, notification

_TRACE = ("traceparent", "tracestate", "baggage")
_H_TRACE = {name: name.encode() for name in _TRACE}
_H_IDEMPOTENCY = b"idempotency-key"
_LONGEST_KEY = 255


def idempotency_key(ctx: Context) -> str | None:
    """From `_meta` or the header.

    Raises:
        RpcError: it is no string of a sensible length.
    """
    key = ctx.meta.get(META_IDEMPOTENCY)
    if key is None:
        header = ctx.headers.get(_H_IDEMPOTENCY)
        if header is None:
            return None
        key = header.decode("latin-1")
    if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
        raise RpcError(INVALID_PARAMS, f"An idempotency key is a string of 1 to {_LONGEST_KEY} characters.")
    return key


def trace(ctx: Context) -> dict[str, str]:
    """W3C trace context, of `_meta` before that of the headers."""
    found: dict[str, str] = {}
    for name, header in _H_TRACE.items():
        value = ctx.meta.get(name)
        if isinstance(value, str):
            found[name] = value
        elif header in ctx.headers:
            found[name] = ctx.headers[header].decode("latin-1")
    return found


def progress_sink(ctx: Context) -> ProgressSink | None:
    """Sends notifications on the request's own stream, where the request has a token for them."""
    token = ctx.meta.get("progressToken")
    if isinstance(token, bool) or not isinstance(token, str | int):
        return None
    push = ctx.push

    def report(progress: Progress) -> None:
        params: dict[str, JsonValue] = {"progressToken": token, "progress": progress.progress}
        if progress.total is not None:
            params["total"] = progress.total
        if progress.message is not None:
            params["message"] = progress.message
        push(notification("notifications/progress", params))

    return report
