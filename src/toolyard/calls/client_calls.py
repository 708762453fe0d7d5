"""Calls that a session's client executes: handed out, kept alive by beats, settled by the client's answer.

```
PENDING (waiting client) --first beat--> PROCESSING --response--> COMPLETE | ERROR
```
A response may come before any beat: a tool that is done within one heartbeat interval never sends one. The call then
passes PROCESSING within the same transaction. A response with `state: PENDING` counts as a beat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import orjson

from toolyard.calls import parking, session_events
from toolyard.calls.audit import Audit, failure_of
from toolyard.calls.cleaning import clean
from toolyard.calls.heartbeats import FLUSH_EVERY, SILENCE_TIMEOUT, Heartbeats
from toolyard.calls.parking import NewCall
from toolyard.calls.record import Ending, Opening
from toolyard.calls.responses import check_response, failed_response
from toolyard.calls.workbench import Workbench
from toolyard.catalog import Entry
from toolyard.core.call import CallFailure, CallRequest, CallState, ToolResult
from toolyard.core.clock import Clock
from toolyard.core.errors import Conflict, ErrorCode, NotFound
from toolyard.core.json import JsonObject, sha256
from toolyard.core.principal import Principal
from toolyard.core.record import CallRecord
from toolyard.core.session import ClientRequest, ClientTool
from toolyard.durable.nodes import SuspendAwareClock
from toolyard.store import calls as rows
from toolyard.store import leases, open_calls
from toolyard.store.base import Connection

SWEEP_EVERY = 1.0
LONGEST_ERROR = 10_000
LOOK_FOR_MISSING_EVERY = 30.0
"""Seconds between looks for picked-up calls whose lease was lost."""
_AT_ONCE = 500
_DIGEST = "response_hash"
"""In a call's details: which answer settled it."""


