"""Direct calls whose node died: nobody knows how far they came, so they end as `interrupted`."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog

from toolyard.calls import session_events
from toolyard.core.clock import Clock
from toolyard.core.record import CallRecord
from toolyard.durable.engine import Engine
from toolyard.store import open_calls
from toolyard.store.base import Connection, Store

SWEEP_EVERY = 2.0
"""Seconds between looks for nodes that died."""
LOOK_ANYWAY_EVERY = 10.0
"""Seconds between looks at every open call: a node may have come and gone between two looks."""

_log = structlog.get_logger("toolyard.calls")


class Orphans:
    """Looks after them on every node; safe on several at once."""

    def __init__(self, store: Store, engine: Engine, clock: Clock) -> None:
        self._store = store
        self._engine = engine
        self._clock = clock
        self._nodes: frozenset[str] = frozenset()
        self._look_anyway_at = 0.0
        engine.sweep(self.look_for_dead_nodes, every=SWEEP_EVERY)

    async def look_for_dead_nodes(self) -> None:
        """Settle what a node left open once it is gone."""
        loop = asyncio.get_running_loop()
        alive = await self._store.read(open_calls.living_nodes)
        if self._nodes - alive or loop.time() >= self._look_anyway_at:
            await self.settle()
            self._look_anyway_at = loop.time() + LOOK_ANYWAY_EVERY
        self._nodes = alive

    async def settle(self) -> None:
        """End the open direct calls of every node that is not alive."""
        settled = await self._store.tx(partial(_interrupt, now=self._clock.now(), spared=self._engine.node_id))
        if settled:
            _log.warning("calls of a node that died are settled as interrupted", calls=len(settled))
            self._engine.hint(*(topic for record in settled for topic in session_events.topics_of(record)))


def _interrupt(c: Connection, *, now: float, spared: str) -> list[CallRecord]:
    settled = open_calls.interrupt_orphans(c, now=now, spared=spared)
    for record in settled:
        session_events.ended(c, record, None)
    return settled
