"""The protocol every provider speaks, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from toolyard.core.call import ProgressSink, ToolResult
from toolyard.core.json import JsonObject
from toolyard.core.principal import Principal
from toolyard.core.question import NO_CAPABILITIES, Ask, Capabilities, LogSink
from toolyard.core.tool import Kind, Tool


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call as a provider sees it: validated, authorized, approved, and on record."""

    call_id: str
    tool: Tool
    arguments: JsonObject
    principal: Principal
    time_limit: float
    """Seconds left. The call path enforces it by cancelling; a provider may tell its upstream."""
    idempotency_key: str | None = None
    progress: ProgressSink | None = None
    trace: Mapping[str, str] = field(default_factory=dict[str, str])
    may_ask: Capabilities = NO_CAPABILITIES
    """What the actual caller declared: an upstream may be told of nothing more."""
    ask: Ask | None = None
    """Asks the caller while the tool runs; None when it can answer nothing. The time it takes does not count."""
    answers: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """To the questions of an earlier `NeedsInput`, for the same request sent again."""
    upstream_state: str | None = None
    """The state that came with that `NeedsInput`."""
    log: LogSink | None = None
    log_level: str | None = None
    """What the caller asked for. An upstream that logs only when it is asked is asked for this."""


@runtime_checkable
class Provider(Protocol):
    """Owns one namespace.

    Duties: `call` raises `CallError` for failures a caller may see (code `upstream` unless a better one fits), lets
    `asyncio.CancelledError` through after telling its upstream, keeps no state from one call to the next that another
    principal could see, and never puts a credential into an error. `tools` may be called at any time after `start`;
    when the provider learns that its list changed it calls the function given to `on_change`.
    """

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def address(self) -> str:
        """Where it is, for people: a URL, a command line, a module. Never holds a credential."""
        ...

    async def start(self) -> None:
        """Connect. Raises `ProviderError` with address and cause."""
        ...

    async def tools(self) -> Sequence[Tool]:
        """The current list. Raises `ProviderError`."""
        ...

    async def call(self, invocation: Invocation) -> ToolResult: ...

    async def health(self) -> None:
        """A cheap probe. Raises `ProviderError` when the upstream does not answer."""
        ...

    def on_change(self, notify: Callable[[], None]) -> None: ...

    async def close(self) -> None:
        """Release everything: connections, child processes. May be called twice, or before `start`."""
        ...
