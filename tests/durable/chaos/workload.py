"""What the clients do during a storm: stories drawn by the seeded dice, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tests.durable.chaos.approving import approved_call
from tests.durable.chaos.clients import Clients, cancelled_call, direct_call
from tests.durable.chaos.conversation import conversation, job_alone

Scenario = Callable[[Clients], Awaitable[None]]

STORIES: Mapping[str, tuple[int, Scenario]] = {
    "direct_call": (5, direct_call),
    "cancelled_call": (1, cancelled_call),
    "approved_call": (4, approved_call),
    "conversation": (3, conversation),
    "job_alone": (0, job_alone),
}
"""By name, with weights; those of weight 0 are only told when they are asked for."""


async def run(clients: Clients, *, over: asyncio.Event, at_once: int, names: Sequence[str] = ()) -> int:
    """Stories one after the other in so many lanes, new ones until it is over; how many there were."""
    chosen = [STORIES[name] for name in names] if names else list(STORIES.values())
    weights = [max(weight, 1) if names else weight for weight, _ in chosen]
    stories = [story for _, story in chosen]
    told = 0

    async def lane() -> None:
        nonlocal told
        while not over.is_set():
            story = clients.dice.choices(stories, weights)[0]
            await story(clients)
            told += 1

    await asyncio.gather(*(lane() for _ in range(at_once)))
    return told
