"""Approvals that were asked for or decided, on whichever node, told on this node's bus (topic `approval`).

A hint says that there is something; what it is, is read. So the operators' streams of every node tell the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import structlog

from toolyard.calls.session_events import approval_wire
from toolyard.core.approval import ApprovalRecord
from toolyard.core.errors import StoreError
from toolyard.durable.engine import Engine
from toolyard.durable.events import Bus
from toolyard.store import approvals as rows
from toolyard.store.base import Connection, Store

_log = structlog.get_logger("toolyard.app")

_OVERLAP = 5.0
"""Seconds looked back, as a transaction that began earlier may commit later."""
_AT_ONCE = 500
_REMEMBERED = 5000
_PAUSE_AFTER_ERROR = 1.0


class ApprovalNews:
    def __init__(self, store: Store, engine: Engine, bus: Bus, asked_here: Callable[[str], bool]) -> None:
        """`asked_here`: whether this node made the request; its notices are this node's to send."""
        self._store = store
        self._engine = engine
        self._bus = bus
        self._asked_here = asked_here
        self._told: dict[tuple[str, str | None], None] = {}
        self._since = 0.0
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._since = await self._store.read(lambda c: c.now())
        self._task = asyncio.create_task(self._watch(), name="approval news")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _watch(self) -> None:
        async with self._engine.watch("approvals") as waiter:
            for record in (await self._store.read(partial(_changed, since=self._since)))[1]:
                self._told[_news(record)] = None  # of before our time
            while True:
                try:
                    if await waiter.wait() or self._store.dialect == "postgres":
                        await self._tell()
                except StoreError as error:
                    _log.warning("news of approvals could not be read", cause=str(error))
                    await asyncio.sleep(_PAUSE_AFTER_ERROR)

    async def _tell(self) -> None:
        now, changed = await self._store.read(partial(_changed, since=self._since))
        if len(changed) < _AT_ONCE:
            self._since = now
        else:
            self._since = max(record.decided_at or record.created for record in changed) + _OVERLAP
        for record in changed:
            news = _news(record)
            if news in self._told:
                continue
            self._told[news] = None
            if len(self._told) > _REMEMBERED:
                self._told.pop(next(iter(self._told)))
            kind = "decided" if record.is_decided else "requested"
            self._bus.publish("approval", {**approval_wire(record), "type": kind, "here": self._asked_here(record.id)})


def _news(record: ApprovalRecord) -> tuple[str, str | None]:
    return record.id, record.decision.value if record.decision else None


def _changed(c: Connection, *, since: float) -> tuple[float, list[ApprovalRecord]]:
    return c.now(), rows.changed(c, since - _OVERLAP, at_most=_AT_ONCE)
