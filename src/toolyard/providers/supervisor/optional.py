"""What a provider may tell of itself beyond the protocol."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class HasEra(Protocol):
    """A provider that may say which era of its protocol it speaks."""

    @property
    def era(self) -> str | None: ...


@runtime_checkable
class Skips(Protocol):
    """A provider that may say which definitions its last list left out, and why."""

    @property
    def skipped(self) -> tuple[str, ...]: ...


@runtime_checkable
class HasStartLimit(Protocol):
    """A provider whose start may take longer than others', such as a command that downloads itself first."""

    @property
    def start_limit(self) -> float: ...


@runtime_checkable
class Abandons(Protocol):
    """A provider whose upstream keeps work that waits for answers, and can be told that none will come."""

    async def abandon(self, upstream_state: str) -> None:
        """Nobody goes on with the call that was left in this state (`NeedsInput.state`). Quick; failures are kept."""
        ...
