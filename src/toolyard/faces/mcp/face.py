"""What this face needs of the application, and what one request knows of itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Literal, Protocol

from toolyard.catalog import Catalog, Server, View
from toolyard.core.approval import ApprovalRecord, Waiting
from toolyard.core.call import CallFailure, CallOutcome, CallRequest, ProgressSink
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.principal import Principal
from toolyard.core.question import AskedQuestion, LogSink
from toolyard.core.record import CallRecord
from toolyard.durable.hints import Waiter
from toolyard.faces.mcp.changes import Changes
from toolyard.faces.mcp.headers import Headers, ParamHeaders, RawHeaders
from toolyard.faces.mcp.lists import ToolLists
from toolyard.faces.mcp.request_state import RequestStates
from toolyard.faces.mcp.sessions import Session, Sessions
from toolyard.faces.mcp.wire import META_SERVER_INFO, Era, RequestId
from toolyard.providers.offers import Completion
from toolyard.skills import Library
from toolyard.store.base import Store

DEFAULT_SERVER = "default"

Push = Callable[[bytes], None]
"""Sends one frame on the request's own stream before its answer. Never blocks, never raises."""
Cancel = Callable[[], Awaitable[object]]


class Calls(Protocol):
    async def invoke(self, request: CallRequest) -> CallOutcome: ...
    async def refuse(self, request: CallRequest, failure: CallFailure) -> CallOutcome: ...
    async def cancel(self, call_id: str, principal: Principal) -> bool: ...
    async def follow(
        self,
        call_id: str,
        principal: Principal,
        *,
        hold: float | None,
        known: frozenset[str] = ...,
        progress: ProgressSink | None = ...,
        log: LogSink | None = ...,
        on_wait: Callable[[Waiting], None] | None = ...,
    ) -> CallOutcome: ...
    async def put_on_record(self, call_id: str) -> None: ...
    async def invoke_within(self, request: CallRequest, seconds: float) -> CallOutcome | None: ...
    async def wait(self, call_id: str, seconds: float) -> CallOutcome | None: ...
    async def get(self, call_id: str) -> CallRecord: ...
    async def outcome(self, call_id: str) -> CallOutcome: ...
    def id_on_record(self, call_id: str) -> str: ...


class Questions(Protocol):
    async def answer(
        self, call_id: str, answers: Mapping[str, JsonObject], principal: Principal
    ) -> list[AskedQuestion]: ...
    async def answer_one(self, question_id: str, answer: JsonObject, principal: Principal) -> None: ...


class Approvals(Protocol):
    async def get(self, approval_id: str) -> ApprovalRecord: ...
    async def of_call(self, call_id: str) -> list[ApprovalRecord]: ...
    async def decide(
        self, approval_id: str, *, decision: Literal["approve", "reject"], principal: Principal
    ) -> ApprovalRecord: ...


class Engine(Protocol):
    def watch(self, *topics: str) -> AbstractAsyncContextManager[Waiter]: ...
    def hint(self, *topics: str) -> None: ...


class Supervisor(Protocol):
    async def complete(self, namespace: str, completion: Completion) -> JsonObject: ...
    def following(self, namespace: str, uri: str, heard: Callable[[], None]) -> AbstractAsyncContextManager[None]: ...


class Gate(Protocol):
    async def principal(self, scope: Mapping[str, Any]) -> Principal: ...


class Settings(Protocol):
    @property
    def url(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def hold_limit(self) -> float: ...
    @property
    def task_after(self) -> float: ...
    @property
    def retention_days(self) -> int | None: ...


class FaceApp(Protocol):
    """The part of `toolyard.app.App` that this face uses."""

    @property
    def store(self) -> Store: ...
    @property
    def catalog(self) -> Catalog: ...
    @property
    def calls(self) -> Calls: ...
    @property
    def questions(self) -> Questions: ...
    @property
    def approvals(self) -> Approvals: ...
    @property
    def engine(self) -> Engine: ...
    @property
    def skills(self) -> Library: ...
    @property
    def supervisor(self) -> Supervisor: ...
    @property
    def servers(self) -> Mapping[str, Server]: ...
    @property
    def gate(self) -> Gate: ...
    @property
    def settings(self) -> Settings: ...
    def on_server_change(self, callback: Callable[[], None]) -> None: ...


class Face:
    """One for each process: the caches and registries that requests share. It holds nothing of any one session."""

    def __init__(self, app: FaceApp) -> None:
        self.app = app
        self.lists = ToolLists()
        self.changes = Changes(app.catalog, app.servers, app.skills)
        app.on_server_change(self.changes.look_soon)
        app.skills.on_change(self.changes.skills_changed)
        self.sessions = Sessions(app.store)
        self.states = RequestStates(app.store)
        self.param_headers = ParamHeaders()
        self.server_info: dict[str, JsonValue] = {
            "name": "toolyard",
            "title": "Toolyard",
            "version": version("toolyard"),
        }
        self.stamp = dumps({META_SERVER_INFO: self.server_info})
        self.running: dict[tuple[str, RequestId], Running] = {}
        """Legacy requests that are under way, by session nonce and request id, so that they can be cancelled."""

    def close(self) -> None:
        """End the standing streams."""
        self.changes.close()

    def view(self, server: Server) -> View:
        return self.app.catalog.snapshot.view(server)


@dataclass(slots=True)
class Running:
    """A request that can be cancelled while it runs. A handler that starts something says how to end it."""

    cancel: Cancel | None = None
    cancelled: bool = False

    async def end(self) -> None:
        """The client no longer wants the answer: nothing more is sent."""
        self.cancelled = True
        if self.cancel is not None:
            await self.cancel()


@dataclass(slots=True)
class Context:
    """One request, after every check: all that a method may go by. Nothing in it comes from an earlier request."""

    face: Face
    era: Era
    version: str
    principal: Principal
    server: Server
    request_id: RequestId
    meta: Mapping[str, Any]
    push: Push
    may_stream: bool = True
    """Whether anything can reach the client before the answer."""
    running: Running = field(default_factory=Running)
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """A modern request's own; a legacy client's are in its session."""
    session: Session | None = None
    new_session_id: str | None = None
    """Set by `initialize`, for the answer's header."""
    headers: Headers = field(default_factory=dict[bytes, bytes])
    """Empty over stdio."""
    raw_headers: RawHeaders = ()

    @property
    def view(self) -> View:
        return self.face.view(self.server)
