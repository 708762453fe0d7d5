"""Every request for approval that this node makes is told to those who are to be notified."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import orjson
import structlog

from toolyard.core.approval import ApprovalRecord, Gate
from toolyard.core.errors import NotFound, StoreError
from toolyard.core.json import JsonObject
from toolyard.durable.events import Bus, Event
from toolyard.notify import Notice, Notifier

_log = structlog.get_logger("toolyard.app")


class Notices:
    """Listens to the bus, where every node hears of every request; the node that made one tells it (`here`).

    The gate of a session's own user is no operator's business, and is not told.
    """

    def __init__(
        self,
        bus: Bus,
        read: Callable[[str], Awaitable[ApprovalRecord]],
        notifier: Notifier,
        url: str,
    ) -> None:
        """`read` fetches an approval by its id; `url` is how people reach this yard."""
        self._bus = bus
        self._read = read
        self._notifier = notifier
        self._url = url
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop_listening: Callable[[], None] | None = None

    def start(self) -> None:
        if self._notifier:
            self._stop_listening = self._bus.listen("approval", self._heard)

    async def close(self) -> None:
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._notifier.close()

    def _heard(self, event: Event) -> None:
        approval_id = event.data.get("id")
        asked_here = event.data.get("here") is not False
        if asked_here and event.data.get("type") == "requested" and isinstance(approval_id, str):
            task = asyncio.get_running_loop().create_task(self._tell(approval_id), name=f"notice {approval_id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _tell(self, approval_id: str) -> None:
        try:
            record = await self._read(approval_id)
        except (NotFound, StoreError) as error:
            _log.error("nobody could be notified of a request", approval=approval_id, cause=str(error))
            return
        if record.gate is Gate.OPERATOR and not record.is_decided:
            self._notifier.tell(_notice(record, f"{self._url}/approvals/{record.id}"))


def _notice(record: ApprovalRecord, url: str) -> Notice:
    return Notice(
        id=record.id,
        tool=record.tool,
        who=record.principal,
        server=record.server,
        session=record.session_id,
        why=record.why,
        created=record.created,
        deadline=record.deadline,
        url=url,
        arguments=cast("JsonObject", orjson.loads(record.arguments)),
    )
