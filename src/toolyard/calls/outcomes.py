"""How a call stands or ended, told on any node: readers wait for a hint and always read again."""

from __future__ import annotations

import asyncio
from functools import partial

from toolyard.calls.audit import Audit, failure_of
from toolyard.calls.images import ImageCollector
from toolyard.calls.record import blob_prefix
from toolyard.calls.shape import decode_result, shape
from toolyard.catalog import Catalog
from toolyard.core.approval import Waiting
from toolyard.core.call import CallOutcome, ToolResult
from toolyard.core.record import CallRecord
from toolyard.core.tool import Tool
from toolyard.durable.engine import Engine
from toolyard.store import approvals as approval_rows
from toolyard.store import questions as question_rows
from toolyard.store.base import Store
from toolyard.store.blobs import Blobs


class Outcomes(Audit):
    def __init__(self, store: Store, blobs: Blobs, *, catalog: Catalog, engine: Engine, url: str) -> None:
        super().__init__(store, blobs)
        self._catalog = catalog
        self._engine = engine
        self._url = url

    async def outcome(self, call_id: str) -> CallOutcome:
        """The call as it stands now: ended, or open with what it waits for.

        Raises:
            NotFound: there is no such call.
        """
        record = await self.get(call_id)
        return await self._ended(record) if record.state.is_final else await self._open(record)

    async def until_ended(self, call_id: str, seconds: float | None) -> CallOutcome | None:
        """The outcome, or None when the call is still open after `seconds` (None: however long it takes). Works on any
        node, as what is waited for is read from the record.

        Raises:
            NotFound: there is no such call.
        """
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        async with self._engine.watch(f"call:{call_id}") as waiter:
            while True:
                record = await self.get(call_id)
                if record.state.is_final:
                    return await self._ended(record)
                left = None if until is None else until - loop.time()
                if left is not None and left <= 0:
                    return None
                await waiter.wait(left)

    async def until_ended_or_asked(
        self, call_id: str, seconds: float | None, known: frozenset[str] = frozenset()
    ) -> CallOutcome:
        """The outcome: ended, or open with what the call asks its caller beside the questions whose ids are `known`, or
        however it stands after `seconds`."""
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        async with self._engine.watch(f"call:{call_id}") as waiter:
            while True:
                outcome = await self.outcome(call_id)
                asks = outcome.waiting is not None and any(
                    question.id not in known for question in outcome.waiting.questions
                )
                left = None if until is None else until - loop.time()
                if outcome.state.is_final or asks or (left is not None and left <= 0):
                    return outcome
                await waiter.wait(left)

    async def _open(self, record: CallRecord) -> CallOutcome:
        return CallOutcome(record.id, record.tool, record.state, waiting=await self._waiting(record))

    async def _waiting(self, record: CallRecord) -> Waiting | None:
        if record.waiting == "client":
            return Waiting("client", record.id, record.deadline)
        if record.waiting is None:
            return None
        if record.waiting == "question":
            asked = await self._store.read(partial(question_rows.of_call, call_id=record.id))
            still_open = tuple(row.asked for row in asked if row.answer is None)
            if not still_open:
                return None
            deadline = min(question.deadline for question in still_open)
            return Waiting("question", record.id, deadline, questions=still_open)
        gates = await self._store.read(partial(approval_rows.of_call, call_id=record.id))
        gate = next((gate for gate in gates if not gate.is_decided), None)
        if gate is None:
            return None
        return Waiting("approval", gate.id, gate.deadline, f"{self._url}/approvals/{gate.id}")

    async def _ended(self, record: CallRecord) -> CallOutcome:
        result: ToolResult | None = None
        if record.output_bytes is not None:
            whole = decode_result(await self.full_result(record.id))
            entry = self._catalog.snapshot.get(record.tool)
            collector = partial(self._collector, record.id, record.created)
            tool = entry.tool if entry else Tool(record.namespace, record.tool.partition(":")[2], "")
            result = shape(whole, tool, call_id=record.id, origin=record.origin, collector=collector).result
        return CallOutcome(record.id, record.tool, record.state, result, failure_of(record))

    def _collector(self, call_id: str, created: float) -> ImageCollector:
        return ImageCollector(blob_prefix(call_id, created), self._url)
