"""A call that waits for a human: asked, decided once, run once, on whichever node."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.calls.waiting_yard import APPROVER, CALLER, LOCAL_OPERATOR, OTHER, TOOLS, customizations, loads, node
from tests.calls.yard import Scripted, blocking, request
from tests.requirements import requirement
from toolyard.calls.approve import ProviderPolicy
from toolyard.core.approval import AlreadyDecided, ApprovalScope, Decision, Gate
from toolyard.core.call import CallState, Progress, ToolResult
from toolyard.core.errors import BadInput, CallError, Conflict, ErrorCode, Forbidden, NotFound
from toolyard.core.record import CallEvent
from toolyard.core.schema import Schema
from toolyard.core.tool import Tool
from toolyard.providers.base import Invocation


@requirement("approval.gate")
@requirement("call.lifecycle")
async def test_a_call_that_is_asked_for_waits_as_rows_and_runs_when_it_is_approved(
    database: str, tmp_path: Path
) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        open_call = await n.call("crm:write", {"text": "hello"})
        assert open_call.state is CallState.PENDING
        assert open_call.waiting is not None
        gate = await n.gate(open_call.call_id)
        assert (open_call.waiting.kind, open_call.waiting.id) == ("approval", gate.id)
        assert open_call.waiting.url == f"http://yard/approvals/{gate.id}"
        assert (gate.tool, loads(gate.arguments), gate.principal) == ("crm:write", {"text": "hello"}, "key:ci")
        assert gate.why == "the provider 'crm' asks for each call"
        assert gate.deadline - gate.created == pytest.approx(300.0)
        assert n.provider.seen == []
        assert n.calls._running == {}  # nothing in memory

        decided = await n.approvals.decide(gate.id, decision="approve", principal=APPROVER, reason="fine")
        assert (decided.decision, decided.decided_by, decided.reason) == (Decision.APPROVE, "key:boss", "fine")
        outcome = await n.ended(open_call.call_id)
        assert (outcome.state, outcome.result) == (CallState.COMPLETE, ToolResult.of_text("hello"))
        assert len(n.provider.seen) == 1
        record = await n.record(open_call.call_id)
        assert (record.owner, record.epoch, record.waiting) == (n.engine.node_id, 1, None)
        assert record.details == {
            "approvals": [{"id": gate.id, "gate": "operator", "decided_by": "key:boss", "edited": False}]
        }
        assert [event.state for event in n.seen] == ["PENDING", "PROCESSING", "COMPLETE"]


async def test_a_caller_that_leaves_while_its_call_is_being_parked_takes_it_along(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        asked = request("crm:write", {"text": "hello"}, principal=CALLER, hold=None)
        park = n.calls._recorder.park

        async def park_and_leave(new: Any) -> Any:
            record = await park(new)
            assert await n.calls.cancel(asked.call_id, CALLER)
            return record

        monkeypatch.setattr(n.calls._recorder, "park", park_and_leave)
        async with asyncio.timeout(10):
            outcome = await n.calls.invoke(asked)
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.CANCELLED
        assert (await n.gate(asked.call_id)).is_decided


async def test_a_caller_may_hold_on_for_the_decision_and_hears_the_progress(database: str, tmp_path: Path) -> None:
    async def report(invocation: Invocation) -> ToolResult:
        assert invocation.progress is not None
        invocation.progress(Progress(1, 2))
        return ToolResult.of_text("done")

    heard: list[Progress] = []
    async with node(database, tmp_path, report, auto_approve=False) as n, asyncio.timeout(10):
        held = asyncio.create_task(n.call("crm:write", {"text": "a"}, hold=None, progress=heard.append))
        while not (page := await n.approvals.page("pending")).items:
            await asyncio.sleep(0)
        await n.approvals.decide(page.items[0].id, decision="approve", principal=APPROVER)
        outcome = await held
        assert (outcome.state, heard) == (CallState.COMPLETE, [Progress(1, 2)])


@requirement("approval.gate")
async def test_a_rejection_tells_the_caller_who_and_why_and_nothing_runs(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        waiting = await n.call("crm:write", {"text": "hello"})
        gate = await n.gate(waiting.call_id)
        await n.approvals.decide(gate.id, decision="reject", principal=APPROVER, reason="not on Fridays")
        outcome = await n.ended(waiting.call_id)
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.REJECTED
        assert outcome.failure.message == "crm:write was not run: key:boss rejected the call: not on Fridays"
        assert n.provider.seen == []
        assert [event.error_code for event in n.seen] == [None, ErrorCode.REJECTED]


@requirement("approval.timeout")
async def test_an_undecided_call_ends_at_its_deadline(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        n.policies["crm"] = ProviderPolicy(False, 60.0)
        waiting = await n.call("crm:write", {"text": "hello"})
        await n.turn_database_clock(61.0)
        n.engine.hint("job:any")
        outcome = await n.ended(waiting.call_id)
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.APPROVAL_TIMEOUT
        assert "nobody decided within 60 s" in outcome.failure.message
        gate = await n.gate(waiting.call_id)
        assert gate.decision is Decision.TIMEOUT
        with pytest.raises(AlreadyDecided) as late:
            await n.approvals.decide(gate.id, decision="approve", principal=APPROVER)
        assert late.value.approval.decision is Decision.TIMEOUT
        assert n.provider.seen == []


@requirement("approval.timeout")
async def test_the_deadline_passes_also_while_every_node_is_down(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False, crash=True) as first:
        waiting = await first.call("crm:write", {"text": "hello"})
        gate = await first.gate(waiting.call_id)
    async with node(database, tmp_path, auto_approve=False, crash=True) as between:
        await between.engine.abandon()
        await between.turn_database_clock(301.0)
    async with node(database, tmp_path, auto_approve=False) as later:
        outcome = await later.ended(waiting.call_id)
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.APPROVAL_TIMEOUT
        assert (await later.approvals.get(gate.id)).decision is Decision.TIMEOUT
        assert later.provider.seen == []


async def test_a_decision_after_the_deadline_is_too_late_even_when_nobody_has_looked_yet(
    database: str, tmp_path: Path
) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        await n.engine.abandon()
        waiting = await n.call("crm:write", {"text": "hello"})
        gate = await n.gate(waiting.call_id)
        await n.turn_database_clock(301.0)
        with pytest.raises(AlreadyDecided, match="left undecided until its deadline"):
            await n.approvals.decide(gate.id, decision="approve", principal=APPROVER)


@requirement("approval.survives")
async def test_a_waiting_call_survives_the_crash_of_its_node_and_runs_once_elsewhere(
    database: str, tmp_path: Path
) -> None:
    provider = Scripted()
    async with node(database, tmp_path, auto_approve=False, provider=provider, crash=True) as first:
        waiting = await first.call("crm:write", {"text": "hello"}, idempotency_key="once")
    async with node(database, tmp_path, auto_approve=False, provider=provider) as second:
        again = await second.call("crm:write", {"text": "hello"}, idempotency_key="once")
        assert (again.call_id, again.state) == (waiting.call_id, CallState.PENDING)
        gate = await second.gate(waiting.call_id)
        await second.approvals.decide(gate.id, decision="approve", principal=APPROVER)
        assert (await second.ended(waiting.call_id)).state is CallState.COMPLETE
    async with node(database, tmp_path, auto_approve=False, provider=provider) as third:
        assert (await third.ended(waiting.call_id)).result == ToolResult.of_text("hello")
    assert [invocation.call_id for invocation in provider.seen] == [waiting.call_id]
    assert provider.seen[0].idempotency_key == "once"
    assert provider.seen[0].principal == CALLER


async def test_an_idempotency_key_of_a_waiting_call_fits_no_other_call(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        await n.call("crm:write", {"text": "hello"}, idempotency_key="once")
        with pytest.raises(Conflict, match="used for another call"):
            await n.call("crm:write", {"text": "bye"}, idempotency_key="once")


@requirement("approval.edit")
async def test_two_decisions_race_to_exactly_one_winner(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        for _ in range(5):
            waiting = await n.call("crm:write", {"text": "hello"})
            gate = await n.gate(waiting.call_id)
            made = await asyncio.gather(
                n.approvals.decide(gate.id, decision="approve", principal=APPROVER),
                n.approvals.decide(gate.id, decision="reject", principal=LOCAL_OPERATOR, reason="no"),
                n.approvals.decide(gate.id, decision="reject", principal=APPROVER),
                return_exceptions=True,
            )
            (winner,) = [one for one in made if not isinstance(one, BaseException)]
            losers = [one for one in made if isinstance(one, BaseException)]
            on_record = await n.approvals.get(gate.id)
            assert on_record == winner
            assert [type(one) for one in losers] == [AlreadyDecided, AlreadyDecided]
            assert all(isinstance(one, AlreadyDecided) and one.approval == winner for one in losers)
            outcome = await n.ended(waiting.call_id)
            assert (outcome.state is CallState.COMPLETE) == (winner.decision is Decision.APPROVE)


@requirement("approval.edit")
async def test_edited_arguments_are_checked_run_and_kept_beside_the_first_ones(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        waiting = await n.call("crm:write", {"text": "delete all"})
        gate = await n.gate(waiting.call_id)
        with pytest.raises(CallError, match="unknown field 'tex'"):
            await n.approvals.decide(gate.id, decision="approve", principal=APPROVER, arguments={"tex": "one"})
        assert not (await n.approvals.get(gate.id)).is_decided
        await n.approvals.decide(gate.id, decision="approve", principal=APPROVER, arguments={"text": "delete one"})
        assert (await n.ended(waiting.call_id)).result == ToolResult.of_text("delete one")
        kept = await n.approvals.get(gate.id)
        assert (loads(kept.arguments), loads(kept.edited_arguments)) == ({"text": "delete all"}, {"text": "delete one"})
        assert loads((await n.record(waiting.call_id)).arguments) == {"text": "delete one"}


@requirement("approval.edit")
async def test_allowed_for_the_session_is_not_asked_again_until_the_definition_changes(
    database: str, tmp_path: Path
) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        session = await n.sessions.create(CALLER, customizations())
        first = await n.call("crm:write", {"text": "a"}, session=session.id)
        gate = await n.gate(first.call_id)
        await n.approvals.decide(gate.id, decision="approve", principal=APPROVER, scope="session")
        await n.ended(first.call_id)
        second = await n.call("crm:write", {"text": "b"}, session=session.id)
        assert (await n.ended(second.call_id)).state is CallState.COMPLETE
        assert await n.approvals.of_call(second.call_id) == []

        assert (await n.call("crm:put", {"text": "c"}, session=session.id)).waiting is not None, "another tool"
        assert (await n.call("crm:write", {"text": "c"})).waiting is not None, "outside the session"
        changed = [Tool("crm", "write", "Writes, and mails it to everybody.", TOOLS[0].input_schema), *TOOLS[1:]]
        n.catalog.publish("crm", changed)
        assert (await n.call("crm:write", {"text": "d"}, session=session.id)).waiting is not None, "another definition"


async def test_allowed_without_a_session_covers_the_caller_alone(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        first = await n.call("crm:write", {"text": "a"})
        gate = await n.gate(first.call_id)
        await n.approvals.decide(gate.id, decision="approve", principal=APPROVER, scope=ApprovalScope.SESSION)
        await n.ended(first.call_id)
        second = await n.call("crm:write", {"text": "b"}, hold=None)
        assert second.state is CallState.COMPLETE
        assert (await n.call("crm:write", {"text": "c"}, principal=OTHER)).waiting is not None


async def test_who_may_decide(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        waiting = await n.call("crm:write", {"text": "a"}, principal=APPROVER_WHO_CALLS)
        gate = await n.gate(waiting.call_id)
        with pytest.raises(Forbidden, match="scope 'approve'"):
            await n.approvals.decide(gate.id, decision="approve", principal=OTHER)
        with pytest.raises(Forbidden, match="made this call"):
            await n.approvals.decide(gate.id, decision="approve", principal=APPROVER_WHO_CALLS)
        with pytest.raises(NotFound):
            await n.approvals.decide("appr_none", decision="approve", principal=APPROVER)
        with pytest.raises(BadInput, match="no decision"):
            await n.approvals.decide(gate.id, decision="perhaps", principal=APPROVER)  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="rejection"):
            await n.approvals.decide(gate.id, decision="reject", principal=APPROVER, scope="session")
        assert not (await n.approvals.get(gate.id)).is_decided


async def test_a_tool_that_was_removed_while_its_call_waited_fails_clearly(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        waiting = await n.call("crm:write", {"text": "a"})
        gate = await n.gate(waiting.call_id)
        n.catalog.remove_tools({"crm:write"})
        await n.approvals.decide(gate.id, decision="approve", principal=APPROVER)
        outcome = await n.ended(waiting.call_id)
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.NOT_FOUND
        assert "removed or switched off while this call waited" in outcome.failure.message
        assert n.provider.seen == []


async def test_a_tool_that_changed_after_it_was_asked_for_does_not_run(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        waiting = await n.call("crm:write", {"text": "a"})
        gate = await n.gate(waiting.call_id)
        n.catalog.publish("crm", [Tool("crm", "write", "Another.", Schema({"type": "object"}))])
        await n.approvals.decide(gate.id, decision="approve", principal=APPROVER)
        outcome = await n.ended(waiting.call_id)
        assert outcome.failure is not None
        assert (outcome.failure.code, n.provider.seen) == (ErrorCode.DENIED, [])


async def test_a_waiting_call_is_cancelled_from_any_node_and_its_gate_closes(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        waiting = await n.call("crm:write", {"text": "a"})
        gate = await n.gate(waiting.call_id)
        with pytest.raises(Forbidden):
            await n.calls.cancel(waiting.call_id, OTHER)
        assert await n.calls.cancel(waiting.call_id, CALLER)
        assert not await n.calls.cancel(waiting.call_id, CALLER), "once is enough"
        outcome = await n.ended(waiting.call_id)
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.CANCELLED
        with pytest.raises(AlreadyDecided) as closed:
            await n.approvals.decide(gate.id, decision="approve", principal=APPROVER)
        assert closed.value.approval.decision is Decision.CANCELLED
        assert n.provider.seen == []


async def test_an_approved_call_is_cancelled_while_it_runs_and_its_provider_is_told(
    database: str, tmp_path: Path
) -> None:
    behaviour, begun, fate = blocking()
    async with node(database, tmp_path, behaviour, auto_approve=False) as n, asyncio.timeout(20):
        waiting = await n.call("crm:write", {"text": "a"})
        gate = await n.gate(waiting.call_id)
        await n.approvals.decide(gate.id, decision="approve", principal=APPROVER)
        await begun.wait()
        assert (await n.record(waiting.call_id)).state is CallState.PROCESSING
        assert await n.calls.cancel(waiting.call_id, CALLER)
        outcome = await n.ended(waiting.call_id)
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.CANCELLED
        while not fate:
            await asyncio.sleep(0.01)
        assert fate == ["cancelled"]


@pytest.mark.parametrize(
    ("tool", "code", "runs"), [("crm:write", ErrorCode.INTERRUPTED, 1), ("crm:put", None, 2), ("crm:read", None, 2)]
)
@requirement("call.lifecycle")
async def test_a_call_whose_node_dies_runs_again_only_when_that_does_no_harm(
    database: str, tmp_path: Path, tool: str, code: ErrorCode | None, runs: int
) -> None:
    stuck, begun, _ = blocking()
    provider = Scripted(stuck)
    async with node(database, tmp_path, auto_approve=False, provider=provider, crash=True) as first:
        waiting = await first.call(tool, {"text": "a"})
        gate = await first.gate(waiting.call_id)
        await first.approvals.decide(gate.id, decision="approve", principal=APPROVER)
        async with asyncio.timeout(10):
            await begun.wait()
    provider.behaviour = Scripted().behaviour
    async with node(database, tmp_path, auto_approve=False, provider=provider) as second:
        outcome = await second.ended(waiting.call_id)
        assert (outcome.failure and outcome.failure.code) == code
        assert len(provider.seen) == runs
        keys = {invocation.idempotency_key for invocation in provider.seen}
        assert keys == ({None} if runs == 1 else {waiting.call_id})
        assert (await second.record(waiting.call_id)).epoch == (1 if runs == 1 else 2)


async def test_pages_of_approvals(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        ids = [(await n.gate((await n.call("crm:write", {"text": str(i)})).call_id)).id for i in range(5)]
        await n.approvals.decide(ids[1], decision="reject", principal=APPROVER)
        first = await n.approvals.page("pending", limit=3)
        assert [item.id for item in first.items] == [ids[0], ids[2], ids[3]]
        rest = await n.approvals.page("pending", limit=3, cursor=first.next_cursor)
        assert ([item.id for item in rest.items], rest.next_cursor) == ([ids[4]], None)
        assert [item.id for item in (await n.approvals.page("decided")).items] == [ids[1]]
        assert await n.approvals.count_pending() == 4
        with pytest.raises(BadInput, match="cursor"):
            await n.approvals.page(cursor="nonsense")


async def test_a_background_call_that_waits_holds_no_task(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        call_id = n.calls.start(request("crm:write", {"text": "a"}, principal=CALLER))
        assert await n.calls.wait(call_id, 0.3) is None
        assert n.calls._background == set()
        gate = await n.gate(call_id)
        ended: list[CallEvent] = n.seen
        await n.approvals.decide(gate.id, decision="approve", principal=APPROVER)
        assert (await n.ended(call_id)).state is CallState.COMPLETE
        assert ended[-1].state is CallState.COMPLETE


async def test_both_gates_have_to_be_passed(database: str, tmp_path: Path) -> None:
    async with node(database, tmp_path, auto_approve=False) as n:
        session = await n.sessions.create(CALLER, customizations())
        waiting = await n.call("crm:pre_delete", {"text": "a"}, session=session.id)
        gates: dict[Gate, Any] = {gate.gate: gate for gate in await n.approvals.of_call(waiting.call_id)}
        assert set(gates) == {Gate.OPERATOR, Gate.USER}
        await n.approvals.decide(gates[Gate.OPERATOR].id, decision="approve", principal=APPROVER)
        assert await n.calls.wait(waiting.call_id, 0.2) is None
        await n.approvals.decide(gates[Gate.USER].id, decision="approve", principal=CALLER)
        assert (await n.ended(waiting.call_id)).state is CallState.COMPLETE


APPROVER_WHO_CALLS = type(APPROVER)(APPROVER.kind, "k9", "both", frozenset({*APPROVER.scopes, *CALLER.scopes}))
