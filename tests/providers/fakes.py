"""A provider that does as it is told, and a catalog that remembers what it was told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from toolyard.core.call import ProgressSink, ToolResult
from toolyard.core.errors import ProviderError
from toolyard.core.principal import LOCAL_OPERATOR
from toolyard.core.tool import Kind, Tool
from toolyard.providers.base import Invocation
from toolyard.providers.supervisor import ProviderState, ProviderStatus, RetryPolicy, Supervisor

QUICK = RetryPolicy(first_delay=0.01, longest_delay=0.05, settle=0.005, refresh_interval=0.02, close_limit=0.5)


def invocation(tool: Tool, arguments: Mapping[str, Any] | None = None, **more: Any) -> Invocation:
    progress: ProgressSink | None = more.pop("progress", None)
    return Invocation(
        call_id="call_1",
        tool=tool,
        arguments=arguments or {},
        principal=LOCAL_OPERATOR,
        time_limit=more.pop("time_limit", 10.0),
        progress=progress,
        **more,
    )


class FakeProvider:
    """Counts what is asked of it. `failing` makes start, list and health fail; `on_call` answers calls."""

    kind = Kind.MCP

    def __init__(self, provider_id: str, *names: str) -> None:
        self.id = provider_id
        self.listed: Sequence[Any] = [Tool(provider_id, name, "") for name in names]
        self.failing: Exception | None = None
        self.hanging = False
        self.on_call: Callable[[Invocation], Awaitable[ToolResult]] = self._answer
        self.starts = self.lists = self.checks = self.calls = 0
        self.closed = False
        self.notify: Callable[[], None] = lambda: None

    @property
    def address(self) -> str:
        return f"fake://{self.id}"

    async def start(self) -> None:
        self.starts += 1
        await self._respond()

    async def tools(self) -> Sequence[Tool]:
        self.lists += 1
        await self._respond()
        return self.listed

    async def call(self, invocation: Invocation) -> ToolResult:
        self.calls += 1
        return await self.on_call(invocation)

    async def health(self) -> None:
        self.checks += 1
        await self._respond()

    def on_change(self, notify: Callable[[], None]) -> None:
        self.notify = notify

    async def close(self) -> None:
        self.closed = True

    async def _respond(self) -> None:
        await asyncio.sleep(0)
        if self.hanging:
            await asyncio.Event().wait()
        if self.failing is not None:
            raise self.failing

    async def _answer(self, _invocation: Invocation) -> ToolResult:
        return ToolResult.of_text("ok")


class Recorder:
    """The catalog's and the bus's side of a supervisor, with something to wait for."""

    def __init__(self, policy: RetryPolicy = QUICK) -> None:
        self.published: list[tuple[str, tuple[str, ...]]] = []
        self.available: dict[str, tuple[bool, str | None]] = {}
        self.forgotten: list[str] = []
        self.events: list[ProviderStatus] = []
        self._changed = asyncio.Event()
        self.supervisor = Supervisor(
            publish=self._publish,
            set_availability=self._set_availability,
            forget=self.forgotten.append,
            events=self._event,
            policy=policy,
        )

    async def until(self, condition: Callable[[], bool], seconds: float = 5) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until_state(self, provider_id: str, state: ProviderState, seconds: float = 5) -> None:
        await self.until(lambda: self.supervisor.status(provider_id).state is state, seconds)

    def _publish(self, namespace: str, tools: Sequence[Tool]) -> None:
        self.published.append((namespace, tuple(tool.name for tool in tools)))
        self.available[namespace] = (True, None)
        self._changed.set()

    def _set_availability(self, namespace: str, available: bool, reason: str | None) -> None:
        self.available[namespace] = (available, reason)
        self._changed.set()

    def _event(self, status: ProviderStatus) -> None:
        self.events.append(status)
        self._changed.set()


REFUSED = ProviderError("connection refused")
