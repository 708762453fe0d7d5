"""When a provider is given up, and when it is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """All times in seconds."""

    failures_to_open: int = 3
    """Consecutive transport failures after which calls fail at once."""
    first_delay: float = 1.0
    longest_delay: float = 60.0
    jitter: float = 0.2
    """The share of a delay that is random, so that nodes do not return together."""
    settle: float = 0.05
    """How long a burst of change notices is gathered before one refresh."""
    refresh_interval: float = 1.0
    """The least time between two refreshes that the provider itself asked for."""
    idle_check: float = 60.0
    """A provider nobody called for this long is asked whether it is still there."""
    close_limit: float = 5.0

    def delay(self, attempt: int) -> float:
        """The wait before attempt number `attempt` (from 1): doubled each time, up to the longest."""
        plain = min(self.longest_delay, self.first_delay * 2.0 ** min(attempt - 1, 30))
        return plain * (1 - self.jitter + self.jitter * random.random())  # noqa: S311  spreads load, guards nothing
