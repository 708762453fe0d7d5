"""A set of nodes on one database: born, killed, paused, and who died when."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.durable.chaos.node import NodeConfig

ROOT = Path(__file__).parents[3]
BIRTH_SECONDS = 30.0


@dataclass(slots=True)
class Life:
    """One process of one slot. `node` is the id under which it is known in the database."""

    slot: int
    pid: int = 0
    node: str = ""
    paused: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    died: asyncio.Event = field(default_factory=asyncio.Event)
    status: int | None = None

    @property
    def stands(self) -> bool:
        return self.ready.is_set() and not self.paused and not self.died.is_set()


@dataclass(frozen=True, slots=True)
class Blow:
    """Something that happened to a node, or (with no node) to the database."""

    at: float
    what: str
    node: str = ""
    seconds: float = 0.0


class Nursery:
    """The process that forks nodes, for any number of clusters."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._commands = process.stdin
        self._reports = process.stdout
        self._by_pid: dict[int, Life] = {}
        self._unborn: deque[Life] = deque()

    def bear(self, config: NodeConfig, life: Life) -> None:
        self._unborn.append(life)
        self._commands.write(json.dumps(config.to_json()).encode() + b"\n")

    async def listen(self) -> None:
        """Until it ends."""
        while line := await self._reports.readline():
            said = json.loads(line)
            if "born" in said:
                life = self._unborn.popleft()
                life.pid = said["pid"]
                self._by_pid[life.pid] = life
            elif "ready" in said:
                life = self._by_pid[said["ready"]]
                life.node = said["node"]
                life.ready.set()
            else:
                life = self._by_pid[said["died"]]
                life.status = said["status"]
                life.died.set()


@asynccontextmanager
async def nursery() -> AsyncIterator[Nursery]:
    """Nodes that still live are killed when the block ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.durable.chaos.nursery", cwd=ROOT,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    running = Nursery(process)
    listening = asyncio.create_task(running.listen())
    try:
        yield running
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await listening


class Cluster:
    """Nodes on one database. None is started yet. `base` is what all their configurations have in common."""

    def __init__(self, nursery: Nursery, base: NodeConfig, *, nodes: int) -> None:
        (Path(base.folder) / "logs").mkdir(parents=True, exist_ok=True)
        self._nursery = nursery
        self._base = base
        self._ports = [_free_port() for _ in range(nodes)]
        self._lives: dict[int, Life] = {}
        self._count = 0
        self.blows: list[Blow] = []
        self.deaths: list[str] = []
        """Nodes that ended without being killed: a defect of its own."""

    @property
    def slots(self) -> range:
        return range(len(self._ports))

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self._ports]

    def life(self, slot: int) -> Life:
        return self._lives[slot]

    async def start(self, slot: int, **changes: Any) -> Life:
        """Returns when it answers, or when it died on the way."""
        self._count += 1
        log = Path(self._base.folder) / "logs" / f"{slot}-{self._count}.log"
        life = self._lives[slot] = Life(slot)
        self._nursery.bear(replace(self._base, slot=slot, port=self._ports[slot], log=str(log), **changes), life)
        async with asyncio.timeout(BIRTH_SECONDS):
            first = [asyncio.ensure_future(event.wait()) for event in (life.ready, life.died)]
            try:
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for waiter in first:
                    waiter.cancel()
        return life

    async def start_all(self) -> None:
        await asyncio.gather(*(self.start(slot) for slot in self.slots))
        for life in self._lives.values():
            assert not life.died.is_set(), f"node {life.slot} did not start; see {self._base.folder}/logs"

    async def kill(self, slot: int, *, note: bool = True) -> None:
        life = self._lives[slot]
        if life.pid and not life.died.is_set():
            if note:
                self.blows.append(Blow(time.time(), "kill", life.node))
            os.kill(life.pid, signal.SIGKILL)
            await life.died.wait()

    async def pause(self, slot: int, seconds: float) -> None:
        life = self._lives[slot]
        if life.died.is_set():
            return
        self.blows.append(Blow(time.time(), "pause", life.node, seconds))
        life.paused = True
        os.kill(life.pid, signal.SIGSTOP)
        await asyncio.sleep(seconds)
        life.paused = False
        if not life.died.is_set():
            os.kill(life.pid, signal.SIGCONT)

    async def kill_all(self) -> None:
        for slot in self._lives:
            await self.kill(slot, note=False)
        self.deaths += [
            f"node {life.slot} ended by itself with {life.status}"
            for life in self._lives.values()
            if life.status not in (-signal.SIGKILL, None)
        ]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
