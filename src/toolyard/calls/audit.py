"""Reading the record: one call, pages of them, exports, metrics. Nothing here changes a call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Literal, cast

from toolyard.calls.export import csv_header, csv_row, json_line
from toolyard.calls.record import DETAILS_RPC
from toolyard.core.call import CallFailure, Origin
from toolyard.core.errors import ErrorCode, NotFound
from toolyard.core.json import JsonObject
from toolyard.core.record import CallFilter, CallPage, CallRecord, MinuteCount, ToolMetrics
from toolyard.store import calls as rows
from toolyard.store.base import Store
from toolyard.store.blobs import Blobs

LARGEST_PAGE = 500


class Audit:
    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store = store
        self._blobs = blobs

    async def get(self, call_id: str) -> CallRecord:
        """
        Raises:
            NotFound: there is no such call.
        """
        record = await self._store.read(partial(_get, call_id))
        if record is None:
            await self._store.flush()
            record = await self._store.read(partial(_get, call_id))
        if record is None:
            raise NotFound(f"There is no call {call_id[:100]!r}.")
        return record

    async def origins(self, call_ids: Sequence[str]) -> dict[str, Origin]:
        """Where these calls came from, in one query; those that are no longer on record are missing."""
        return await self._store.read(partial(rows.origins, call_ids=call_ids))

    async def full_result(self, call_id: str) -> bytes:
        """The whole result as the tool gave it: an MCP `CallToolResult` in JSON.

        Raises:
            NotFound: there is no such call, or it has no result.
        """
        record = await self.get(call_id)
        if record.result_ref is not None:
            return await self._blobs.get(record.result_ref)
        if record.result is None:
            reason = "it failed before there was one" if record.state.is_final else "it is still running"
            raise NotFound(f"The call {call_id} has no result: {reason}.")
        return record.result.encode()

    async def full_arguments(self, record: CallRecord) -> bytes:
        """The exact arguments, as JSON."""
        if record.arguments_ref is not None:
            return await self._blobs.get(record.arguments_ref)
        return (record.arguments or "{}").encode()

    async def page(self, wanted: CallFilter, *, limit: int = 50, cursor: str | None = None) -> CallPage:
        """Newest first.

        Raises:
            BadInput: a cursor that is not ours.
        """
        await self._store.flush()
        size = max(1, min(limit, LARGEST_PAGE))
        items, next_cursor = await self._store.read(lambda c: rows.page(c, wanted, limit=size, cursor=cursor))
        return CallPage(tuple(items), next_cursor)

    async def export(self, wanted: CallFilter, form: Literal["jsonl", "csv"]) -> AsyncIterator[bytes]:
        """Every matching record, newest first, as JSON Lines (with whole arguments and results) or CSV."""
        if form == "csv":
            yield csv_header()
        cursor: str | None = None
        while True:
            page = await self.page(wanted, limit=LARGEST_PAGE, cursor=cursor)
            for record in page.items:
                arguments = await self.full_arguments(record)
                if form == "csv":
                    yield csv_row(record, arguments)
                else:
                    yield json_line(record, arguments, await self._result_or_none(record))
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _result_or_none(self, record: CallRecord) -> bytes | None:
        return None if record.output_bytes is None else await self.full_result(record.id)

    async def tool_metrics(self, since: float = 0.0) -> list[ToolMetrics]:
        """Per tool since an epoch second, busiest first."""
        await self._store.flush()
        return await self._store.read(lambda c: rows.tool_metrics(c, since))

    async def per_minute(self, since: float) -> list[MinuteCount]:
        """Calls and failures by minute, oldest first; minutes without calls are left out."""
        await self._store.flush()
        return await self._store.read(lambda c: rows.per_minute(c, since))


def failure_of(record: CallRecord) -> CallFailure | None:
    """The failure on record: the message is the one the caller saw."""
    if record.error_code is None:
        return None
    rpc = record.details.get(DETAILS_RPC) if record.details is not None else None
    kept = cast("JsonObject", rpc) if isinstance(rpc, Mapping) else None
    return CallFailure(ErrorCode(record.error_code), record.error or "", record.suggestion, kept)


def _get(call_id: str, c: rows.Connection) -> CallRecord | None:
    return rows.get(c, call_id)
