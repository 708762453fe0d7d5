"""The upstream of the gateway benchmark: raw ASGI, both protocol eras, nothing checked; never the bottleneck.

`TOOLS` in the environment says how many tools it lists; every one of them echoes its `text`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
_COUNT = int(os.environ.get("TOOLS", "10"))
_TOOLS = [
    {
        "name": "echo" if n == 0 else f"echo_{n}",
        "description": f"Return the text that was sent ({n}).",
        "inputSchema": _SCHEMA,
    }
    for n in range(_COUNT)
]
_CAPABILITIES = {"tools": {"listChanged": False}}
_INFO = {"name": "bench-echo", "version": "1"}
_CACHED = {"ttlMs": 600_000, "cacheScope": "public"}


def _result(message: dict[str, Any], *, modern: bool) -> dict[str, Any] | None:
    method, params = message["method"], message.get("params") or {}
    result: dict[str, Any]
    if method == "tools/call":
        result = {"content": [{"type": "text", "text": params["arguments"].get("text", "")}], "isError": False}
    elif method == "tools/list":
        start = int(params.get("cursor") or 0)
        result = {"tools": _TOOLS[start : start + 1000], **(_CACHED if modern else {})}
        if start + 1000 < _COUNT:
            result["nextCursor"] = str(start + 1000)
    elif method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": _CAPABILITIES, "serverInfo": _INFO}
    elif method == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": _CAPABILITIES, "serverInfo": _INFO, **_CACHED}
    elif method == "ping":
        result = {}
    else:
        return None
    return {**result, "resultType": "complete"} if modern else result


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    if scope["type"] != "http":
        return
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            break
    if scope["method"] != "POST":
        await _answer(send, 405, b"")
        return
    message = orjson.loads(body)
    if "id" not in message:
        await _answer(send, 202, b"")
        return
    modern = any(name == b"mcp-protocol-version" and value >= b"2026" for name, value in scope["headers"])
    result = _result(message, modern=modern)
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    else:
        reply["result"] = result
    await _answer(send, 200 if result is not None else 404 if modern else 200, orjson.dumps(reply))


async def _answer(send: Callable[[dict[str, Any]], Awaitable[None]], status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
