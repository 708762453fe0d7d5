"""Seeded harm: nodes killed and paused beyond their lease; PostgreSQL crashed, its connections cut."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Coroutine

from tests.durable.chaos.cluster import Blow, Cluster
from tests.store.postgres import PostgresServer

KILLS = 0.7
"""The share of kills; the rest are pauses, and on PostgreSQL one blow in twelve is for the database."""


LONGEST = 60.0
"""Seconds of a storm on a machine that is too busy for the kills that were asked for."""


class Nemesis:
    def __init__(
        self,
        cluster: Cluster,
        dice: random.Random,
        *,
        postgres: PostgresServer | None,
        pause_between: tuple[float, float],
    ) -> None:
        self._cluster = cluster
        self._dice = dice
        self._postgres = postgres
        self._between = pause_between
        self._busy: set[asyncio.Future[object]] = set()

    async def rage(self, seconds: float, kills: int, over: asyncio.Event) -> None:
        """For so long, and until so many were killed; then every node is running again. Nodes come back beside the next
        blows, as they would in life."""
        try:
            await self._strike(seconds, kills)
        finally:
            over.set()
        await asyncio.gather(*self._busy)
        for slot in self._cluster.slots:
            while self._cluster.life(slot).died.is_set():  # the database may have been away while it started
                await self._cluster.start(slot)

    async def _strike(self, seconds: float, kills: int) -> None:
        start = time.monotonic()
        killed = 0
        while (passed := time.monotonic() - start) < seconds or (killed < kills and passed < LONGEST):
            await asyncio.sleep(self._dice.uniform(*self._between))
            if self._postgres is not None and self._dice.random() < 1 / 12:
                await self._strike_database(self._postgres)
                continue
            standing = [slot for slot in self._cluster.slots if self._cluster.life(slot).stands]
            if not standing:
                continue
            slot = self._dice.choice(standing)
            if self._dice.random() < KILLS:
                await self._cluster.kill(slot)
                killed += 1
                self._beside(self._cluster.start(slot))
            else:
                self._beside(self._cluster.pause(slot, self._dice.uniform(0.5, 3.0)))

    def _beside(self, work: Coroutine[object, object, object]) -> None:
        task = asyncio.ensure_future(work)
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def _strike_database(self, server: PostgresServer) -> None:
        if self._dice.random() < 0.4:
            self._cluster.blows.append(Blow(time.time(), "crash"))
            await asyncio.to_thread(server.crash_and_restart)
        else:
            self._cluster.blows.append(Blow(time.time(), "cut"))
            await asyncio.to_thread(server.terminate_connections)
