"""Sessions: made by a client with the tools it brings along, read, followed, added to, closed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from typing import cast

from toolyard.calls import session_events
from toolyard.calls.cleaning import clean, map_strings
from toolyard.calls.client_tools import read_customizations
from toolyard.core.approval import Decision
from toolyard.core.call import CallFailure
from toolyard.core.clock import Clock, SystemClock
from toolyard.core.errors import BadInput, Conflict, ErrorCode, NotFound
from toolyard.core.ids import new_id
from toolyard.core.json import JsonObject, JsonValue, sha256
from toolyard.core.principal import Principal, Scope
from toolyard.core.session import Injected, Session
from toolyard.durable import jobs, log
from toolyard.durable.engine import Engine
from toolyard.durable.log import SessionEvent
from toolyard.store import approvals as approval_rows
from toolyard.store import calls as call_rows
from toolyard.store import leases, open_calls
from toolyard.store import sessions as rows
from toolyard.store.base import Connection, Store

LARGEST_PAGE = 1000
_FOLLOWED_AT_ONCE = 200
_MOST_KEPT = 1000
LONGEST_LABEL = 512

_CLOSED = CallFailure(ErrorCode.CANCELLED, "The session was deleted while this call was open.")


class Sessions:
    """Somebody else's session looks like one that does not exist."""

    def __init__(self, store: Store, engine: Engine, clock: Clock | None = None) -> None:
        self._store = store
        self._engine = engine
        self._clock: Clock = clock or SystemClock()
        self._read: dict[str, Session] = {}
        """What never changes of a session, read once."""

    async def create(self, principal: Principal, customizations: JsonObject, meta: JsonObject | None = None) -> Session:
        """
        Raises:
            BadInput: customizations that cannot be accepted; `where` is the field.
        """
        read = read_customizations(customizations)
        session_id = new_id("sess")

        def insert(c: Connection) -> rows.SessionRow | None:
            rows.insert(
                c,
                session_id,
                principal=principal.label,
                agent_id=read.agent_id,
                customizations=read.wire,
                meta=meta or {},
            )
            return rows.get(c, session_id)

        row = await self._store.tx(insert)
        if row is None:
            raise NotFound(f"The session {session_id} was not kept.")
        return self._session(row)

    async def get(self, session_id: str, principal: Principal | str) -> Session:
        """`principal` must own it (a label names one, for callers that know no more).

        Raises:
            NotFound: there is no such session, or not for them.
        """
        row = await self._store.read(partial(rows.get, session_id=session_id))
        label = principal if isinstance(principal, str) else principal.label
        if row is None or row.deleted is not None or row.principal != label:
            raise _unknown(session_id)
        return self._session(row)

    async def readable(self, session_id: str, principal: Principal) -> Session:
        """As `get`, and also for those who may read what others did.

        Raises:
            NotFound: there is no such session, or not for them.
        """
        if not principal.may(Scope.READ):
            return await self.get(session_id, principal)
        row = await self._store.read(partial(rows.get, session_id=session_id))
        if row is None or row.deleted is not None:
            raise _unknown(session_id)
        return self._session(row)

    async def page(
        self, principal: Principal, *, limit: int = 50, cursor: str | None = None
    ) -> tuple[list[Session], str | None]:
        """Newest first, and the next page's cursor: the principal's own, or all for those who may read.

        Raises:
            BadInput: the cursor is not one of ours.
        """
        whose = None if principal.may(Scope.READ) else principal.label
        found, following = await self._store.read(partial(rows.page, principal=whose, limit=limit, cursor=cursor))
        return [self._session(row) for row in found], following

    async def _allowed(self, session_id: str, principal: Principal, scope: Scope) -> Session:
        row = await self._store.read(partial(rows.get, session_id=session_id))
        theirs = row is not None and (row.principal == principal.label or principal.may(scope))
        if row is None or row.deleted is not None or not theirs:
            raise _unknown(session_id)
        return self._session(row)

    async def delete(self, session_id: str, principal: Principal) -> None:
        """Close it for good: its open calls end as cancelled; its events stay on record. For its owner, and for
        whoever may manage.

        Raises:
            NotFound
        """
        await self._allowed(session_id, principal, Scope.MANAGE)
        topics = await self._store.tx(partial(self._close, session_id))
        self._read.pop(session_id, None)
        self._engine.hint(f"session:{session_id}", "approvals", *topics)

    def _close(self, session_id: str, c: Connection) -> list[str]:
        topics: list[str] = []
        now = c.now()
        open_now = rows.open_calls(c, session_id)
        for _, job in open_now:
            if job is not None and jobs.lock(c, job) is not None:
                jobs.cancel(c, job)
                topics.append(f"job:{job}")
        for call_id, _ in open_now:
            cancel_row(c, call_id, _CLOSED, now=now)
            topics.append(f"call:{call_id}")
        rows.delete(c, session_id)
        holders = [f"session:{session_id}", f"user:session:{session_id}"]
        approval_rows.forget_allowances(c, holders)
        return topics

    # -- events

    async def events(
        self, session_id: str, principal: Principal, *, after: int = 0, limit: int = 100
    ) -> list[SessionEvent]:
        """Up to `limit` events behind number `after`, oldest first.

        Raises:
            NotFound
            BadInput: `after` is a number that this session has not reached.
        """
        session = await self.readable(session_id, principal)
        _must_be_reached(session, after)
        size = max(1, min(limit, LARGEST_PAGE))
        return await self._store.read(lambda c: log.page(c, session_id, after, size))

    async def follow(
        self, session_id: str, principal: Principal, *, after: int = 0
    ) -> AsyncGenerator[SessionEvent, None]:
        """Every event behind `after`, as they come, without gaps; it ends when the session is deleted.

        A reader is given what is on record at its own pace: a slow one holds nothing up and keeps nothing in memory,
        and one that went away goes on after the last number it saw, on any node.

        Raises:
            NotFound
            BadInput: `after` is a number that this session has not reached.
        """
        _must_be_reached(await self.readable(session_id, principal), after)
        async with self._engine.watch(f"session:{session_id}") as waiter:
            while True:
                found = await self._store.read(partial(_page_or_end, session_id, after))
                if found is None:
                    return
                for event in found:
                    yield event
                    after = event.seq
                if not found:
                    await waiter.wait()

    async def inject(
        self,
        session_id: str,
        principal: Principal,
        *,
        tool_id: str,
        arguments: JsonObject,
        result: JsonValue,
        idempotency_key: str | None = None,
        trigger_processing: bool = False,
    ) -> Injected:
        """Add a synthetic tool event. `tool_id` is a label; control characters are stripped from everything.

        Raises:
            NotFound, BadInput
            Conflict: the idempotency key was used with another body.
        """
        await self.get(session_id, principal)
        label = clean(tool_id).strip()
        if not label or len(label) > LONGEST_LABEL:
            raise BadInput(f"tool_id must be a text of 1 to {LONGEST_LABEL} characters.", where="tool_id")
        event_id = new_id("evt")
        key = idempotency_key or event_id  # a transaction may run twice
        cleaned = map_strings(result, clean)
        body: JsonObject = {
            "toolCallId": event_id,
            "event_id": event_id,
            "name": label,
            "tool_id": label,
            "arguments": map_strings(arguments, clean),
            "success": True,
            "result": cleaned,
            "resultPreview": session_events.previewed(cleaned),
            "injected": True,
            "trigger_processing": trigger_processing,
        }
        digest = _digest(tool_id, arguments, result, trigger_processing=trigger_processing)

        def append(c: Connection) -> Injected:
            first_hash, answer = rows.claim_key(c, session_id, key, digest, {"event_id": event_id})
            if first_hash != digest:
                raise Conflict(
                    f"The idempotency key {idempotency_key!r} was used for another event.",
                    suggestion="Use a new key for a new event.",
                )
            if "offset" in answer:
                return Injected(str(answer["event_id"]), cast("int", answer["offset"]))
            offset = log.append(c, session_id, "tool", "tool_result", body)
            rows.keep_answer(c, session_id, key, {"event_id": event_id, "offset": offset})
            return Injected(event_id, offset)

        injected = await self._store.tx(append)
        self._engine.hint(f"session:{session_id}")
        return injected

    def _session(self, row: rows.SessionRow) -> Session:
        known = self._read.get(row.id)
        if known is None:
            read = read_customizations(row.customizations)
            known = Session(
                id=row.id,
                principal=row.principal,
                agent_id=row.agent_id,
                tools=read.tools,
                mcp_providers=read.mcp_providers,
                customizations=row.customizations,
                created=row.created,
                meta=row.meta,
            )
            if len(self._read) >= _MOST_KEPT:
                self._read.pop(next(iter(self._read)))
            self._read[row.id] = known
        return replace(known, seq=row.seq, active_turn=row.active_turn, meta=row.meta)


