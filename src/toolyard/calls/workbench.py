"""What the parts of the call path work with, and the steps that direct and waiting calls share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from toolyard.calls.approve import PolicyBook, Verdict, approve
from toolyard.calls.execute import Providers
from toolyard.calls.follow_up import follow_up_arguments, follow_up_of
from toolyard.calls.images import ImageCollector
from toolyard.calls.observing import Observers
from toolyard.calls.parking import PICK_UP_TIMEOUT, NewCall, new_call
from toolyard.calls.record import Ending, Opening, Recorder, blob_prefix, record_of
from toolyard.calls.resolve import resolve
from toolyard.calls.sessions import Sessions
from toolyard.calls.shape import shape, value_of
from toolyard.calls.ticket import Ticket
from toolyard.calls.validate import ArgumentValidator, encode
from toolyard.catalog import Catalog, Entry, Server
from toolyard.core.call import CallFailure, CallRequest, CallState, ToolResult
from toolyard.core.clock import Clock
from toolyard.core.errors import CallError, ErrorCode, NotFound
from toolyard.core.ids import new_id
from toolyard.core.session import CLIENT_NAMESPACE, Session
from toolyard.core.tool import Tool
from toolyard.durable.engine import Engine
from toolyard.store.base import Store

_CLIENT_PREFIX = f"{CLIENT_NAMESPACE}:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    store: Store
    engine: Engine
    catalog: Catalog
    servers: Mapping[str, Server]
    providers: Providers
    sessions: Sessions
    recorder: Recorder
    observers: Observers
    clock: Clock
    policies: PolicyBook
    url: str
    pick_up_timeout: float = PICK_UP_TIMEOUT
    validator: ArgumentValidator = field(default_factory=ArgumentValidator)
    is_coming: Callable[[str], bool] = lambda _: False
    """Whether the provider of a namespace is known and not up yet, so that its tools may still appear."""
    asked: deque[str] = field(default_factory=partial(deque[str], maxlen=256))
    """The latest approvals that this node asked for."""

    async def resolve(self, request: CallRequest) -> Entry:
        """The tool in the caller's slice, or among the session's own.

        Raises:
            CallError: `not_found`.
        """
        session = await self.session_of(request)
        if session is not None and request.tool.startswith(_CLIENT_PREFIX):
            theirs = session.tools.get(request.tool.removeprefix(_CLIENT_PREFIX))
            if theirs is not None:
                return Entry(theirs.tool)
        return resolve(self.catalog, self.servers, request.tool, request.server)

    async def session_of(self, request: CallRequest) -> Session | None:
        """
        Raises:
            CallError: `not_found`, there is no such session, or not for this caller.
        """
        if request.session is None:
            return None
        try:
            return await self.sessions.get(request.session, request.principal)
        except NotFound as error:
            raise CallError(ErrorCode.NOT_FOUND, error.message) from error

    async def shaped(
        self, request: CallRequest, created: float, tool: Tool, result: ToolResult, started: float
    ) -> Ending:
        """The result fit for its reader, its images kept, and how that goes on record."""
        collector = partial(self.collector, request.call_id, created)
        shaped = shape(result, tool, call_id=request.call_id, origin=request.origin, collector=collector)
        await self.recorder.keep_images(shaped)
        return Ending.of_result(shaped, _failure_of(shaped.result), started)

    def collector(self, call_id: str, created: float) -> ImageCollector:
        return ImageCollector(blob_prefix(call_id, created), self.url)

    def parked(self, opening: Opening, entry: Entry, verdict: Verdict, *, after: str | None = None) -> NewCall:
        """The call as it will wait: for its gates, its client, or a node that is free."""
        request = opening.request
        execution = "client" if entry.tool.namespace == CLIENT_NAMESPACE else "node"
        record = replace(
            record_of(opening, Ending(CallState.PENDING), finished=None, owner=None),
            execution=execution,
            details={"after": after} if after is not None else None,
        )
        ticket = Ticket.of(request, entry.tool.definition_hash, after=after)
        new = new_call(
            record,
            ticket,
            opening.arguments,
            gates=verdict.gates,
            timeout=verdict.timeout,
            pick_up=self.pick_up_timeout,
        )
        for approval_id in new.approval_ids.values():
            self.asked.append(approval_id)
        return new

    def asked_here(self, approval_id: str) -> bool:
        """Whether this node asked lately."""
        return approval_id in self.asked

    def has_follow_up(self, tool: Tool) -> bool:
        """Quickly, for calls outside sessions."""
        return self.catalog.snapshot.get(f"{tool.namespace}:post_{tool.name}") is not None

    async def follow_up(self, request: CallRequest, entry: Entry, result: ToolResult) -> NewCall | None:
        """`post_X`, to be put on record together with the success of X."""
        session = await self.session_of(request)
        after = follow_up_of(entry.tool, self.catalog, self.servers, request.server, session)
        if after is None:
            return None
        arguments = follow_up_arguments(after.tool, request.arguments, value_of(result), request.session)
        follow = CallRequest(
            after.id,
            arguments,
            request.principal,
            request.origin,
            server=request.server,
            call_id=new_id("call"),
            trace=request.trace,
            session=request.session,
        )
        opening = await self.recorder.open(follow, encode(arguments))
        return self.parked(opening, after, approve(self.policies, follow, after), after=request.call_id)


def _failure_of(result: ToolResult) -> CallFailure | None:
    if not result.is_error:
        return None
    return CallFailure(ErrorCode.UPSTREAM, result.text or "The tool reported an error and said no more.")
