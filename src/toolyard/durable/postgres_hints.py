"""Hints between nodes on PostgreSQL: NOTIFY and LISTEN, each on a connection of its own.

NOTIFY takes a lock that orders the commits of the whole server, so it is never part of a write transaction: one
statement carries what was touched since the last one, at most every 15 ms. While a connection is away nothing is kept
for it but "look at everything", which is also what a node tells itself after its LISTEN was interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, cast

import orjson
import psycopg

from toolyard.durable.hints import EVERYTHING, Told

log = logging.getLogger("toolyard.durable")

CHANNEL = "toolyard_hints"
PAUSE = 0.015
"""Seconds between two NOTIFYs of a node."""
FIRST_RETRY, LONGEST_RETRY = 0.05, 2.0
MOST_TOPICS = 2000
"""More than these between two NOTIFYs are sent as "everything"."""
_MOST_BYTES = 7900
"""PostgreSQL refuses a payload of 8000 bytes."""


class HintConnections(Protocol):
    async def hint_connection(self) -> psycopg.AsyncConnection:
        """A direct connection in autocommit mode.

        Raises:
            psycopg.Error: none to be had.
        """
        ...


class PostgresHints:
    """`Remote` by NOTIFY and LISTEN."""

    def __init__(self, store: HintConnections, node_id: str, told: Told) -> None:
        self._store = store
        self._node_id = node_id
        self._told = told
        self._pending: set[str] = set()
        self._something = asyncio.Event()
        self._all_sent = asyncio.Event()
        self._all_sent.set()
        self.listening = asyncio.Event()
        """Set while hints of other nodes arrive."""
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Returns at once: hints are not relied upon."""
        self._tasks = [
            asyncio.create_task(self._again_and_again(self._notify), name="hints out"),
            asyncio.create_task(self._again_and_again(self._listen), name="hints in"),
        ]

    def send(self, topics: Iterable[str]) -> None:
        self._pending.update(topics)
        if len(self._pending) > MOST_TOPICS:
            self._pending = {EVERYTHING}
        self._all_sent.clear()
        self._something.set()

    async def close(self) -> None:
        """What was hinted last is still sent, if that works at once."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._all_sent.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _again_and_again(self, use: Callable[[psycopg.AsyncConnection], Awaitable[None]]) -> None:
        pause = FIRST_RETRY
        while True:
            try:
                connection = await self._store.hint_connection()
                pause = FIRST_RETRY
                async with connection:
                    await use(connection)
            except psycopg.Error as error:
                log.info("Hints between nodes pause, readers look by themselves: %s", " ".join(str(error).split()))
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_RETRY)

    async def _notify(self, connection: psycopg.AsyncConnection) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            topics, self._pending = sorted(self._pending), set()
            try:
                for payload in payloads(self._node_id, topics):
                    await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
            except psycopg.Error:
                self.send((EVERYTHING,))
                raise
            if not self._pending:
                self._all_sent.set()
            await asyncio.sleep(PAUSE)

    async def _listen(self, connection: psycopg.AsyncConnection) -> None:
        try:
            await connection.execute(f"LISTEN {CHANNEL}")
            self.listening.set()
            self._told((EVERYTHING,))  # said while nobody listened
            async for notification in connection.notifies():
                self._hear(notification.payload)
        finally:
            self.listening.clear()

    def _hear(self, payload: str) -> None:
        sender, *topics = cast("list[str]", orjson.loads(payload))
        if sender != self._node_id:
            self._told(topics)


def payloads(node_id: str, topics: Sequence[str]) -> list[str]:
    """JSON lists of the sender and topics, each small enough for a NOTIFY."""
    whole = orjson.dumps([node_id, *topics])
    if len(whole) <= _MOST_BYTES:
        return [whole.decode()] if topics else []
    if len(topics) == 1:
        return [orjson.dumps([node_id, EVERYTHING]).decode()]
    middle = len(topics) // 2
    return payloads(node_id, topics[:middle]) + payloads(node_id, topics[middle:])
