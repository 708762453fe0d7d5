"""Seeded storms: nodes killed and paused, the database crashed, and afterwards every promise was kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.durable.chaos.cluster import Nursery
from tests.durable.chaos.mutants import MUTANTS
from tests.durable.chaos.storm import Outcome, Plan, storm
from tests.requirements import requirement
from tests.store.postgres import PostgresServer

SECONDS = 6.0
KILLS = 5
AT_ONCE = 4
"""Storms against mutants side by side: they mostly wait."""


@requirement("durable.crash")
@requirement("approval.survives")
async def test_one_node_on_sqlite_keeps_every_promise(nodes: Nursery, tmp_path: Path) -> None:
    """One process owns the file: it is killed, paused and started again, and goes on with what it finds."""
    outcome = await storm(
        Plan(seed=3, seconds=SECONDS, kills=KILLS), str(tmp_path / "toolyard.db"), tmp_path, nursery=nodes
    )
    assert outcome.violations == [], f"see {tmp_path}"
    assert outcome.figures["blows"]["kill"] >= KILLS


@requirement("durable.crash")
@requirement("approval.survives")
@pytest.mark.postgres
async def test_three_nodes_on_postgresql_keep_every_promise(
    postgres_server: PostgresServer, nodes: Nursery, tmp_path: Path
) -> None:
    """Besides the nodes, the database is crashed and its connections are cut."""
    plan = Plan(seed=5, seconds=SECONDS, kills=KILLS, nodes=3)
    database = postgres_server.new_database()
    outcome = await storm(plan, database, tmp_path, nursery=nodes, postgres=postgres_server)
    assert outcome.violations == [], f"see {tmp_path}"
    assert outcome.figures["blows"]["kill"] >= KILLS


Expected = dict[str, tuple[str, set[str]]]
CAUGHT_BY: Expected = {
    "fence_removed": ("job_alone", {"only_legal_moves", "steps_run_again_only_after_a_takeover"}),
    "memo_ignored": ("job_alone", {"steps_run_again_only_after_a_takeover"}),
    "cancel_without_epoch": ("job_alone", {"an_epoch_only_grows_and_cancelling_raises_it"}),
    "acknowledged_before_commit": ("direct_call", {"nothing_acknowledged_is_lost"}),
    "decision_check_removed": ("approved_call", {"only_legal_moves", "one_winner_per_decision"}),
    "processing_run_again": ("approved_call", {"nothing_happens_twice"}),
    "beats_not_flushed": ("conversation", {"nobody_who_kept_beating_is_abandoned"}),
}
"""Each defect, the story that meets it, and the rules of which one must see it."""
ON_SEVERAL_NODES: Expected = {
    "plain_counter": (
        "conversation",
        {"events_are_numbered_without_gaps", "nothing_acknowledged_is_lost", "a_job_says_once_that_it_ended"},
    ),
}


SEEDS = (1, 2, 3)
SEEN_IN_PEACE = {"beats_not_flushed"}
"""A node that is killed cannot be told apart from one that forgets its beats."""


async def test_the_checker_catches_every_mutant_of_one_node(nodes: Nursery, tmp_path: Path) -> None:
    lanes = asyncio.Semaphore(AT_ONCE)

    async def one(mutant: str) -> Outcome:
        """Chance decides whether a defect shows within a few seconds, so it may try again under another seed."""
        story, rules = CAUGHT_BY[mutant]
        async with lanes:
            for seed in SEEDS:
                folder = tmp_path / f"{mutant}-{seed}"
                folder.mkdir()
                plan = Plan(seed=seed, seconds=4.0, kills=6, mutant=mutant, stories=(story,), quiet=8.0)
                if mutant in SEEN_IN_PEACE:
                    plan = replace(plan, seconds=8.0, kills=0, pause_between=(9.0, 9.0))
                outcome = await storm(plan, str(folder / "toolyard.db"), folder, nursery=nodes)
                if rules & {violation.rule for violation in outcome.violations}:
                    break
        return outcome

    outcomes = await asyncio.gather(*(one(mutant) for mutant in CAUGHT_BY))
    assert not_caught(outcomes, CAUGHT_BY) == {}


@pytest.mark.postgres
async def test_the_checker_catches_every_mutant_of_several_nodes(
    postgres_server: PostgresServer, nodes: Nursery, tmp_path: Path
) -> None:
    (mutant, (story, _)), *rest = ON_SEVERAL_NODES.items()
    assert rest == []
    plan = Plan(seed=1, seconds=4.0, kills=4, nodes=3, mutant=mutant, stories=(story,), quiet=8.0)
    outcome = await storm(plan, postgres_server.new_database(), tmp_path, nursery=nodes)
    assert not_caught([outcome], ON_SEVERAL_NODES) == {}


def test_every_mutant_is_tried() -> None:
    assert CAUGHT_BY.keys() | ON_SEVERAL_NODES.keys() == MUTANTS.keys()


def not_caught(outcomes: list[Outcome], expected: Expected) -> dict[str, set[str]]:
    """The mutants that no rule which is meant for them saw, and what was seen."""
    seen = {str(outcome.plan.mutant): {violation.rule for violation in outcome.violations} for outcome in outcomes}
    return {mutant: rules for mutant, rules in seen.items() if not expected[mutant][1] & rules}
