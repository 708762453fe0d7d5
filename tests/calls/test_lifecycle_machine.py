"""Every interleaving of decisions, beats, answers, cancels and crashes leaves a legal history.

The model is a dictionary: for each call, the ends that are still possible. What is on record must be among them, may
only move forward, and never changes once it is final.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.calls.waiting_yard import APPROVER, CALLER, LOCAL_OPERATOR, Node, customizations, node
from tests.calls.yard import Scripted
from tests.requirements import requirement
from toolyard.core.approval import AlreadyDecided, ApprovalRecord
from toolyard.core.call import CallState, may_follow
from toolyard.core.errors import Conflict, ErrorCode
from toolyard.core.record import CallRecord

T = TypeVar("T")
PLACES = st.sampled_from(["here", "there"])


@dataclass
class Model:
    """`ends`: error codes (None: COMPLETE) that may still come. `answer`: the response that won."""

    client: bool
    ends: set[ErrorCode | None] = field(default_factory=set[ErrorCode | None])
    first_decision: ApprovalRecord | None = None
    answer: str | None = None
    last: CallRecord | None = None

    @property
    def ended(self) -> bool:
        return self.last is not None and self.last.state.is_final


class Lifecycle(RuleBasedStateMachine):
    calls: Bundle[str] = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.provider = Scripted()
        self.model: dict[str, Model] = {}
        self.stack = AsyncExitStack()
        self.silences = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(20):
                return await work

        return self.runner.run(bounded())

    @initialize()
    def begin(self) -> None:
        self.n: Node = self.run(self._start())
        self.session = self.run(self.n.sessions.create(CALLER, customizations("getPlaces")))

    async def _start(self) -> Node:
        running = node(str(self.path / "t.db"), self.path, auto_approve=False, provider=self.provider, crash=True)
        return await self.stack.enter_async_context(running)

    @rule(target=calls)
    def call_gated(self) -> str:
        outcome = self.run(self.n.call("crm:write", {"text": "x"}, session=self.session.id))
        self.model[outcome.call_id] = Model(client=False, last=self.run(self.n.record(outcome.call_id)))
        return outcome.call_id

    @rule(target=calls)
    def call_client(self) -> str:
        outcome = self.run(self.n.call("client:getPlaces", {"city": "Rome"}, session=self.session.id))
        self.model[outcome.call_id] = Model(client=True, last=self.run(self.n.record(outcome.call_id)))
        return outcome.call_id

    @rule(call_id=calls, approve=st.booleans(), by=st.sampled_from([APPROVER, LOCAL_OPERATOR]))
    def decide(self, call_id: str, approve: bool, by: Any) -> None:
        model = self.model[call_id]
        if model.client:
            return
        gate = self.run(self.n.gate(call_id))
        try:
            made = self.run(self.n.approvals.decide(gate.id, decision="approve" if approve else "reject", principal=by))
        except AlreadyDecided as error:
            first = error.approval
        else:
            first = None
        if first is not None:
            assert first == model.first_decision or ErrorCode.CANCELLED in model.ends
            return
        assert model.first_decision is None, "two winners"
        model.first_decision = made
        model.ends.add(None if approve else ErrorCode.REJECTED)

    @rule(call_id=calls)
    def beat(self, call_id: str) -> None:
        model = self.model[call_id]
        if not model.client:
            return
        try:
            self.run(self.n.clients.beat(self.session.id, call_id, CALLER))
        except Conflict:
            assert model.ends

    @rule(call_id=calls, place=PLACES)
    def respond(self, call_id: str, place: str) -> None:
        model = self.model[call_id]
        if not model.client:
            return
        response = {"state": "COMPLETE", "places": [place]}
        try:
            self.run(self.n.clients.respond(self.session.id, call_id, CALLER, response))
        except Conflict:
            assert model.ends
            assert model.answer != place, "an identical retry was refused"
            return
        assert model.answer in (None, place), "two answers were taken"
        assert model.answer == place or not model.ends, "an ended call took an answer"
        model.answer = place
        model.ends = {None}

    @rule(call_id=calls)
    def fail(self, call_id: str) -> None:
        model = self.model[call_id]
        if not model.client:
            return
        try:
            self.run(self.n.clients.fail(self.session.id, call_id, CALLER, "no"))
        except Conflict:
            assert model.ends
            return
        assert not model.ends or model.ends == {ErrorCode.UPSTREAM}
        model.ends = {ErrorCode.UPSTREAM}

    @rule(call_id=calls)
    def cancel(self, call_id: str) -> None:
        model = self.model[call_id]
        if self.run(self.n.calls.cancel(call_id, CALLER)):
            assert not model.ended
            model.ends.add(ErrorCode.CANCELLED)
            if model.client:
                assert model.ends == {ErrorCode.CANCELLED}

    @precondition(lambda self: self.silences < 8)
    @rule()
    def silence(self) -> None:
        """Half a minute passes in which no client is heard of; never enough for a gate's deadline."""
        self.silences += 1
        self.run(self.n.turn_database_clock(33.0))
        self.run(self.n.clients.abandon())
        for model in self.model.values():
            if model.client and not model.ends and model.last is not None:
                if model.last.state is CallState.PROCESSING:
                    model.ends = {ErrorCode.ABANDONED}
                else:
                    model.ends = set()

    @rule()
    def crash(self) -> None:
        """kill -9 and a new process. A call that ran may have been cut off."""
        self.run(self.stack.aclose())
        for model in self.model.values():
            if model.ends == {None} and not model.client and not model.ended:
                model.ends.add(ErrorCode.INTERRUPTED)
        self.stack = AsyncExitStack()
        self.n = self.run(self._start())

    @rule(call_id=calls)
    def wait_for_the_end(self, call_id: str) -> None:
        if self.model[call_id].ends:
            self.run(self.n.ended(call_id))

    @invariant()
    def what_is_on_record_is_possible(self) -> None:
        for call_id, model in self.model.items():
            record = self.run(self.n.record(call_id))
            if model.last is not None:
                _must_follow(model.last, record)
            if record.state.is_final:
                assert record.error_code in model.ends, f"{record.error_code} is none of {model.ends}"
            model.last = record

    def teardown(self) -> None:
        try:
            if hasattr(self, "n"):
                for call_id, model in self.model.items():
                    if model.ends:
                        self.run(self.n.ended(call_id))
                self.what_is_on_record_is_possible()
                events = self.run(self.n.events(self.session))
                assert [event.seq for event in events] == list(range(1, len(events) + 1))
                told = [str(event.data["toolCallId"]) for event in events if event.type == "tool_result"]
                assert sorted(told) == sorted(c for c, m in self.model.items() if m.ended), "one end, one event"
                ran = [invocation.call_id for invocation in self.provider.seen]
                assert len(ran) == len(set(ran)), "a call with side effects ran twice"
            self.run(self.stack.aclose())
        finally:
            self.runner.close()
            self.folder.cleanup()


def _must_follow(before: CallRecord, after: CallRecord) -> None:
    if before.state.is_final:
        assert replace(after, details=before.details) == before, "an ended call changed"
    elif after.state is not before.state:
        direct = may_follow(before.state, after.state)
        through = may_follow(before.state, CallState.PROCESSING) and may_follow(CallState.PROCESSING, after.state)
        assert direct or through


Lifecycle.TestCase.settings = settings(
    max_examples=8,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@requirement("call.lifecycle")
class TestLifecycle(Lifecycle.TestCase):
    pass
