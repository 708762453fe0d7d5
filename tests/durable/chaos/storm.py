"""One run from an empty database to the verdict: nodes, clients and nemesis together, then the checker."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.durable.chaos import workload
from tests.durable.chaos.checker import Violation, check
from tests.durable.chaos.client import Client
from tests.durable.chaos.clients import Clients
from tests.durable.chaos.cluster import Cluster, Nursery
from tests.durable.chaos.evidence import Evidence, count_open, gather
from tests.durable.chaos.history import History
from tests.durable.chaos.nemesis import Nemesis
from tests.durable.chaos.node import NodeConfig
from tests.durable.chaos.yard import make_ready
from tests.store.postgres import PostgresServer

QUIET_SECONDS = 40.0
"""How long after the storm everything may take to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`nodes` is 1 on SQLite: one process owns the file."""

    seed: int
    seconds: float
    kills: int = 0
    """The storm goes on until there were so many."""
    nodes: int = 1
    at_once: int = 12
    pause_between: tuple[float, float] = (0.3, 0.9)
    stories: tuple[str, ...] = ()
    """Only these; all of them when empty."""
    mutant: str | None = None
    lease: float = 1.5
    quiet: float = QUIET_SECONDS


@dataclass(slots=True)
class Outcome:
    plan: Plan
    violations: list[Violation] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"plan": asdict(self.plan), **self.figures, "violations": [asdict(v) for v in self.violations]}


async def storm(
    plan: Plan, database: str, folder: Path, *, nursery: Nursery, postgres: PostgresServer | None = None
) -> Outcome:
    began = time.monotonic()
    access = await make_ready(database)
    history = History()
    base = NodeConfig(folder=str(folder), database=database, lease=plan.lease, mutant=plan.mutant)
    nodes = Cluster(nursery, base, nodes=plan.nodes)
    client = Client(nodes.urls, random.Random(f"{plan.seed} client"))
    clients = Clients(client, access, history, random.Random(f"{plan.seed} clients"))
    nemesis = Nemesis(nodes, random.Random(f"{plan.seed} nemesis"), postgres=postgres, pause_between=plan.pause_between)
    over = asyncio.Event()
    try:
        await nodes.start_all()
        stories, _ = await asyncio.gather(
            workload.run(clients, over=over, at_once=plan.at_once, names=plan.stories),
            nemesis.rage(plan.seconds, plan.kills, over),
        )
        await until_quiet(database, plan.quiet)
    finally:
        await client.close()
        await nodes.kill_all()
    evidence = await gather(database, folder, nodes.blows, nodes.deaths)
    outcome = Outcome(plan, check(evidence, history), _figures(evidence, history, stories))
    outcome.figures["seconds"] = round(time.monotonic() - began, 1)
    if outcome.violations:
        keep(folder, outcome.to_json(), evidence, history)
    return outcome


async def until_quiet(database: str, seconds: float = QUIET_SECONDS) -> None:
    """Until nothing is open any more. What stays open after the wait is the checker's to report."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and await count_open(database):
        await asyncio.sleep(0.2)


def _figures(evidence: Evidence, history: History, stories: int) -> dict[str, Any]:
    ends = Counter(f"{call.state} {call.code or ''}".strip() for call in evidence.calls.values())
    return {
        "stories": stories,
        "calls": dict(sorted(ends.items())),
        "jobs": dict(Counter(job.state for job in evidence.jobs.values())),
        "takeovers": sum(job.takeovers for job in evidence.jobs.values()),
        "events": sum(map(len, evidence.events.values())),
        "effects": len(evidence.effects),
        "blows": dict(Counter(blow.what for blow in evidence.blows)),
        "operations": {
            f"{kind} {phase}": n
            for (kind, phase), n in sorted(Counter((o.kind, o.phase.value) for o in history.operations).items())
        },
    }


def keep(folder: Path, outcome: dict[str, Any], evidence: Evidence, history: History) -> None:
    """Everything that is needed to find out why."""
    write = {
        "outcome.json": outcome,
        "history.json": [asdict(operation) for operation in history.operations],
        "evidence.json": asdict(evidence),
    }
    for name, content in write.items():
        (folder / name).write_text(json.dumps(content, indent=1, default=str), "utf-8")


def report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The sum of several runs."""
    blows: Counter[str] = Counter()
    for outcome in outcomes:
        blows.update(outcome.figures["blows"])
    return {
        "runs": len(outcomes),
        "blows": dict(blows),
        "stories": sum(outcome.figures["stories"] for outcome in outcomes),
        "violations": sum(len(outcome.violations) for outcome in outcomes),
    }