class ClientCalls:
    """Somebody else's session or request looks like one that does not exist."""

    def __init__(
        self, bench: Workbench, audit: Audit, *, silence_timeout: float = SILENCE_TIMEOUT, clock: Clock | None = None
    ) -> None:
        self._bench = bench
        self._audit = audit
        self._silence = silence_timeout
        self._clock: Clock = clock or SuspendAwareClock()
        self._look_for_missing_at = self._clock.monotonic()
        self._store = bench.store
        self._engine = bench.engine
        self._beats = Heartbeats(bench.store, silence_timeout=silence_timeout, clock=self._clock)
        bench.engine.sweep(self.flush, every=FLUSH_EVERY)
        bench.engine.sweep(self.abandon, every=SWEEP_EVERY)

    # -- what there is to do

    async def open(self, session_id: str, principal: Principal, wait: float = 0.0) -> list[ClientRequest]:
        """The session's open calls, oldest first; with `wait`, up to that many seconds for a first one.

        Raises:
            NotFound: there is no such session.
        """
        await self._bench.sessions.get(session_id, principal)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        async with self._engine.watch(f"session:{session_id}") as waiter:
            while True:
                found = await self._store.read(partial(open_calls.of_client, session_id=session_id))
                left = until - loop.time()
                if found or left <= 0:
                    return [await self._request(record) for record in found]
                await waiter.wait(left)

    # -- signs of life

    def beat_many(self, principal: Principal, pairs: Iterable[Sequence[str]]) -> list[list[str]]:
        """Note a beat of each (session, request) in memory; those that are known to have ended."""
        return self._beats.beat_many(principal.label, pairs)

    def beat_known(self, principal: Principal, session_id: str, request_id: str) -> bool:
        """Note a beat of a call that this node knows as picked up; False: `beat` has to look."""
        return self._beats.beat(principal.label, session_id, request_id)

    async def beat(
        self, session_id: str, request_id: str, principal: Principal, heartbeat_ms: float | None = None
    ) -> None:
        """A sign of life; the first one picks the call up. `heartbeat_ms` is the client's own clock, which is not used.

        Raises:
            NotFound: there is no such session or request.
            Conflict: the call has ended.
        """
        del heartbeat_ms
        if self._beats.beat(principal.label, session_id, request_id):
            return
        record = await self._find(session_id, request_id, principal)
        await self._pick_up(record)

    async def _pick_up(self, record: CallRecord) -> None:
        if record.state.is_final:
            self._beats.forget(record.id, record.principal)
            raise _ended(record)
        started = self._bench.clock.now()
        now_open = await self._store.tx(partial(_picked_up, record, started=started, seconds=self._beats.lease))
        if not now_open:
            self._beats.forget(record.id, record.principal)
            raise _ended(await self._store.read(partial(rows.get, call_id=record.id)) or record)
        self._beats.add(record)
        if record.state is CallState.PENDING:
            self._hint(record)
            self._bench.observers.tell_of(replace(record, started=started), CallState.PROCESSING, None)

    async def flush(self) -> None:
        """Get to know the calls that beats named, then write all beats. Every two seconds."""
        newcomers = self._beats.newcomers()
        if newcomers:
            found = await self._store.read(partial(open_calls.states_of, call_ids=list(newcomers)))
            known = {record.id: record for record in found}
            for request_id, (session_id, owner) in newcomers.items():
                record = known.get(request_id)
                if record is None or not _is_of(record, session_id, owner):
                    self._beats.forget(request_id, owner)
                    continue
                try:
                    await self._pick_up(record)
                except Conflict:
                    continue
        await self._beats.flush()

    # -- the end

    async def fail(self, session_id: str, request_id: str, principal: Principal, error: str) -> None:
        """The client could not do it. The same again is accepted.

        Raises:
            NotFound: there is no such session or request.
            Conflict: the call has ended otherwise.
        """
        record = await self._find(session_id, request_id, principal)
        digest = sha256(["error", error])
        if record.state.is_final:
            return _must_be_the_same(record, digest)
        message = clean(error).strip()[:LONGEST_ERROR] or "The client reported an error and said no more."
        failure = CallFailure(ErrorCode.UPSTREAM, message)
        ending = Ending.of_failure(failure, record.started or self._bench.clock.now())
        await self._settle(record, await self._opening(record, principal), ending, digest)
        return None

    async def respond(self, session_id: str, request_id: str, principal: Principal, response: JsonObject) -> CallState:
        """The client's answer, checked against the tool's response shape; how the call stands now. The same answer
        again is accepted.

        Raises:
            NotFound: there is no such session or request.
            BadInput: it does not have the shape; `where` is the field, and the call stays open.
            TooLarge: more bytes than we take; the call stays open.
            Conflict: the call has ended otherwise.
        """
        session = await self._bench.sessions.get(session_id, principal)
        record = await self._find(session_id, request_id, principal)
        tool = session.tools[record.tool.partition(":")[2]]
        if record.state.is_final:
            _must_be_the_same(record, _digest(response))
            return record.state
        check_response(tool, response)
        if response["state"] == "PENDING":
            await self._pick_up(record)
            self._beats.beat(principal.label, session_id, request_id)
            return CallState.PROCESSING
        ending, opening, then = await self._shaped(record, tool, response, principal)
        await self._settle(record, opening, ending, _digest(response), then)
        return ending.state

    async def _shaped(
        self, record: CallRecord, tool: ClientTool, response: JsonObject, principal: Principal
    ) -> tuple[Ending, Opening, NewCall | None]:
        opening = await self._opening(record, principal)
        failed = response["state"] == "FAILED"
        result = failed_response(response) if failed else ToolResult.of_value(response)
        started = record.started or self._bench.clock.now()
        ending = await self._bench.shaped(opening.request, record.created, tool.tool, result, started)
        then = None
        if ending.failure is None:
            then = await self._bench.follow_up(opening.request, Entry(tool.tool), result)
        return ending, opening, then

    async def _opening(self, record: CallRecord, principal: Principal) -> Opening:
        arguments = await self._audit.full_arguments(record)
        request = CallRequest(
            record.tool,
            cast("JsonObject", orjson.loads(arguments)),
            principal,
            record.origin,
            server=record.server,
            call_id=record.id,
            session=record.session_id,
        )
        return Opening(request, arguments, record.arguments_ref, record.request_hash, record.created)

    async def _settle(
        self, record: CallRecord, opening: Opening, ending: Ending, digest: str, then: NewCall | None = None
    ) -> None:
        """In one transaction: the end, its event, and what follows it."""
        ending = replace(ending, details={**(record.details or {}), **(ending.details or {}), _DIGEST: digest})
        settled = await self._bench.recorder.ended(opening, ending)
        settled = replace(settled, execution="client")

        def settle(c: Connection) -> CallRecord | None:
            current = open_calls.lock(c, record.id)
            if current is None or current.state.is_final:
                return current
            open_calls.pick_up(c, record.id, started=ending.started or self._bench.clock.now())
            rows.settle(c, settled)
            leases.end(c, record.id)
            if then is not None:
                parking.insert(c, then)
            session_events.ended(c, settled, ending.result)
            return None

        earlier = await self._store.tx(settle)
        self._beats.forget(record.id, record.principal)
        if earlier is not None:
            _must_be_the_same(earlier, digest)
            return
        self._hint(record, *(then.topics if then is not None else ()))
        self._bench.observers.tell_of(settled, ending.state, ending.failure)

    async def abandon(self) -> None:
        """End what nobody picked up, and what was picked up and has gone silent. Safe on several nodes at once."""
        silent = await self._store.read(partial(leases.silent, at_most=_AT_ONCE))
        unclaimed = await self._store.read(partial(open_calls.unclaimed, at_most=_AT_ONCE))
        if not silent and not unclaimed and self._clock.monotonic() < self._look_for_missing_at:
            return
        if self._clock.monotonic() >= self._look_for_missing_at:
            self._look_for_missing_at = self._clock.monotonic() + LOOK_FOR_MISSING_EVERY
            await self._store.tx(partial(leases.start_missing, seconds=self._beats.lease))
        for call_id in silent:
            await self._end_one(call_id, self._abandoned)
        for record in unclaimed:
            await self._end_one(record.id, _unclaimed)

    async def _end_one(self, call_id: str, why: Callable[[Connection, CallRecord], CallFailure | None]) -> None:
        finished = self._bench.clock.now()

        def end(c: Connection) -> CallRecord | None:
            record = open_calls.lock(c, call_id)
            if record is None or record.state.is_final:
                leases.end(c, call_id)
                return None
            failure = why(c, record)
            if failure is None or not open_calls.fail(c, call_id, failure, finished=finished):
                return None
            leases.end(c, call_id)
            ended = rows.get(c, call_id) or record
            session_events.ended(c, ended, None)
            return ended

        record = await self._store.tx(end)
        if record is not None:
            self._beats.forget(call_id, record.principal)
            self._hint(record)
            self._bench.observers.tell_of(record, CallState.ERROR, failure_of(record))

    def _abandoned(self, c: Connection, record: CallRecord) -> CallFailure | None:
        """Looked at under the call's lock: a beat may have been written since."""
        if record.state is not CallState.PROCESSING or not leases.is_silent(c, record.id):
            return None
        return CallFailure(
            ErrorCode.ABANDONED,
            f"The client that was working on {record.tool} has not been heard of for {self._silence:g} s; whether it "
            "took effect is not known.",
            "Check its effect before calling again.",
        )

    # -- reading

    async def _find(self, session_id: str, request_id: str, principal: Principal) -> CallRecord:
        """
        Raises:
            NotFound: there is no such request, or it is not the client's to execute (yet).
        """
        await self._bench.sessions.get(session_id, principal)
        record = await self._store.read(partial(rows.get, call_id=request_id))
        if record is None or not _is_of(record, session_id, principal.label):
            raise NotFound(f"There is no request {request_id[:100]!r} in this session.")
        return record

    async def _request(self, record: CallRecord) -> ClientRequest:
        arguments = await self._audit.full_arguments(record)
        return ClientRequest(
            request_id=record.id,
            name=record.tool.partition(":")[2],
            arguments=cast("JsonObject", orjson.loads(arguments)),
            state=record.state.value,
            deadline=record.deadline,
        )

    def _hint(self, record: CallRecord, *more: str) -> None:
        self._engine.hint(*session_events.topics_of(record), *more)


