"""Legacy sessions on which an upstream may ask: one for each principal and set of capabilities, opened when needed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from toolyard.core.json import JsonObject
from toolyard.core.question import Capabilities, capabilities_to_wire
from toolyard.providers.mcp.link import Link

IDLE_SECONDS = 300.0
_Key = tuple[str, Capabilities]


@dataclass(slots=True)
class _Kept:
    opening: asyncio.Future[Link]
    users: int = 0
    closing: asyncio.TimerHandle | None = None

    @property
    def broken(self) -> bool:
        opened = self.opening
        return opened.done() and (opened.cancelled() or opened.exception() is not None or opened.result().lost)


class AskingLinks:
    """One that no call uses is closed after `idle` seconds; the longest unused sooner when there are over `most`."""

    def __init__(
        self, connect: Callable[[JsonObject], Awaitable[Link]], *, most: int, idle: float = IDLE_SECONDS
    ) -> None:
        self._connect = connect
        self._most = most
        self._idle = idle
        self._links: OrderedDict[_Key, _Kept] = OrderedDict()
        self._endings: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def of(self, principal: str, capabilities: Capabilities) -> AsyncGenerator[Link]:
        """
        Raises:
            ProviderError: it cannot be opened.
        """
        key = (principal, capabilities)
        kept = self._links.get(key)
        if kept is None or kept.broken:
            self._drop(key)
            kept = _Kept(asyncio.ensure_future(self._connect(capabilities_to_wire(capabilities))))
            kept.opening.add_done_callback(_look_at)
            self._links[key] = kept
        self._links.move_to_end(key)
        kept.users += 1
        if kept.closing is not None:
            kept.closing.cancel()
            kept.closing = None
        self._drop_the_oldest()
        try:
            yield await asyncio.shield(kept.opening)
        finally:
            kept.users -= 1
            if not kept.users and self._links.get(key) is kept:
                kept.closing = asyncio.get_running_loop().call_later(self._idle, self._drop, key)

    async def close(self) -> None:
        for key in list(self._links):
            self._drop(key)
        if self._endings:
            await asyncio.wait(self._endings)

    def _drop_the_oldest(self) -> None:
        unused = [key for key, kept in self._links.items() if not kept.users]
        for key in unused[: max(0, len(self._links) - self._most)]:
            self._drop(key)

    def _drop(self, key: _Key) -> None:
        kept = self._links.pop(key, None)
        if kept is None:
            return
        if kept.closing is not None:
            kept.closing.cancel()
        ending = asyncio.create_task(_close(kept.opening))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)


def _look_at(opening: asyncio.Future[Link]) -> None:
    """Whoever waited for it may have left; its error is nobody's then."""
    if not opening.cancelled():
        opening.exception()


async def _close(opening: asyncio.Future[Link]) -> None:
    if not opening.done():
        opening.cancel()
    (link,) = await asyncio.gather(opening, return_exceptions=True)
    if not isinstance(link, BaseException):
        await link.close()
