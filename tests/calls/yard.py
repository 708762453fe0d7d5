"""A call path over a real SQLite store, with providers that do what a test tells them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolyard.calls.path import Calls
from toolyard.catalog import Catalog, Server
from toolyard.core.call import CallOutcome, CallRequest, Origin, ToolResult
from toolyard.core.principal import LOCAL_OPERATOR, Principal
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Kind, Tool
from toolyard.durable.engine import Engine
from toolyard.providers.base import Invocation
from toolyard.store.base import Store
from toolyard.store.blobs import Blobs
from toolyard.store.open import open_store

Behaviour = Callable[[Invocation], Awaitable[ToolResult]]


async def echo(invocation: Invocation) -> ToolResult:
    return ToolResult.of_text(str(invocation.arguments["text"]))


@dataclass
class Scripted:
    """Runs `behaviour`, and keeps what reached it."""

    behaviour: Behaviour = echo
    seen: list[Invocation] = field(default_factory=list[Invocation])
    abandoned: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def call(self, invocation: Invocation) -> ToolResult:
        self.seen.append(invocation)
        return await self.behaviour(invocation)

    async def abandon(self, namespace: str, upstream_state: str) -> None:
        self.abandoned.append((namespace, upstream_state))


@dataclass
class Yard:
    calls: Calls
    catalog: Catalog
    provider: Scripted
    store: Store
    blobs: Blobs

    async def call(self, tool: str, arguments: dict[str, Any], **more: Any) -> CallOutcome:
        return await self.calls.invoke(request(tool, arguments, **more))


def request(
    tool: str,
    arguments: dict[str, Any],
    *,
    principal: Principal = LOCAL_OPERATOR,
    origin: Origin = Origin.HTTP,
    **more: Any,
) -> CallRequest:
    return CallRequest(tool, arguments, principal, origin, **more)


TEXT_SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1},
            "kind": {"enum": ["cat", "dog"]},
            "mail": {"type": "string", "format": "email"},
            "owner": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
)
READ = Annotations(read_only=True)
TOOLS = (
    Tool("pets", "write", "Writes.", TEXT_SCHEMA),
    Tool("pets", "read", "Reads.", TEXT_SCHEMA, annotations=READ),
    Tool("pets", "imported", "From a document.", TEXT_SCHEMA, kind=Kind.OPENAPI),
    Tool("pets", "typed", "Has an output schema.", TEXT_SCHEMA, annotations=READ, output_schema={"type": "object"}),
    Tool("pets", "broken", "Its schema is wrong.", Schema({"type": "object", "properties": {"a": {"pattern": "("}}})),
)


@asynccontextmanager
async def yard(folder: Path, behaviour: Behaviour = echo, tools: Sequence[Tool] = TOOLS) -> AsyncGenerator[Yard, None]:
    store = open_store(str(folder / "toolyard.db"))
    await store.start()
    blobs = Blobs(str(folder / "blobs"))
    catalog = Catalog()
    catalog.publish("pets", list(tools))
    provider = Scripted(behaviour)
    servers = {"default": Server("default"), "narrow": Server("narrow", tools=("pets:read",))}
    engine = Engine(store)
    calls = Calls(
        store=store,
        blobs=blobs,
        catalog=catalog,
        servers=servers,
        providers=provider,
        engine=engine,
        blob_url="http://yard",
    )
    await engine.start()
    try:
        yield Yard(calls, catalog, provider, store, blobs)
    finally:
        await calls.close()
        await engine.stop()
        await store.close()


def blocking() -> tuple[Behaviour, asyncio.Event, list[str]]:
    """A behaviour that runs until it is cancelled, an event for its start, and what became of it."""
    begun = asyncio.Event()
    fate: list[str] = []

    async def run(invocation: Invocation) -> ToolResult:
        del invocation
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            fate.append("cancelled")
            raise
        raise AssertionError

    return run, begun, fate
