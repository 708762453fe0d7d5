"""Step 7: every call on record, durably, before its result is acknowledged (a read-only call's record may follow)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from toolyard.calls import parking, session_events
from toolyard.calls.parking import NewCall
from toolyard.calls.shape import Shaped
from toolyard.core.call import CallFailure, CallRequest, CallState, ToolResult
from toolyard.core.clock import Clock
from toolyard.core.errors import Conflict, StoreUnavailable
from toolyard.core.json import JsonObject, sha256
from toolyard.core.record import CallRecord
from toolyard.durable.engine import Engine
from toolyard.store import calls as rows
from toolyard.store.base import Connection, Mergeable, Store
from toolyard.store.blobs import Blobs

LARGEST_IN_ROW = 16 * 1024
"""Bytes of JSON kept in the row itself; what is larger becomes a blob."""
DETAILS_RPC = "rpc"
"""The part of a call's details that is the JSON-RPC error it ended with."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known of a call before it runs. Times are epoch seconds."""

    request: CallRequest
    arguments: bytes
    arguments_ref: str | None
    request_hash: str | None
    created: float

    @property
    def blob_prefix(self) -> str:
        return blob_prefix(self.request.call_id, self.created)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ended, as it goes on record."""

    state: CallState
    started: float | None = None
    encoded: bytes | None = None
    """The whole result, as the tool gave it."""
    preview: str | None = None
    tokens: int | None = None
    failure: CallFailure | None = None
    details: JsonObject | None = None
    result: ToolResult | None = None
    """As its reader sees it."""

    @staticmethod
    def of_result(shaped: Shaped, failure: CallFailure | None, started: float) -> Ending:
        return Ending(
            state=CallState.ERROR if failure else CallState.COMPLETE,
            started=started,
            encoded=shaped.encoded,
            preview=shaped.preview,
            tokens=shaped.tokens,
            failure=failure,
            details=shaped.result.details,
            result=shaped.result,
        )

    @staticmethod
    def of_failure(failure: CallFailure, started: float | None) -> Ending:
        details = None if failure.rpc is None else {DETAILS_RPC: failure.rpc}
        return Ending(state=CallState.ERROR, started=started, failure=failure, details=details)


class Recorder:
    """Writes the audit log. `engine` is told of what others may wait for; its node is on record as the owner."""

    def __init__(self, store: Store, blobs: Blobs, clock: Clock, engine: Engine) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._engine = engine
        self._node = engine.node_id

    async def open(self, request: CallRequest, arguments: bytes) -> Opening:
        """
        Raises:
            StoreUnavailable: large arguments could not be kept, so nothing may run.
        """
        created = self._clock.now()
        arguments_ref: str | None = None
        if len(arguments) > LARGEST_IN_ROW:
            arguments_ref = f"{blob_prefix(request.call_id, created)}-arguments.json"
            await self._blobs.put(arguments_ref, arguments)
        keyed = request.idempotency_key is not None
        return Opening(
            request=request,
            arguments=arguments,
            arguments_ref=arguments_ref,
            request_hash=sha256([request.tool, request.arguments]) if keyed else None,
            created=created,
        )

    async def begin(self, opening: Opening, started: float) -> CallRecord | None:
        """Put a call on disk as PROCESSING; or the earlier call that used its idempotency key.

        Raises:
            Conflict: the key was used for another tool or other arguments.
            StoreUnavailable: it could not be written, so nothing may run.
        """
        ending = Ending(CallState.PROCESSING, started=started)
        record = record_of(opening, ending, finished=None, owner=self._node)
        if record.idempotency_key is None and record.session_id is None:
            await self._store.tx(_insertion(record))
            return None
        earlier = await self._store.tx(partial(_insert_or_find, record, opening.arguments))
        self._hint_session(record)
        must_be_the_same(earlier, opening)
        return earlier

    async def park(self, new: NewCall) -> CallRecord:
        """Put a call that waits on disk; it, or the earlier call with its idempotency key.

        Raises:
            StoreUnavailable: it could not be written, so nothing waits.
        """
        record = await self._store.tx(partial(parking.insert, new=new))
        self._engine.hint(*new.topics)
        return record

    async def end(
        self, opening: Opening, ending: Ending, *, begun: bool, follow: bool = False, then: NewCall | None = None
    ) -> bool:
        """Put the end of a call on record. `begun`: its row exists. `follow`: do not wait for the disk. `then`: a call
        that begins because this one succeeded, in the same transaction.

        False when the call had ended otherwise meanwhile (cancelled or interrupted by another node): what came is kept
        as `late`, and the record says how the call ended.

        Raises:
            StoreUnavailable: it could not be written. A row that was begun stays open, and says so at the next start.
        """
        try:
            if then is not None or opening.request.session is not None:
                return await self._end_with_others(opening, ending, begun=begun, then=then)
            return await self._end(opening, ending, begun=begun, follow=follow)
        except StoreUnavailable as error:
            if not begun:
                raise
            raise StoreUnavailable(
                f"{opening.request.tool} ran, but its outcome could not be put on record: {error.message}",
                suggestion="Check its effect before calling again.",
            ) from error

    async def _end(self, opening: Opening, ending: Ending, *, begun: bool, follow: bool) -> bool:
        record = await self.ended(opening, ending)
        if begun:
            settlement = _Settlement(record)
            await self._store.tx(Mergeable(_settle_all, settlement, rank=1))
            return not settlement.late
        if follow:
            self._store.submit(_insertion(record))
        else:
            await self._store.tx(_insertion(record))
        return True

    async def ended(self, opening: Opening, ending: Ending) -> CallRecord:
        """How the call goes on record, its large result kept as a blob already."""
        result_ref: str | None = None
        if ending.encoded is not None and len(ending.encoded) > LARGEST_IN_ROW:
            result_ref = f"{opening.blob_prefix}-result.json"
            await self._blobs.put(result_ref, ending.encoded)
        return record_of(opening, ending, finished=self._clock.now(), result_ref=result_ref, owner=self._node)

    async def _end_with_others(self, opening: Opening, ending: Ending, *, begun: bool, then: NewCall | None) -> bool:
        record = await self.ended(opening, ending)
        end = partial(_end_with_others, record, opening.arguments, ending, begun=begun, then=then)
        in_time = await self._store.tx(end)
        self._hint_session(record)
        if then is not None:
            self._engine.hint(*then.topics)
        return in_time

    def _hint_session(self, record: CallRecord) -> None:
        if record.session_id is not None:
            self._engine.hint(f"session:{record.session_id}")

    def end_soon(self, opening: Opening, ending: Ending, *, begun: bool) -> None:
        """For a call whose task is being cancelled and may not wait."""
        record = record_of(opening, ending, finished=self._clock.now(), owner=self._node)
        if record.session_id is not None:
            end = partial(_end_with_others, record, opening.arguments, ending, begun=begun, then=None)
            self._store.submit(end)
            return
        self._store.submit(Mergeable(_settle_all, _Settlement(record), rank=1) if begun else _insertion(record))

    async def keep_images(self, shaped: Shaped) -> None:
        for image in shaped.images:
            await self._blobs.put(image.name, image.data)


def blob_prefix(call_id: str, created: float) -> str:
    """`calls/2026-11-20/call_abc`: retention deletes by day."""
    return f"calls/{time.strftime('%Y-%m-%d', time.gmtime(created))}/{call_id}"


def scoped_key(request: CallRequest) -> str | None:
    """An idempotency key belongs to one principal, and never meets another's."""
    if request.idempotency_key is None:
        return None
    return f"{request.principal.kind}:{request.principal.id}|{request.idempotency_key}"


