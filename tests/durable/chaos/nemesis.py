"""Seeded harm: nodes killed and paused beyond their lease; PostgreSQL crashed, its connections cut."""

from __future__ import annotations

import asyncio
import random
import time

from tests.durable.chaos.cluster import Blow, Cluster
from tests.store.postgres import PostgresServer

KILLS = 0.7
"""The share of kills; the rest are pauses, and on PostgreSQL one blow in twelve is for the database."""


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
        self._busy: set[asyncio.Task[None]] = set()

    async def rage(self, seconds: float) -> None:
        """Then every node is running again."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await asyncio.sleep(self._dice.uniform(*self._between))
            dice = self._dice.random()
            if self._postgres is not None and dice < 1 / 12:
                await self._strike_database(self._postgres)
                continue
            slot = self._dice.choice(self._cluster.slots)
            if self._cluster.life(slot).paused:
                continue
            if self._dice.random() < KILLS:
                await self._cluster.kill(slot)
                await self._cluster.start(slot)
            else:
                self._pause(slot, self._dice.uniform(0.5, 3.0))
        await asyncio.gather(*self._busy)
        for slot in self._cluster.slots:
            if self._cluster.life(slot).died.is_set():
                await self._cluster.start(slot)

    def _pause(self, slot: int, seconds: float) -> None:
        task = asyncio.create_task(self._cluster.pause(slot, seconds))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def _strike_database(self, server: PostgresServer) -> None:
        if self._dice.random() < 0.4:
            self._cluster.blows.append(Blow(time.time(), "crash"))
            await asyncio.to_thread(server.crash_and_restart)
        else:
            self._cluster.blows.append(Blow(time.time(), "cut"))
            await asyncio.to_thread(server.terminate_connections)
