"""The number beside "Approvals" in the menu of every page, kept up to date by the page's one stream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from toolyard.core.principal import Scope
from toolyard.faces.console.live import follow

if TYPE_CHECKING:
    from starlette.responses import Response

    from toolyard.faces.console.visit import Visit


async def pending_of(visit: Visit) -> int:
    """How many calls wait for a decision; 0 for who may not decide."""
    may = visit.principal.may(Scope.APPROVE) or visit.principal.may(Scope.MANAGE)
    return await visit.app.approvals.count_pending() if may else 0


async def live(visit: Visit) -> Response:
    """The stream of a page that has no other."""

    async def nothing() -> str:
        return ""

    return follow_with_inbox(visit, (), nothing, at_most_every=0.5)


def follow_with_inbox(
    visit: Visit,
    topics: Sequence[str],
    draw: Callable[[], Awaitable[str]],
    *,
    at_most_every: float,
    again: float | None = None,
) -> Response:
    async def whole() -> str:
        visit.pending = await pending_of(visit)
        return await draw() + visit.html("parts/inbox_live.html")

    every_topic = tuple(dict.fromkeys((*topics, "approval")))
    return follow(visit.app.bus, every_topic, whole, at_most_every=at_most_every, again=again)
