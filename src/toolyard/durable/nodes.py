"""The lease of this node: its row on the database's clock, and what this process may still believe."""

from __future__ import annotations

import sys
import time
from functools import cache

from toolyard.core.clock import Clock
from toolyard.durable.jobs import CLOCK, Fenced
from toolyard.store.base import Connection

_COUNTS_SUSPEND = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
"""`time.monotonic` does not count it on Linux. On macOS CLOCK_MONOTONIC does."""
_DOUBLE = {"sqlite": "REAL", "postgres": "double precision"}


class SuspendAwareClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only go forward, also while the machine sleeps."""
        return time.clock_gettime(_COUNTS_SUSPEND)


class Lease:
    """What this process knows of its lease. `beat` is when the last successful renewal was *sent*."""

    def __init__(self, node_id: str, ttl: float, clock: Clock) -> None:
        self.node_id = node_id
        self.ttl = ttl
        self._clock = clock
        self._beat = float("-inf")

    @property
    def age(self) -> float:
        """Seconds since the last renewal."""
        return self._clock.monotonic() - self._beat

    @property
    def held(self) -> bool:
        return self.age <= self.ttl

    @property
    def fresh(self) -> bool:
        """Good for new work: half of the lease is left."""
        return self.age < self.ttl / 2

    def sending(self) -> float:
        """Call before the renewal is sent, and give the value to `renewed` once it is committed."""
        return self._clock.monotonic()

    def renewed(self, sent: float) -> None:
        self._beat = sent

    def lost(self) -> None:
        self._beat = float("-inf")

    def check(self) -> None:
        """
        Raises:
            Fenced: others may own our jobs by now.
        """
        if not self.held:
            raise Fenced(
                f"The lease of node {self.node_id} has ended.",
                suggestion="The node could not reach the database in time. Another one goes on with its work.",
            )


def renew(c: Connection, node_id: str, ttl: float, url: str | None) -> None:
    c.execute(
        "INSERT INTO nodes (id, lease, version, url, started)"
        f" VALUES (?, {CLOCK[c.dialect]} + CAST(? AS {_DOUBLE[c.dialect]}), ?, ?, {CLOCK[c.dialect]})"
        " ON CONFLICT (id) DO UPDATE SET lease = excluded.lease, url = excluded.url",
        node_id,
        ttl,
        _version(),
        url,
    )


def remove(c: Connection, node_id: str) -> None:
    """An orderly end."""
    c.execute("DELETE FROM nodes WHERE id = ?", node_id)


def remove_dead(c: Connection, node_id: str) -> None:
    """Forget other nodes whose lease has ended.

    Their rows stay locked until our transaction ends, so that none of them renews while we take its jobs; one that
    renews right now is skipped.
    """
    skipping = " FOR UPDATE SKIP LOCKED" if c.dialect == "postgres" else ""
    c.execute(
        "DELETE FROM nodes WHERE id IN"
        f" (SELECT id FROM nodes WHERE id <> ? AND lease < {CLOCK[c.dialect]} ORDER BY id{skipping})",
        node_id,
    )


def remove_others(c: Connection, living: frozenset[str]) -> None:
    """For SQLite, whose file belongs to one process: nodes that are not in it are dead, whatever their leases say."""
    for (node_id,) in c.execute("SELECT id FROM nodes").fetchall():
        if node_id not in living:
            c.execute("DELETE FROM nodes WHERE id = ?", node_id)


@cache
def _version() -> str:
    from importlib.metadata import version

    return version("toolyard")
