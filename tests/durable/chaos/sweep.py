"""A crash at every commit boundary: a story is told once and its commits are counted, then it is told again for each
of them with a node that ends just before it, and with one that ends just after it."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.durable.chaos.approving import decide, waiting_for
from tests.durable.chaos.checker import Violation, check
from tests.durable.chaos.client import Client
from tests.durable.chaos.clients import Clients, follow_to_the_end, submit_and_follow, submit_call
from tests.durable.chaos.cluster import Blow, Cluster, Nursery
from tests.durable.chaos.conversation import ask_client, beat, create, picked_up, respond, until_ended
from tests.durable.chaos.evidence import Evidence, gather
from tests.durable.chaos.history import History
from tests.durable.chaos.node import NodeConfig
from tests.durable.chaos.storm import keep, until_quiet
from tests.durable.chaos.yard import Access

Story = Callable[[Clients], Awaitable[None]]


async def one_call(clients: Clients) -> None:
    label = clients.label("call")
    await submit_and_follow(clients, "free:act", label, {"label": label, "value": "v"})


async def one_approval(clients: Clients) -> None:
    label = clients.label("asked")
    arguments = {"label": label, "value": "v"}
    submit = clients.history.ask("submit", label, tool="asked:act", arguments=arguments)
    call = await submit_call(clients, submit, wait=0)
    assert call is not None
    approval = await waiting_for(clients, call)
    if approval is not None:
        await decide(clients, approval, "edit", arguments)
    await follow_to_the_end(clients, submit, call)


async def one_client_call(clients: Clients) -> None:
    session = await create(clients)
    if session is None:
        return
    label = clients.label("client")
    story = clients.history.ask("client_call", label, session=session, behaviour="answer", beat=0.1)
    call = await ask_client(clients, session, label, story)
    if call is not None and await picked_up(clients, session, call):
        for _ in range(2):
            await beat(clients, session, call)
        await respond(clients, session, call)
        story.ok(kept_beating=True)


async def one_job(clients: Clients) -> None:
    """Two steps, and a wait between them."""
    job = clients.label("job")
    given = {"session": clients.label("session"), "steps": 2, "seconds": 0.0, "waits": True}
    asked = clients.history.ask("job", job, **given)
    await clients.client.ask("POST", f"/chaos/jobs/{job}", key=clients.access.caller, body=given)
    asked.ok()
    await clients.client.ask("POST", f"/chaos/jobs/{job}/wake", key=clients.access.caller)
    await until_ended(clients, job)


STORIES: Mapping[str, Story] = {
    "one call": one_call,
    "one approval": one_approval,
    "one client call": one_client_call,
    "one job": one_job,
}


@dataclass(frozen=True, slots=True)
class Boundary:
    """Before or after which commit the node ends; None counts them."""

    commit: int | None = None
    after: bool = False

    def __str__(self) -> str:
        return "counting" if self.commit is None else f"{'after' if self.after else 'before'} commit {self.commit}"


@dataclass(frozen=True, slots=True)
class Told:
    """How one telling went."""

    boundary: Boundary
    commits: int
    crashed: bool
    violations: list[Violation]


class Sweep:
    """`new_database(folder)` makes an empty one that is ready, and its keys."""

    def __init__(
        self, nursery: Nursery, folder: Path, new_database: Callable[[Path], Awaitable[tuple[str, Access]]]
    ) -> None:
        self._nursery = nursery
        self._folder = folder
        self._new_database = new_database
        self._count = 0

    async def every_boundary(self, story: Story, *, at_once: int = 6) -> list[Told]:
        """The counting run first."""
        counted = await self.tell(story, Boundary())
        boundaries = [Boundary(n, after) for n in range(1, counted.commits + 1) for after in (False, True)]
        lanes = asyncio.Semaphore(at_once)

        async def one(boundary: Boundary) -> Told:
            async with lanes:
                return await self.tell(story, boundary)

        return [counted, *await asyncio.gather(*(one(boundary) for boundary in boundaries))]

    async def tell(self, story: Story, boundary: Boundary) -> Told:
        self._count += 1
        folder = self._folder / f"{self._count}-{str(boundary).replace(' ', '-')}"
        folder.mkdir()
        database, access = await self._new_database(folder)
        counter = folder / "commits"
        nodes = Cluster(self._nursery, NodeConfig(folder=str(folder), database=database), nodes=1)
        history = History()
        client = Client(nodes.urls, random.Random(1))
        crashed = False
        try:
            await nodes.start(0, crash_at=boundary.commit, crash_after=boundary.after, count_to=str(counter))
            async with _revived(nodes):
                await story(Clients(client, access, history, random.Random(1)))
                await until_quiet(database, 15)
            crashed = bool(nodes.blows)
        finally:
            await client.close()
            await nodes.kill_all()
        commits = counter.stat().st_size if counter.exists() else 0
        evidence = await gather(database, folder, nodes.blows)
        violations = check(evidence, history) + _unfinished(evidence, history)
        if violations:
            keep(folder, {"violations": [str(violation) for violation in violations]}, evidence, history)
        else:
            shutil.rmtree(folder)
        return Told(boundary, commits, crashed, violations)


@asynccontextmanager
async def _revived(nodes: Cluster) -> AsyncIterator[None]:
    """The node that ended itself is started again, whole."""

    async def revive() -> None:
        life = nodes.life(0)
        await life.died.wait()
        nodes.blows.append(Blow(0.0, "crash at a commit", life.node))
        await nodes.start(0)

    task = asyncio.create_task(revive())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _unfinished(evidence: Evidence, history: History) -> list[Violation]:
    """With a node that comes back at once, every client must get its answer in the end."""
    open_operations = [o for o in history.operations if o.answered is None or o.phase == "unknown"]
    return [Violation("every_client_is_answered", f"{o.kind} {o.label}: {o.phase} {o.seen}") for o in open_operations]
