"""What these tests are made of: a provider that does as it is told, and a raw ASGI client that can leave halfway."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from toolyard.core.call import Progress, ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Kind, Tool
from toolyard.providers.base import Invocation

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
BOTH = "application/json, text/event-stream"
CLIENT = {"name": "tests", "version": "1"}

Run = Callable[[Invocation], Awaitable[ToolResult]]
TEXT = Schema({"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False})


class Scripted:
    """A provider whose tools and behaviour a test writes down. It keeps every invocation it was given."""

    def __init__(self, provider_id: str, kind: Kind = Kind.PYTHON) -> None:
        self.id = provider_id
        self.kind = kind
        self.address = "tests"
        self.listed: list[Tool] = []
        self.runs: dict[str, Run] = {}
        self.invocations: list[Invocation] = []
        self._notify: Callable[[], None] | None = None

    def add(self, name: str, run: Run, **fields: Any) -> Tool:
        tool = Tool(self.id, name, fields.pop("description", f"Does {name}."), kind=self.kind, **fields)
        self.listed.append(tool)
        self.runs[name] = run
        return tool

    def changed(self) -> None:
        assert self._notify is not None
        self._notify()

    async def start(self) -> None: ...
    async def tools(self) -> Sequence[Tool]:
        return tuple(self.listed)

    async def call(self, invocation: Invocation) -> ToolResult:
        self.invocations.append(invocation)
        return await self.runs[invocation.tool.name](invocation)

    async def health(self) -> None: ...
    def on_change(self, notify: Callable[[], None]) -> None:
        self._notify = notify

    async def close(self) -> None: ...


async def echo(invocation: Invocation) -> ToolResult:
    return ToolResult.of_value({"text": invocation.arguments.get("text", "")})


async def fail(invocation: Invocation) -> ToolResult:
    raise CallError(ErrorCode.UPSTREAM, "The kettle is empty.", suggestion="Fill it.")


@dataclass
class Slow:
    """Reports progress when told to, and ends when told to. `ended` says how: done or cancelled."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    ended: str | None = None
    reports: tuple[Progress, ...] = ()

    async def __call__(self, invocation: Invocation) -> ToolResult:
        for report in self.reports:
            if invocation.progress is not None:
                invocation.progress(report)
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.ended = "cancelled"
            self.over.set()
            raise
        self.ended = "done"
        return ToolResult.of_text("at last")


def fill(provider: Scripted) -> Slow:
    """The usual tools; the slow one is returned, to be steered."""
    slow = Slow(reports=(Progress(1, 3, "one"), Progress(2, 3, "two")))
    provider.add("echo", echo, input_schema=TEXT, title="Echo", annotations=Annotations(read_only=True))
    provider.add("fail", fail)
    provider.add("slow", slow, annotations=Annotations(read_only=True))
    return slow


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def error(self) -> tuple[int, int]:
        """The HTTP status and the JSON-RPC error's code."""
        return self.status, self.json["error"]["code"]

    @property
    def frames(self) -> list[Any]:
        """What an event stream said, comments left out."""
        return frames_in(self.body)


SERVED: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}
"""What every server announces."""


def frames_in(body: bytes) -> list[Any]:
    lines = body.decode().splitlines()
    return [orjson.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


class Request:
    """One request under way, which can be watched and left."""

    def __init__(self, app: Any, scope: dict[str, Any], body: bytes) -> None:
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._incoming.put_nowait({"type": "http.request", "body": body, "more_body": False})
        self._heard = asyncio.Condition()
        self.answer = Answer(0, {}, b"")
        self.task = asyncio.create_task(app(scope, self._incoming.get, self._send))

    async def _send(self, message: Mapping[str, Any]) -> None:
        async with self._heard:
            if message["type"] == "http.response.start":
                self.answer.status = message["status"]
                self.answer.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            else:
                self.answer.body += message.get("body", b"")
            self._heard.notify_all()

    def disconnect(self) -> None:
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def until(self, condition: Callable[[Answer], bool]) -> Answer:
        """Wait until the answer so far fits."""
        async with asyncio.timeout(10), self._heard:
            await self._heard.wait_for(lambda: condition(self.answer))
        return self.answer

    async def frames(self, count: int) -> list[Any]:
        return (await self.until(lambda answer: len(answer.frames) >= count)).frames

    async def done(self) -> Answer:
        async with asyncio.timeout(10):
            await self.task
        return self.answer


class Wire:
    """Raw requests to an ASGI application, as a client on this machine sends them."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def open(
        self,
        method: str = "POST",
        path: str = "/mcp",
        headers: Sequence[tuple[str, str]] | Mapping[str, str] = (),
        body: bytes = b"",
    ) -> Request:
        given = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        names = {name.lower() for name, _ in given}
        if "host" not in names:
            given.append(("Host", "127.0.0.1:8420"))
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given if value is not None],
            "client": ("127.0.0.1", 50000),
        }
        return Request(self.app, scope, body)

    async def send(self, *args: Any, **kwargs: Any) -> Answer:
        return await self.open(*args, **kwargs).done()

    def modern_open(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        path: str = "/mcp",
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        request_id: str | int = 1,
    ) -> Request:
        head, body = modern(method, params, meta=meta, request_id=request_id)
        head.update(headers or {})
        return self.open("POST", path, {k: v for k, v in head.items() if v is not None}, body)

    async def modern(self, method: str, params: Mapping[str, Any] | None = None, **kwargs: Any) -> Answer:
        return await self.modern_open(method, params, **kwargs).done()

    async def initialize(self, version: str = LEGACY, **kwargs: Any) -> LegacySession:
        params = {"protocolVersion": version, "capabilities": kwargs.pop("capabilities", {}), "clientInfo": CLIENT}
        answer = await self.send(
            "POST", headers=legacy_headers(None, **kwargs.pop("headers", {})), body=rpc("initialize", params), **kwargs
        )
        assert answer.status == 200, answer.body
        return LegacySession(self, answer.headers["mcp-session-id"], answer.json["result"], kwargs.get("path", "/mcp"))


@dataclass
class LegacySession:
    wire: Wire
    id: str
    welcome: dict[str, Any]
    path: str = "/mcp"

    def open(self, method: str, params: Any = None, *, request_id: str | int | None = 1, **headers: str) -> Request:
        head = legacy_headers(self.id, **headers)
        return self.wire.open("POST", self.path, headers=head, body=rpc(method, params, request_id))

    async def send(
        self, method: str, params: Any = None, *, request_id: str | int | None = 1, **headers: str
    ) -> Answer:
        return await self.open(method, params, request_id=request_id, **headers).done()


def rpc(method: str, params: Any = None, request_id: str | int | None = 1) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if request_id is not None:
        message["id"] = request_id
    if params is not None:
        message["params"] = params
    return orjson.dumps(message)


def legacy_headers(session: str | None, **more: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": BOTH}
    if session is not None:
        headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
    return headers | {name.replace("_", "-"): value for name, value in more.items()}


def modern(
    method: str, params: Mapping[str, Any] | None = None, *, meta: Mapping[str, Any] | None = None, request_id: Any = 1
) -> tuple[dict[str, Any], bytes]:
    """The headers and the body of a well-formed modern request."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": CLIENT,
    } | dict(meta or {})
    headers: dict[str, Any] = {
        "Content-Type": "application/json",
        "Accept": BOTH,
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
    }
    if params and isinstance(params.get("name"), str):
        headers["Mcp-Name"] = params["name"]
    return headers, rpc(method, {**(params or {}), "_meta": envelope}, request_id)
