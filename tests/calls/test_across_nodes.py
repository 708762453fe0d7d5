"""Several nodes on one PostgreSQL, and one app after another on one database."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.calls.waiting_yard import APPROVER, CALLER, LOCAL_OPERATOR, customizations, node
from tests.calls.yard import blocking, request
from tests.requirements import requirement
from tests.store.postgres import PostgresServer
from toolyard.app.app import App
from toolyard.app.settings import Settings
from toolyard.core.approval import AlreadyDecided, Decision
from toolyard.core.call import CallState
from toolyard.core.errors import ErrorCode
from toolyard.durable.engine import Engine
from toolyard.manifest import Manifest, PythonConfig

pytestmark = pytest.mark.postgres


@pytest.fixture
def shared(postgres_server: PostgresServer) -> str:
    return postgres_server.new_database()


@requirement("call.lifecycle")
async def test_a_call_is_decided_followed_and_ended_through_any_node(shared: str, tmp_path: Path) -> None:
    async with (
        node(shared, tmp_path, auto_approve=False) as one,
        node(shared, tmp_path, auto_approve=False) as two,
        asyncio.timeout(20),
    ):
        waiting = await one.call("crm:write", {"text": "hello"})
        held = asyncio.create_task(two.calls.wait(waiting.call_id, 15.0))
        gate = await two.gate(waiting.call_id)
        decisions = await asyncio.gather(
            one.approvals.decide(gate.id, decision="approve", principal=APPROVER),
            two.approvals.decide(gate.id, decision="approve", principal=LOCAL_OPERATOR),
            return_exceptions=True,
        )
        (loser,) = [made for made in decisions if isinstance(made, BaseException)]
        assert isinstance(loser, AlreadyDecided)
        outcome = await held
        assert outcome is not None
        assert outcome.state is CallState.COMPLETE
        assert len(one.provider.seen) + len(two.provider.seen) == 1


async def test_a_direct_call_that_runs_elsewhere_is_cancelled_there(shared: str, tmp_path: Path) -> None:
    behaviour, begun, fate = blocking()
    async with node(shared, tmp_path, behaviour) as one, node(shared, tmp_path) as two, asyncio.timeout(20):
        call_id = one.calls.start(request("crm:write", {"text": "a"}, principal=CALLER))
        await begun.wait()
        assert await two.calls.cancel(call_id, CALLER)
        outcome = await two.ended(call_id)
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.CANCELLED
        here = await one.ended(call_id)
        assert here.failure is not None
        assert (here.failure.code, fate) == (ErrorCode.CANCELLED, ["cancelled"])


@requirement("call.lifecycle")
async def test_a_direct_call_of_a_node_that_died_is_interrupted_by_another(shared: str, tmp_path: Path) -> None:
    behaviour, begun, _ = blocking()

    def brief(store: object) -> Engine:
        return Engine(store, ttl=0.5)  # type: ignore[arg-type]

    async with node(shared, tmp_path) as two, asyncio.timeout(20):
        async with node(shared, tmp_path, behaviour, engine=brief) as one:
            call_id = one.calls.start(request("crm:write", {"text": "a"}, principal=CALLER))
            await begun.wait()
            await two.calls.orphans.look_for_dead_nodes()
            await one.engine.abandon()
            outcome = await two.ended(call_id)
            assert outcome.failure is not None
            assert outcome.failure.code is ErrorCode.INTERRUPTED
            one.calls._running[call_id].cancel()
        record = await two.record(call_id)
        assert record.error_code is ErrorCode.INTERRUPTED
        assert record.details is not None
        assert "late" in record.details


async def test_a_client_hops_between_nodes(shared: str, tmp_path: Path) -> None:
    async with node(shared, tmp_path) as one, node(shared, tmp_path) as two, asyncio.timeout(20):
        session = await one.sessions.create(CALLER, customizations("getPlaces"))
        polled = asyncio.create_task(two.clients.open(session.id, CALLER, wait=15.0))
        waiting = await one.call("client:getPlaces", {"city": "Rome"}, session=session.id)
        assert [found.request_id for found in await polled] == [waiting.call_id]
        await two.clients.beat(session.id, waiting.call_id, CALLER)
        await one.clients.beat(session.id, waiting.call_id, CALLER)
        await two.turn_database_clock(30.0)
        one.clock.at += 30.0
        await one.clients.beat(session.id, waiting.call_id, CALLER)
        await one.clients.flush()
        await two.turn_database_clock(10.0)
        await two.clients.abandon()
        assert await two.clients.respond(session.id, waiting.call_id, CALLER, {"state": "COMPLETE"})
        assert (await one.ended(waiting.call_id)).state is CallState.COMPLETE


@requirement("approval.survives")
async def test_an_app_asks_stops_and_the_next_one_decides_and_runs(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asked_tools.py").write_text(
        "from pathlib import Path\n"
        "import toolyard\n"
        "@toolyard.tool\n"
        "def note(text: str) -> str:\n"
        '    """Write it down."""\n'
        f"    with Path({str(tmp_path / 'effects')!r}).open('a') as file:\n"
        "        file.write(text)\n"
        "    return text\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "asked_tools", raising=False)
    settings = Settings(data_dir=tmp_path / "data", database=database, manifest_dir=tmp_path)
    manifest = Manifest(providers=(PythonConfig(id="local", module="asked_tools", auto_approve=False),))
    asked = request("local:note", {"text": "x"}, principal=CALLER, hold=0.0)
    async with App.running(settings, manifest) as first, first.bus.subscribe(["approval"]) as told:
        waiting = await first.calls.invoke(asked)
        assert waiting.state is CallState.PENDING
        async with asyncio.timeout(10):
            news = await anext(told)
        assert (news.data["type"], news.data["tool_id"], news.data["here"]) == ("requested", "local:note", True)
    async with App.running(settings, manifest) as second, second.bus.subscribe(["approval"]) as told:
        (gate,) = (await second.approvals.page("pending")).items
        await second.approvals.decide(gate.id, decision="approve", principal=LOCAL_OPERATOR)
        outcome = await second.calls.wait(waiting.call_id, 10.0)
        assert outcome is not None
        assert outcome.state is CallState.COMPLETE, outcome.failure
        async with asyncio.timeout(10):
            news = await anext(told)
        assert (news.data["type"], news.data["decision"]) == ("decided", Decision.APPROVE)
    assert (tmp_path / "effects").read_text() == "x"
