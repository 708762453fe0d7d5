"""One order for all row locks, so that no two transactions wait for each other: seen in everything that calls do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.calls.waiting_yard import APPROVER, CALLER, Node, customizations, node
from tests.durable.lock_order import recorded
from tests.store.postgres import PostgresServer
from toolyard.core.call import CallState
from toolyard.durable import jobs, log
from toolyard.store import Connection

pytestmark = pytest.mark.postgres


async def test_no_transaction_of_waiting_calls_locks_against_the_order(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded(monkeypatch) as order:
        async with asyncio.timeout(30), node(postgres_server.new_database(), tmp_path) as yard:
            await everything(yard)
    assert order.violations == []
    assert order.transactions >= 15
    assert order.longest == ("jobs", "approvals", "calls", "sessions")


async def everything(yard: Node) -> None:
    """Approved, rejected, cancelled, answered by a client, failed by a client, and ended with their session."""
    session = await yard.sessions.create(CALLER, customizations("getPlaces"))

    async def gated() -> tuple[str, str]:
        waiting = await yard.call("crm:write", {"text": "a"}, session=session.id, server="asking")
        return waiting.call_id, (await yard.gate(waiting.call_id)).id

    async def by_client() -> str:
        return (await yard.call("client:getPlaces", {"city": "Rome"}, session=session.id)).call_id

    (approved, first), (rejected, second), (cancelled, _) = [await gated() for _ in range(3)]
    answered, failed, _ = [await by_client() for _ in range(3)]
    await yard.approvals.decide(first, decision="approve", principal=APPROVER)
    await yard.approvals.decide(second, decision="reject", principal=APPROVER, reason="no")
    await yard.calls.cancel(cancelled, CALLER)
    await yard.clients.beat(session.id, answered, CALLER, 1)
    await yard.clients.respond(session.id, answered, CALLER, {"places": ["Forum"], "state": "COMPLETE"})
    await yard.clients.fail(session.id, failed, CALLER, "gone")
    states = {name: (await yard.ended(name)).state for name in (approved, rejected, cancelled, answered, failed)}
    assert states == {
        approved: CallState.COMPLETE,
        rejected: CallState.ERROR,
        cancelled: CallState.ERROR,
        answered: CallState.COMPLETE,
        failed: CallState.ERROR,
    }
    await gated()
    await yard.sessions.delete(session.id, CALLER)


async def test_the_recorder_sees_a_transaction_that_locks_against_the_order(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asyncio.timeout(20), node(postgres_server.new_database(), tmp_path) as yard:
        session = await yard.sessions.create(CALLER, customizations())
        await yard.store.tx(lambda c: jobs.insert(c, jobs.NewJob("job_1", "other", state="running", owner="me")))

        def right(c: Connection) -> Any:
            jobs.fence(c, "job_1", 1)
            log.append(c, session.id, "tool", "noise", {})
            jobs.finish(c, "job_1", 1, "done")  # its row is locked already

        def wrong(c: Connection) -> Any:
            log.append(c, session.id, "tool", "noise", {})
            jobs.lock(c, "job_1")

        with recorded(monkeypatch) as order:
            await yard.store.tx(right)
            assert order.violations == []
            await yard.store.tx(wrong)
        assert len(order.violations) == 1
        assert "-> jobs [SELECT id, session_id" in order.violations[0]
