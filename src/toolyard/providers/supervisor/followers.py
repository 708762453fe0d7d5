"""Who wants to hear of changes of which resource. A provider is told the union of them, and nothing of who they are."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

import structlog

from toolyard.core.errors import ToolyardError
from toolyard.providers.offers import Offering

Heard = Callable[[], None]
"""Must not block and must not raise."""
_log = structlog.stdlib.get_logger("toolyard.providers")


class Followers:
    """Of one provider."""

    def __init__(self) -> None:
        self._heard: dict[str, list[Heard]] = defaultdict(list)
        self._told: frozenset[str] = frozenset()
        self._told_to: Offering | None = None
        self._telling = asyncio.Lock()

    async def add(self, provider: Offering, uri: str, heard: Heard) -> None:
        """`heard` is called at each change, until it is removed. An upstream that cannot tell of it never does."""
        self._heard[uri].append(heard)
        await self.tell(provider)

    async def remove(self, provider: Offering | None, uri: str, heard: Heard) -> None:
        self._heard[uri].remove(heard)
        if not self._heard[uri]:
            del self._heard[uri]
        if provider is not None:
            await self.tell(provider)

    def updated(self, uri: str) -> None:
        for heard in tuple(self._heard.get(uri, ())):
            heard()

    def are_news_to(self, provider: Offering) -> bool:
        """Whether this provider, another one of the same id perhaps, does not know of them yet."""
        return bool(self._heard) and self._told_to is not provider

    async def tell(self, provider: Offering) -> None:
        async with self._telling:
            wanted = frozenset(self._heard)
            if wanted == self._told and self._told_to is provider:
                return
            try:
                await provider.follow(wanted)
            except ToolyardError as error:
                _log.warning("an upstream cannot be asked to tell of its resources", reason=error.message)
                return
            self._told, self._told_to = wanted, provider
