"""What people are told about a provider."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from toolyard.core.tool import Kind


class ProviderState(StrEnum):
    STARTING = "starting"
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    id: str
    kind: Kind
    address: str
    state: ProviderState
    era: str | None
    """`modern` or `legacy` for MCP, else None."""
    latency_ms: float | None
    """Moving average over calls; before the first call, how long the last list took."""
    last_error: str | None
    tool_count: int
    since: float
    """Epoch seconds of the last change of state."""
    required: bool
    retry_at: float | None
    """Epoch seconds of the next attempt while down."""
    skipped: tuple[str, ...] = ()
    """Tools that were left out of the catalog, each with its reason (at most 50 are kept)."""
