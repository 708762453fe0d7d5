"""A node's whole call path with approvals, sessions and client calls, over either engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tests.calls.yard import Behaviour, Scripted, echo, request
from toolyard.calls.approvals import Approvals
from toolyard.calls.approve import PolicyBook, ProviderPolicy
from toolyard.calls.client_calls import ClientCalls
from toolyard.calls.path import Calls
from toolyard.calls.sessions import Sessions
from toolyard.catalog import Catalog, Server
from toolyard.core.approval import ApprovalRecord, AutoApprove
from toolyard.core.call import CallOutcome
from toolyard.core.principal import LOCAL_OPERATOR, Principal, PrincipalKind, Scope
from toolyard.core.record import CallEvent, CallRecord
from toolyard.core.schema import Schema
from toolyard.core.session import Session
from toolyard.core.tool import Annotations, Tool
from toolyard.durable.engine import Engine
from toolyard.durable.log import SessionEvent
from toolyard.store.base import Store
from toolyard.store.blobs import Blobs
from toolyard.store.open import open_store

CALLER = Principal(PrincipalKind.KEY, "k1", "ci", frozenset({Scope.CALL}))
OTHER = Principal(PrincipalKind.KEY, "k2", "other", frozenset({Scope.CALL}))
APPROVER = Principal(PrincipalKind.KEY, "k3", "boss", frozenset({Scope.APPROVE}))

TEXT = Schema(
    {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }
)
AFTER = Schema({"type": "object", "properties": {"text": {"type": "string"}, "result": {}}})
TOOLS = (
    Tool("crm", "write", "Writes.", TEXT),
    Tool("crm", "read", "Reads.", TEXT, annotations=Annotations(read_only=True)),
    Tool("crm", "put", "Writes the same again.", TEXT, annotations=Annotations(idempotent=True)),
    Tool("crm", "pre_delete", "Deletes.", TEXT),
    Tool("crm", "priv_salary", "Secret.", TEXT),
    Tool("crm", "mcp_thing", "Of a provider.", TEXT),
    Tool("crm", "save", "Saves.", TEXT),
    Tool("crm", "post_save", "After saving.", AFTER),
    Tool("crm", "post_post_save", "Never.", AFTER),
)


class Hand:
    """A monotonic clock that a test turns."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


@dataclass
class Node:
    calls: Calls
    approvals: Approvals
    sessions: Sessions
    clients: ClientCalls
    catalog: Catalog
    provider: Scripted
    store: Store
    engine: Engine
    clock: Hand
    policies: dict[str, ProviderPolicy]
    clusters: dict[str, AutoApprove]
    seen: list[CallEvent] = field(default_factory=list[CallEvent])

    async def call(self, tool: str, arguments: Mapping[str, Any], **more: Any) -> CallOutcome:
        return await self.calls.invoke(request(tool, dict(arguments), **{"principal": CALLER, "hold": 0.0, **more}))

    async def ended(self, call_id: str, seconds: float = 10.0) -> CallOutcome:
        outcome = await self.calls.wait(call_id, seconds)
        assert outcome is not None, f"{call_id} is still open: {await self.calls.get(call_id)}"
        return outcome

    async def gate(self, call_id: str) -> ApprovalRecord:
        (gate,) = await self.approvals.of_call(call_id)
        return gate

    async def record(self, call_id: str) -> CallRecord:
        return await self.calls.get(call_id)

    async def events(self, session: Session, principal: Principal = CALLER) -> list[SessionEvent]:
        return await self.sessions.events(session.id, principal, limit=1000)

    async def turn_database_clock(self, seconds: float) -> None:
        """As if that much time had passed for everything that has a deadline on the database's clock."""

        def turn(c: Any) -> None:
            c.execute(
                "UPDATE approvals SET deadline = deadline - ?, created = created - ? WHERE decision IS NULL",
                seconds,
                seconds,
            )
            c.execute("UPDATE jobs SET wake_at = wake_at - ? WHERE wake_at IS NOT NULL", seconds)
            c.execute("UPDATE calls SET deadline = deadline - ? WHERE state IN ('PENDING', 'PROCESSING')", seconds)
            c.execute("UPDATE call_leases SET lease_until = lease_until - ?", seconds)

        await self.store.tx(turn)
        self.clock.at += seconds


@asynccontextmanager
async def node(
    database: str,
    folder: Path,
    behaviour: Behaviour = echo,
    *,
    tools: Sequence[Tool] = TOOLS,
    auto_approve: AutoApprove = True,
    provider: Scripted | None = None,
    crash: bool = False,
    engine: Callable[[Store], Engine] = lambda store: Engine(store, ttl=1.5),
) -> AsyncGenerator[Node, None]:
    """`crash`: end as kill -9 would, giving nothing back."""
    store = open_store(database)
    await store.start()
    blobs = Blobs(str(folder / "blobs"))
    catalog = Catalog()
    catalog.publish("crm", list(tools))
    provider = provider or Scripted(behaviour)
    servers = {"default": Server("default"), "asking": Server("asking", auto_approve=False)}
    policies = {"crm": ProviderPolicy(auto_approve, 300.0)}
    clusters: dict[str, AutoApprove] = {}
    running = engine(store)
    sessions = Sessions(store, running)
    calls = Calls(
        store=store,
        blobs=blobs,
        catalog=catalog,
        servers=servers,
        providers=provider,
        engine=running,
        sessions=sessions,
        policies=PolicyBook(policies.get, clusters, servers),
        blob_url="http://yard",
    )
    clock = Hand()
    clients = ClientCalls(calls.bench, calls, clock=clock)
    here = Node(
        calls, Approvals(calls.bench), sessions, clients, catalog, provider, store, running, clock, policies, clusters
    )
    calls.observe(here.seen.append)
    await running.start()
    await calls.begin()
    try:
        yield here
    finally:
        await calls.close()
        await (running.abandon() if crash else running.stop())
        await store.close()


def definition(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": "What it does.",
        "requestArgs": {"properties": {"city": {"type": "string"}}, "required": ["city"]},
        "responseShape": {"properties": {"places": {"type": "array", "items": {"type": "string"}}}},
    }


def customizations(*names: str) -> dict[str, Any]:
    return {"agentId": "helper", "extensions": {"tools": {name: definition(name) for name in names}}}


def loads(text: str | None) -> Any:
    assert text is not None
    return orjson.loads(text)


__all__ = ["APPROVER", "CALLER", "LOCAL_OPERATOR", "OTHER", "Node", "customizations", "definition", "loads", "node"]
