"""Signs of life of calls that clients execute: in memory as they come, in the database every two seconds.

A call counts as silent only when its lease has ended, and a lease lasts for the time-out *and* the time that a beat may
wait to be flushed: so a beat that is still in memory can never look like silence. Beats are stamped with this node's
monotonic clock; only their age travels, so no client's or node's clock matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from toolyard.core.clock import Clock
from toolyard.core.record import CallRecord
from toolyard.durable.nodes import SuspendAwareClock
from toolyard.store import leases, open_calls
from toolyard.store.base import Connection, Store

FLUSH_EVERY = 2.0
"""Seconds."""
SLACK = 2.5
"""Seconds: one flush, and half a second for it to be written."""
SILENCE_TIMEOUT = 30.0
"""Seconds without a beat after which a call that was picked up is abandoned."""
_FORGET_AFTER = 60.0
_MOST_GONE = 50_000


@dataclass(slots=True)
class _Live:
    """A call that this node has heard of. `owner` is the session's principal."""

    session: str
    owner: str
    at: float
    dirty: bool = True


class Heartbeats:
    """The memory of one node. Everything on the event loop's thread."""

    def __init__(self, store: Store, *, silence_timeout: float = SILENCE_TIMEOUT, clock: Clock | None = None) -> None:
        self._store = store
        self.lease = silence_timeout + SLACK
        """Seconds for which one beat keeps a call alive."""
        self._clock: Clock = clock or SuspendAwareClock()
        self._live: dict[str, _Live] = {}
        self._gone: dict[tuple[str, str], None] = {}
        """(owner, request): what one principal names is never gone for another."""
        self._unknown: dict[str, tuple[str, str]] = {}
        """Calls that this node was not introduced to: request -> (session, owner); looked up at the next flush."""

    def add(self, record: CallRecord) -> None:
        """A call that was picked up here."""
        self._live[record.id] = _Live(record.session_id or "", record.principal, self._clock.monotonic())

    def beat(self, owner: str, session_id: str, request_id: str) -> bool:
        """Whether this node knows the call as alive, and this beat counts."""
        live = self._live.get(request_id)
        if live is None or live.owner != owner or live.session != session_id:
            return False
        live.at = self._clock.monotonic()
        live.dirty = True
        return True

    def beat_many(self, owner: str, pairs: Iterable[Sequence[str]]) -> list[list[str]]:
        """Note a beat of each (session, request); those known to have ended. One that is new to this node is looked up
        with the next flush, and told as gone from then on if it is."""
        now = self._clock.monotonic()
        live_of = self._live.get
        gone: list[list[str]] = []
        for pair in pairs:
            session_id, request_id = pair
            live = live_of(request_id)
            if live is None:
                if (owner, request_id) in self._gone:
                    gone.append([session_id, request_id])
                else:
                    self._unknown[request_id] = (session_id, owner)
            elif live.owner == owner and live.session == session_id:
                live.at = now
                live.dirty = True
            else:
                gone.append([session_id, request_id])
        return gone

    def forget(self, request_id: str, owner: str) -> None:
        """The call has ended, or is none of the owner's."""
        live = self._live.get(request_id)
        if live is not None and live.owner == owner:
            del self._live[request_id]
        self._gone[owner, request_id] = None
        if len(self._gone) > _MOST_GONE:
            self._gone.pop(next(iter(self._gone)))

    def newcomers(self) -> Mapping[str, tuple[str, str]]:
        """Calls that were named and are not known here; each is handed out once."""
        unknown, self._unknown = self._unknown, {}
        return unknown

    async def flush(self) -> None:
        """Write the beats since the last flush, in one statement, and learn which calls have ended meanwhile."""
        now = self._clock.monotonic()
        dirty = {request_id: live for request_id, live in self._live.items() if live.dirty}
        for request_id, live in list(self._live.items()):
            if not live.dirty and now - live.at > _FORGET_AFTER:
                del self._live[request_id]
        if not dirty:
            return
        ages = {request_id: round(max(0.0, now - live.at), 3) for request_id, live in dirty.items()}
        for live in dirty.values():
            live.dirty = False
        try:
            ended = await self._store.tx(partial(_write, ages=ages, seconds=self.lease))
        except BaseException:
            for live in dirty.values():
                live.dirty = True
            raise
        for request_id in ended:
            self.forget(request_id, dirty[request_id].owner)

    def __len__(self) -> int:
        return len(self._live)


def _write(c: Connection, *, ages: Mapping[str, float], seconds: float) -> list[str]:
    """Extend the leases; the calls that have ended. A call that lost its lease's row is given a new one."""
    missing = sorted(set(ages) - leases.extend(c, ages, seconds))
    if not missing:
        return []
    open_now = {r.id for r in open_calls.states_of(c, missing) if not r.state.is_final}
    for request_id in missing:
        if request_id in open_now:
            leases.start(c, request_id, seconds - ages[request_id])
    return [request_id for request_id in missing if request_id not in open_now]
