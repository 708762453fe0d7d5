"""`python -m tests.durable.chaos`: storms on both engines, seed after seed; a JSON summary at the end.

Ends with 1 when there was a violation; then the folder of that run, which is named, tells why.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from tests.durable.chaos.cluster import nursery
from tests.durable.chaos.storm import Outcome, Plan, report, storm
from tests.store.postgres import PostgresServer, running_postgres

ONE_STORM = 30.0
"""Seconds of one seed."""


async def main() -> int:
    options = _options()
    engines = ("sqlite", "postgres") if options.engine == "both" else (options.engine,)
    outcomes: dict[str, list[Outcome]] = {engine: [] for engine in engines}
    until = time.monotonic() + options.minutes * 60
    with running_postgres() if "postgres" in engines else nullcontext() as server:
        for seed in _seeds(options.seeds, options.first):
            if time.monotonic() > until:
                break
            for engine in engines:
                plan = Plan(
                    seed=seed,
                    seconds=options.seconds,
                    nodes=1 if engine == "sqlite" else 3,
                    stories=tuple(options.stories.split()),
                    mutant=options.mutant,
                )
                outcomes[engine].append(await _one(plan, engine, server))
    summary = {engine: report(some) for engine, some in outcomes.items()}
    print(json.dumps(summary, indent=1))
    if options.output:
        Path(options.output).write_text(json.dumps(summary, indent=1), "utf-8")
    return 1 if any(part["violations"] for part in summary.values()) else 0


async def _one(plan: Plan, engine: str, server: PostgresServer | None) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix=f"toolyard-chaos-{engine}-{plan.seed}-"))
    postgres = server if engine == "postgres" else None
    database = postgres.new_database() if postgres else str(folder / "toolyard.db")
    async with nursery() as nodes:
        outcome = await storm(plan, database, folder, nursery=nodes, postgres=postgres)
    figures = json.dumps({**outcome.figures, "violations": len(outcome.violations)})
    print(f"{engine} seed {plan.seed}: {figures}", file=sys.stderr, flush=True)
    if outcome.violations:
        for violation in outcome.violations[:20]:
            print(f"  {violation.rule}: {violation.what}", file=sys.stderr)
        print(f"  see {folder}", file=sys.stderr, flush=True)
    else:
        shutil.rmtree(folder)
    return outcome


def _seeds(given: str, first: int) -> Iterator[int]:
    """Those that were given; or one after the other, for ever."""
    if given:
        yield from (int(seed) for seed in given.replace(",", " ").split())
        return
    seed = first
    while True:
        yield seed
        seed += 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seeds", default="", help="for instance '1 2 3'; without it from --first on")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0, help="no new storm begins after this time")
    parser.add_argument("--seconds", type=float, default=ONE_STORM, help="of one storm")
    parser.add_argument("--engine", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--stories", default="", help="only these, of workload.STORIES")
    parser.add_argument("--mutant", help="one of mutants.MUTANTS")
    parser.add_argument("--output", help="a file for the summary")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
