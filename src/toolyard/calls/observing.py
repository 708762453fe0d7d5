"""Telling those who watch (live pages, counters) that a call began to run, waits, or ended."""

from __future__ import annotations

from collections.abc import Callable

from toolyard.core.call import CallFailure, CallRequest, CallState, Origin
from toolyard.core.clock import Clock
from toolyard.core.record import CallEvent, CallRecord

Observer = Callable[[CallEvent], None]
"""Must be quick and must not raise."""


class Observers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._observers: list[Observer] = []

    def add(self, observer: Observer) -> None:
        self._observers.append(observer)

    def tell(self, request: CallRequest, state: CallState, duration: float | None, failure: CallFailure | None) -> None:
        if self._observers:
            self._tell(request.call_id, request.tool, request.principal.label, request.origin, state, duration, failure)

    def tell_of(self, record: CallRecord, state: CallState, failure: CallFailure | None) -> None:
        """The same for a call that is only known by its record."""
        if self._observers:
            now = self._clock.now()
            duration = None if record.started is None else now - record.started
            self._tell(record.id, record.tool, record.principal, record.origin, state, duration, failure)

    def _tell(  # noqa: PLR0917 - one private place where an event is made
        self,
        call_id: str,
        tool: str,
        principal: str,
        origin: Origin,
        state: CallState,
        duration: float | None,
        failure: CallFailure | None,
    ) -> None:
        event = CallEvent(
            id=call_id,
            tool=tool,
            state=state,
            principal=principal,
            origin=origin,
            at=self._clock.now(),
            duration=duration,
            error_code=failure.code if failure else None,
        )
        for observer in self._observers:
            observer(event)