def must_be_the_same(earlier: CallRecord | None, opening: Opening) -> None:
    """
    Raises:
        Conflict: the idempotency key was used for another tool or other arguments.
    """
    if earlier is not None and earlier.request_hash != opening.request_hash:
        raise Conflict(
            f"The idempotency key {opening.request.idempotency_key!r} was used for another call.",
            suggestion="Use a new key for a new call.",
        )


def record_of(
    opening: Opening, ending: Ending, *, finished: float | None, owner: str | None, result_ref: str | None = None
) -> CallRecord:
    request, failure, encoded = opening.request, ending.failure, ending.encoded
    return CallRecord(
        id=request.call_id,
        tool=request.tool[:600],
        principal=request.principal.label,
        origin=request.origin,
        server=request.server,
        state=ending.state,
        arguments=None if opening.arguments_ref else opening.arguments.decode(),
        arguments_ref=opening.arguments_ref,
        result=encoded.decode() if encoded is not None and result_ref is None else None,
        result_ref=result_ref,
        preview=ending.preview,
        error=failure.message if failure else None,
        error_code=failure.code if failure else None,
        suggestion=failure.suggestion if failure else None,
        details=ending.details,
        idempotency_key=scoped_key(request),
        request_hash=opening.request_hash,
        created=opening.created,
        started=ending.started,
        finished=finished,
        input_bytes=len(opening.arguments),
        output_bytes=None if encoded is None else len(encoded),
        tokens=ending.tokens,
        session_id=request.session,
        owner=owner,
    )


def _end_with_others(
    record: CallRecord, arguments: bytes, ending: Ending, c: Connection, *, begun: bool, then: NewCall | None
) -> bool:
    """The end of a call with its session's events, and the call that follows it. False: it had ended otherwise."""
    if not (rows.settle(c, record) if begun else rows.insert(c, record)):
        return not rows.ended_otherwise(c, record)
    if then is not None:
        parking.insert(c, then)
    if not begun:
        session_events.called(c, record, arguments)
    session_events.ended(c, record, ending.result)
    return True


def _insertion(record: CallRecord) -> Mergeable[CallRecord]:
    return Mergeable(rows.insert_many, record)


@dataclass(slots=True)
class _Settlement:
    """An end on its way to the disk."""

    record: CallRecord
    late: bool = False
    """Set by the store's thread before whoever waits is woken: the call had ended otherwise."""


def _settle_all(c: Connection, settlements: Sequence[_Settlement]) -> None:
    late = rows.settle_many(c, [settlement.record for settlement in settlements])
    for settlement in settlements:
        settlement.late = settlement.record.id in late


def _insert_or_find(record: CallRecord, arguments: bytes, c: Connection) -> CallRecord | None:
    if rows.insert(c, record):
        session_events.called(c, record, arguments)
        return None
    if record.idempotency_key is None:
        return None
    earlier = rows.by_idempotency_key(c, record.principal, record.idempotency_key)
    return None if earlier is not None and earlier.id == record.id else earlier