def cancel_row(c: Connection, call_id: str, failure: CallFailure, *, now: float) -> bool:
    """An open call ends without its tool's doing: its gates close, its lease goes, its session is told.

    The caller holds the lock of its job. False when it had ended already.
    """
    for approval in approval_rows.of_call(c, call_id):
        if not approval.is_decided:
            approval_rows.decide(c, approval.id, Decision.CANCELLED, by=None, at=now)
    if not open_calls.fail(c, call_id, failure, finished=now):
        return False
    leases.end(c, call_id)
    record = call_rows.get(c, call_id)
    if record is not None:
        session_events.ended(c, record, None)
    return True


def _page_or_end(session_id: str, after: int, c: Connection) -> list[SessionEvent] | None:
    found = log.page(c, session_id, after, _FOLLOWED_AT_ONCE)
    if found:
        return found
    row = rows.get(c, session_id)
    return None if row is None or row.deleted is not None else []


def _must_be_reached(session: Session, after: int) -> None:
    if after < 0 or after > session.seq:
        raise BadInput(
            f"The session {session.id} has no event {after}; its newest is {session.seq}.",
            where="after",
            suggestion="Go on after the last number that you were given, or after 0.",
        )


def _digest(tool_id: str, arguments: JsonObject, result: JsonValue, *, trigger_processing: bool) -> str:
    try:
        return sha256([tool_id, arguments, result, trigger_processing])
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The event is no JSON: {error}.", where="result") from error


def _unknown(session_id: str) -> NotFound:
    return NotFound(f"There is no session {session_id[:100]!r}.")
