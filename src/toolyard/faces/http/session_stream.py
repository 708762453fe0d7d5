"""One session's log as server-sent events: gapless, resumable on any node."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeAlias

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolyard.core.clock import rfc3339
from toolyard.core.json import JsonValue, dumps
from toolyard.durable.log import SessionEvent
from toolyard.faces.http.stream import KEEP_ALIVE, KEEP_ALIVE_EVERY, RETRY, StillAllowed, send_live, with_pauses

CATCH_UP = 500
"""Events of one page while a reader catches up; each page is one write."""

Page: TypeAlias = Callable[[int, int], Awaitable[Sequence[SessionEvent]]]
"""Events after a number, at most so many."""
Follow: TypeAlias = Callable[[int], AsyncGenerator[SessionEvent, None]]
"""Events after a number, and then each new one."""


class SessionStream(Response):
    """Every event after number `after`, in order and without gaps, with a comment each 15 s.

    `id:` is the event's number in its session, the same on every node. A reader that is too slow is disconnected, and
    loses nothing: it comes back with `Last-Event-ID`.
    """

    def __init__(
        self,
        page: Page,
        follow: Follow,
        *,
        after: int,
        still_allowed: StillAllowed,
    ) -> None:
        super().__init__(media_type="text/event-stream")
        self._page = page
        self._follow = follow
        self._after = after
        self._still_allowed = still_allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_live(self._chunks(), receive, send)

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        yield RETRY
        last = self._after
        while events := await self._page(last, CATCH_UP):
            yield b"".join(map(_line, events))
            last = events[-1].seq
            if len(events) < CATCH_UP:
                break
        async with (
            aclosing(self._follow(last)) as following,
            aclosing(with_pauses(following, KEEP_ALIVE_EVERY)) as upcoming,
        ):
            async for event in upcoming:
                if event is not None:
                    yield _line(event)
                elif await self._still_allowed():
                    yield KEEP_ALIVE
                else:
                    return


def event_to_wire(event: SessionEvent) -> dict[str, JsonValue]:
    """`{offset, session_id, kind, type, at, turn?}` with the fields of its kind. Ours cannot be overwritten by them."""
    wire: dict[str, JsonValue] = {
        **event.data,
        "offset": event.seq,
        "session_id": event.session_id,
        "kind": event.kind,
        "type": event.type,
        "at": rfc3339(event.at),
    }
    if event.turn is not None:
        wire["turn"] = event.turn
    return wire


def _line(event: SessionEvent) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.kind.encode(), dumps(event_to_wire(event)))