def _picked_up(record: CallRecord, c: Connection, *, started: float, seconds: float) -> bool:
    """Alive from now on; the first time, PENDING -> PROCESSING with its event. False when it has ended."""
    current = open_calls.lock(c, record.id)
    if current is None or current.state.is_final:
        return False
    leases.start(c, record.id, seconds)
    if open_calls.pick_up(c, record.id, started=started):
        session_events.picked_up(c, record)
    return True


def _unclaimed(c: Connection, record: CallRecord) -> CallFailure | None:
    if record.state is not CallState.PENDING or record.deadline is None or record.deadline >= c.now():
        return None
    return CallFailure(
        ErrorCode.ABANDONED,
        f"No client picked up {record.tool} in time; it was not run.",
        "See that the session's client is connected, then call again.",
    )


def _is_of(record: CallRecord, session_id: str, owner: str) -> bool:
    """A call that still waits for approval is not the client's yet."""
    theirs = record.session_id == session_id and record.principal == owner and record.execution == "client"
    return theirs and (record.state.is_final or record.waiting == "client")


def _digest(response: JsonObject) -> str:
    try:
        return sha256(response)
    except (ValueError, RecursionError):
        return ""


def _must_be_the_same(earlier: CallRecord, digest: str) -> None:
    """A retry of the answer that settled it is no mistake.

    Raises:
        Conflict: it ended otherwise.
    """
    if (earlier.details or {}).get(_DIGEST) != digest:
        raise _ended(earlier)


def _ended(record: CallRecord) -> Conflict:
    how = f"{record.state}" if record.error_code is None else f"{record.state} ({record.error_code})"
    return Conflict(
        f"The call {record.id} has ended already: {how}.", suggestion="Stop working on it; nothing was changed."
    )
