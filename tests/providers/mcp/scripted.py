"""An MCP server over HTTP, written by hand, that behaves as badly as a test wants."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

ECHO = {"name": "echo", "inputSchema": {"type": "object"}}
READ = {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


class Hang:
    """The server never answers."""


class Reply:
    """A raw HTTP answer: `chunks` are sent one by one; `hang` keeps the stream open afterwards."""

    def __init__(
        self, status: int = 200, *chunks: bytes, kind: str = "application/json", hang: bool = False, **headers: str
    ) -> None:
        self.status = status
        self.chunks = chunks
        self.headers = {"content-type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}}
        self.hang = hang


def error(code: int, message: str, status: int = 200, data: Any = None) -> Reply:
    fields = {"code": code, "message": message, **({"data": data} if data is not None else {})}
    return Reply(status, json.dumps({"jsonrpc": "2.0", "id": None, "error": fields}).encode())


class Scripted:
    """`answers` maps a method to a result, a `Reply`, `Hang`, or a function of the message that gives one.

    Every request is kept in `seen` as (HTTP method, headers, message). `sessions` turns on legacy session ids.
    """

    def __init__(self, *, era: str = "modern", **answers: Any) -> None:
        self.seen: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.sessions: set[str] = set()
        self.opened = 0
        self._broken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.answers: dict[str, Any] = {
            "tools/list": {"tools": [ECHO, READ]},
            "tools/call": {"content": [{"type": "text", "text": "ok"}]},
            "ping": {},
            "GET": Reply(405),
            "DELETE": Reply(200),
            "notifications/cancelled": Reply(202),
        }
        if era == "modern":
            self.answers["server/discover"] = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        else:
            self.answers["initialize"] = self._initialize
            self.answers["notifications/initialized"] = Reply(202)
        self.answers |= {name.replace("__", "/"): answer for name, answer in answers.items()}

    def methods(self) -> list[str]:
        return [message.get("method") or http for http, _, message in self.seen]

    def break_off(self) -> None:
        """From the test's thread: every hanging answer ends without one."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._broken.set)

    def forget_sessions(self) -> None:
        self.sessions.clear()

    def _initialize(self, _message: dict[str, Any]) -> Reply:
        self.opened += 1
        session = f"s{self.opened}"
        self.sessions.add(session)
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}
        body = json.dumps({"jsonrpc": "2.0", "id": _message["id"], "result": result}).encode()
        return Reply(200, body, mcp_session_id=session)

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Coroutine[Any, Any, dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while (event := await receive())["type"] == "http.request":
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        headers = {k.decode(): v.decode() for k, v in scope["headers"]}
        message: dict[str, Any] = json.loads(body) if body else {}
        self.seen.append((scope["method"], headers, message))
        answer = self._answer(message.get("method") or scope["method"], headers, message)
        if answer is Hang:
            self._loop = asyncio.get_running_loop()
            hanging = asyncio.create_task(receive())
            await asyncio.wait({hanging, asyncio.create_task(self._broken.wait())}, return_when="FIRST_COMPLETED")
            if not hanging.done():
                broken = [(b"content-type", b"application/json"), (b"content-length", b"100")]
                await send({"type": "http.response.start", "status": 200, "headers": broken})
                await send({"type": "http.response.body", "body": b"{", "more_body": True})
            return  # within an answer: the connection is closed
        reply = answer if isinstance(answer, Reply) else self._result(answer, message)
        await send({"type": "http.response.start", "status": reply.status, "headers": _pairs(reply.headers)})
        for chunk in reply.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if reply.hang:
            await receive()
            return
        await send({"type": "http.response.body", "body": b""})

    def _answer(self, method: str, headers: dict[str, str], message: dict[str, Any]) -> Any:
        session = headers.get("mcp-session-id")
        if session is not None and session not in self.sessions:
            return Reply(404, b"no such session", kind="text/plain")
        answer = self.answers.get(method, error(-32601, f"no method {method}", 404))
        return answer(message) if callable(answer) and not isinstance(answer, type) else answer

    def _result(self, result: Any, message: dict[str, Any]) -> Reply:
        return Reply(200, json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode())


def _pairs(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]
