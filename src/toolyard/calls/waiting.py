"""The job of a call that had to wait: run it, on whichever node claims it, once every gate is passed.

| found | done |
|---|---|
| a gate undecided, its deadline ahead | park again (a wake-up too early, or a crash) |
| a gate undecided, its deadline past | decide it `timeout`; ERROR `approval_timeout`. No timer: whoever looks first |
| a gate rejected | ERROR `rejected`, with the reason |
| all gates passed | resolve, validate and authorize again; PENDING -> PROCESSING on disk; run; settle |
| PROCESSING, its upstream's questions answered | the request is sent again with the answers |
| PROCESSING otherwise (its node died) | an idempotent tool runs again with the same key; others end `interrupted` |

Every write is fenced by the job's epoch. What a run that lost its job still brings is kept on record as `late`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import orjson

from toolyard.calls import questions, session_events
from toolyard.calls.audit import Audit
from toolyard.calls.authorize import authorize
from toolyard.calls.execute import Running, execute
from toolyard.calls.parking import NewCall, insert, wake_key
from toolyard.calls.questions import Interview
from toolyard.calls.record import Ending, Opening
from toolyard.calls.ticket import Ticket
from toolyard.calls.workbench import Workbench
from toolyard.catalog import Entry
from toolyard.core.approval import ApprovalRecord, Decision
from toolyard.core.call import CallFailure, CallRequest, CallState, ProgressSink, ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.question import LogSink, NeedsInput
from toolyard.core.record import CallRecord
from toolyard.core.tool import ActionClass
from toolyard.durable.jobs import Fenced, JobRow
from toolyard.durable.running import Park, RunEnded, RunningJob
from toolyard.store import approvals as approval_rows
from toolyard.store import calls as rows
from toolyard.store import open_calls
from toolyard.store import questions as question_rows
from toolyard.store.base import Connection
from toolyard.store.open_calls import INTERRUPTED
from toolyard.store.questions import QuestionRow

LOOK_AGAIN_AFTER = 1.0
"""Seconds after which a call looks again for a provider that is starting."""
LONGEST_WAIT_FOR_PROVIDER = 300.0
"""Seconds after the decision."""


@dataclass(frozen=True, slots=True)
class _Found:
    record: CallRecord | None
    gates: Sequence[ApprovalRecord]
    asked: Sequence[QuestionRow]
    """The round of questions that came last."""
    now: float


class WaitingCalls:
    def __init__(self, bench: Workbench, audit: Audit) -> None:
        self._bench = bench
        self._audit = audit
        self._store = bench.store
        self._engine = bench.engine
        self._listeners: dict[str, tuple[ProgressSink | None, LogSink | None]] = {}

    @contextmanager
    def heard_by(self, call_id: str, progress: ProgressSink | None, log: LogSink | None) -> Generator[None]:
        """While a caller on this node holds on for the outcome, it hears what the run reports."""
        self._listeners[call_id] = (progress, log)
        try:
            yield
        finally:
            self._listeners.pop(call_id, None)

    async def run(self, job: RunningJob) -> JsonValue:
        """The handler of jobs of kind `call`."""
        ticket = Ticket.from_wire(job.input)
        while True:
            found = await self._store.read(partial(_look, ticket.call_id))
            record = found.record
            if record is None or record.state.is_final:
                return None
            if record.state is CallState.PROCESSING:
                if found.asked and not found.asked[0].held and not found.asked[0].taken:
                    return await self._answered(job, ticket, record, found)
                return await self._take_over(job, ticket, record, found.gates)
            refusal = next((failure for gate in found.gates if (failure := _refusal(gate))), None)
            if refusal is not None:
                return await self._fail(job, record, refusal)
            undecided = [gate for gate in found.gates if not gate.is_decided]
            if not undecided:
                return await self._go_on(job, ticket, record, found.gates, found.now)
            due = [gate for gate in undecided if gate.deadline <= found.now]
            if due:
                await self._time_out(job, due)
                continue
            await job.park(
                wake_key(ticket.call_id),
                min(gate.deadline for gate in undecided),
                partial(_is_undecided, ticket.call_id),
            )

    def ended(self, c: Connection, job: JobRow, reason: str) -> None:
        """The job ended in error without our doing: its call must not stay open."""
        call_id = Ticket.from_wire(job.input).call_id
        record = open_calls.lock(c, call_id)
        if record is None or record.state.is_final:
            return
        failure = INTERRUPTED
        if record.state is CallState.PENDING:
            failure = CallFailure(ErrorCode.INTERNAL, f"The call could not be run: {reason[:500]}")
        open_calls.fail(c, call_id, failure, finished=c.now())
        session_events.ended(c, rows.get(c, call_id) or record, None)

    # -- the gates

    async def _time_out(self, job: RunningJob, due: Sequence[ApprovalRecord]) -> None:
        def time_out(c: Connection) -> None:
            now = c.now()
            for gate in due:
                if approval_rows.decide(c, gate.id, Decision.TIMEOUT, by=None, at=now):
                    session_events.decided(c, replace(gate, decision=Decision.TIMEOUT, decided_at=now))

        await job.tx(time_out)
        self._engine.hint("approvals")

    async def _fail(self, job: RunningJob, record: CallRecord, failure: CallFailure) -> None:
        """ERROR, in one transaction with the end of the job."""

        def settle(c: Connection) -> None:
            now = c.now()
            for gate in approval_rows.of_call(c, record.id):
                approval_rows.decide(c, gate.id, Decision.CANCELLED, by=None, at=now)
            if open_calls.fail(c, record.id, failure, finished=self._bench.clock.now()):
                session_events.ended(c, rows.get(c, record.id) or record, None)

        try:
            await job.finish(within=settle)
        except RunEnded:
            self._hint(record)
            self._bench.observers.tell_of(record, CallState.ERROR, failure)
            raise

    # -- running it

    async def _go_on(
        self, job: RunningJob, ticket: Ticket, record: CallRecord, gates: Sequence[ApprovalRecord], now: float
    ) -> JsonValue:
        try:
            entry, opening = await self._checked(ticket, record, gates)
        except CallError as error:
            if error.code is ErrorCode.NOT_FOUND and self._may_still_come(ticket, gates, now):
                raise Park(wake_at=now + LOOK_AGAIN_AFTER) from error
            return await self._fail(job, record, CallFailure.of(error))
        if record.execution == "client":
            return await self._hand_over(job, record, opening, _edited(gates))
        started = self._bench.clock.now()
        begin = partial(
            _begin, record.id, started=started, owner=self._engine.node_id, epoch=job.epoch, edited=_edited(gates)
        )
        if not await job.tx(begin):
            return None
        return await self._execute(job, ticket, opening, entry, replace(record, started=started), gates)

    async def _take_over(
        self, job: RunningJob, ticket: Ticket, record: CallRecord, gates: Sequence[ApprovalRecord]
    ) -> JsonValue:
        """An earlier run of this job left it PROCESSING: whether its effect happened is not known."""
        try:
            entry, opening = await self._checked(ticket, record, gates)
        except CallError:
            return await self._fail(job, record, INTERRUPTED)
        if not may_run_again(entry):
            return await self._fail(job, record, INTERRUPTED)
        if not await job.tx(partial(_begin_again, record.id, owner=self._engine.node_id, epoch=job.epoch)):
            return None
        return await self._execute(job, ticket, opening, entry, record, gates)

    async def _answered(self, job: RunningJob, ticket: Ticket, record: CallRecord, found: _Found) -> JsonValue:
        """The upstream asked before it goes on: with the answers, its request is sent again."""
        unanswered = [row for row in found.asked if row.answer is None]
        deadline = min(row.deadline for row in found.asked)
        if unanswered and found.now < deadline:
            await job.park(questions.wake_key(record.id), deadline, partial(_is_unanswered, record.id))
            return await self.run(job)
        try:
            answers = questions.answers_of(found.asked)
            entry, opening = await self._checked(ticket, record, found.gates)
        except CallError as error:
            return await self._fail(job, record, CallFailure.of(error))
        if not await job.tx(partial(_begin_again, record.id, owner=self._engine.node_id, epoch=job.epoch)):
            return None
        state = found.asked[0].upstream_state
        return await self._execute(job, ticket, opening, entry, record, found.gates, answers=answers, state=state)

    async def _checked(
        self, ticket: Ticket, record: CallRecord, gates: Sequence[ApprovalRecord]
    ) -> tuple[Entry, Opening]:
        """The tool as it is now, and the arguments that were decided.

        Raises:
            CallError: it cannot run any more, and why.
        """
        edited = _edited(gates)
        text = edited.encode() if edited is not None else await self._audit.full_arguments(record)
        arguments = cast("JsonObject", orjson.loads(text))
        request = ticket.request(arguments)
        try:
            entry = await self._bench.resolve(request)
        except CallError as error:
            raise CallError(
                ErrorCode.NOT_FOUND,
                f"{ticket.tool} was removed or switched off while this call waited; nothing was run.",
                suggestion=error.suggestion,
            ) from error
        if gates and entry.tool.definition_hash != ticket.definition_hash:
            raise CallError(
                ErrorCode.DENIED,
                f"The definition of {ticket.tool} changed after this call was approved; nothing was run.",
                suggestion="Call it again, to have it decided as it is now.",
            )
        self._bench.validator.check(entry.tool, arguments)
        authorize(ticket.principal, entry)
        return entry, Opening(
            request=request,
            arguments=text,
            arguments_ref=None if edited is not None else record.arguments_ref,
            request_hash=record.request_hash,
            created=record.created,
        )

    def _may_still_come(self, ticket: Ticket, gates: Sequence[ApprovalRecord], now: float) -> bool:
        """After a restart a provider may be slower than the job: wait for it, but not for ever."""
        decided = max((gate.decided_at or 0.0 for gate in gates), default=0.0)
        return now < decided + LONGEST_WAIT_FOR_PROVIDER and self._bench.is_coming(ticket.tool.partition(":")[0])

    async def _hand_over(self, job: RunningJob, record: CallRecord, opening: Opening, edited: str | None) -> None:
        """Every gate is passed: the client may have it."""
        arguments = orjson.dumps(opening.request.arguments)

        def hand_over(c: Connection) -> None:
            if edited is not None:
                open_calls.replace_arguments(c, record.id, edited)
            if open_calls.hand_to_client(c, record.id, deadline=c.now() + self._bench.pick_up_timeout):
                session_events.called(c, record, arguments)

        try:
            await job.finish(within=hand_over)
        except RunEnded:
            self._hint(record)
            raise

    async def _execute(  # noqa: PLR0917 - one call's own state, nothing to group
        self,
        job: RunningJob,
        ticket: Ticket,
        opening: Opening,
        entry: Entry,
        record: CallRecord,
        gates: Sequence[ApprovalRecord],
        *,
        answers: Mapping[str, JsonObject] | None = None,
        state: str | None = None,
    ) -> None:
        request = self._as_run(opening.request, entry)
        interview = None
        if request.may_ask:
            interview = Interview(request, self._store, self._engine, answers=answers, upstream_state=state)
        self._bench.observers.tell(request, CallState.PROCESSING, None, None)
        started = record.started or self._bench.clock.now()
        details = _details(ticket, gates)
        then: NewCall | None = None
        try:
            job.check()
            running = Running(request.principal.label)
            try:
                result = await execute(self._bench.providers, request, entry, running, interview)
            except NeedsInput as needs:
                questions.must_be_askable(needs.questions, request.may_ask)
                await self._ask_again(job, record, needs)
                return
        except CallError as error:
            ending = Ending.of_failure(CallFailure.of(error), started)
        else:
            ending = await self._bench.shaped(request, opening.created, entry.tool, result, started)
            if ending.state is CallState.COMPLETE:
                then = await self._bench.follow_up(request, entry, cast("ToolResult", ending.result))
        ending = replace(ending, details={**(ending.details or {}), **details} or None)
        settled = await self._bench.recorder.ended(opening, ending)
        await self._settle(job, replace(settled, execution="node"), ending, then)

    async def _ask_again(self, job: RunningJob, record: CallRecord, needs: NeedsInput) -> None:
        """Another round: its questions and the job that waits for their answers, in one transaction."""
        ids = questions.new_ids(needs.questions)
        deadline = await self._store.read(lambda c: c.now()) + questions.ANSWER_WITHIN

        def asked(c: Connection) -> bool:
            questions.ask(record.id, needs.questions, ids, c, held=False, state=needs.state)
            return True

        try:
            await job.park(questions.wake_key(record.id), deadline, asked)
        except RunEnded:
            self._engine.hint(f"call:{record.id}")
            raise

    async def _settle(self, job: RunningJob, record: CallRecord, ending: Ending, then: NewCall | None) -> None:
        """The end of the call and of its job, and the follow-up, in one transaction."""

        def settle(c: Connection) -> None:
            if not rows.settle(c, record, epoch=job.epoch):
                rows.keep_late(c, record)
                return
            if then is not None:
                insert(c, then)
            session_events.ended(c, record, ending.result)

        try:
            await job.finish(within=settle)
        except Fenced:
            await self._store.tx(lambda c: rows.keep_late(c, record))
            raise
        except RunEnded:
            self._hint(record, *(then.topics if then is not None else ()))
            self._bench.observers.tell_of(record, record.state, ending.failure)
            raise

    def _as_run(self, request: CallRequest, entry: Entry) -> CallRequest:
        """With a key that a second run of an idempotent tool repeats."""
        key = request.idempotency_key or (request.call_id if may_run_again(entry) else None)
        progress, log = self._listeners.get(request.call_id, (None, None))
        return replace(request, idempotency_key=key, progress=progress, log=log)

    def _hint(self, record: CallRecord, *more: str) -> None:
        session = (f"session:{record.session_id}",) if record.session_id else ()
        self._engine.hint(f"call:{record.id}", *session, *more)


def may_run_again(entry: Entry) -> bool:
    """Whether a second run does no harm when nobody knows what became of the first."""
    return entry.tool.annotations.idempotent is True or entry.tool.action_class is ActionClass.READ


def _look(call_id: str, c: Connection) -> _Found:
    record = rows.get(c, call_id)
    asked = questions.latest_round(c, call_id) if record is not None and record.state is CallState.PROCESSING else ()
    return _Found(record, approval_rows.of_call(c, call_id), asked, c.now())


def _begin_again(call_id: str, c: Connection, *, owner: str, epoch: int) -> bool:
    """What an earlier run asked and nobody answered is asked no more."""
    if not open_calls.begin_again(c, call_id, owner=owner, epoch=epoch):
        return False
    questions.close(call_id, frozenset(row.id for row in questions.latest_round(c, call_id)), c)
    question_rows.take(c, call_id)
    return True


def _is_unanswered(call_id: str, c: Connection) -> bool:
    """Under the job's lock: is there still something to wait for?"""
    return any(row.answer is None for row in questions.latest_round(c, call_id))


def _is_undecided(call_id: str, c: Connection) -> bool:
    """Under the job's lock: is there nothing to be done before the deadline?"""
    gates = approval_rows.of_call(c, call_id)
    return any(not gate.is_decided for gate in gates) and not any(_refusal(gate) for gate in gates)


def _begin(call_id: str, c: Connection, *, started: float, owner: str, epoch: int, edited: str | None) -> bool:
    if edited is not None:
        open_calls.replace_arguments(c, call_id, edited)
    return open_calls.begin(c, call_id, started=started, owner=owner, epoch=epoch)


def _refusal(gate: ApprovalRecord) -> CallFailure | None:
    if gate.decision is Decision.REJECT:
        reason = f": {gate.reason}" if gate.reason else ", without a reason"
        return CallFailure(
            ErrorCode.REJECTED,
            f"{gate.tool} was not run: {gate.decided_by or 'somebody'} rejected the call{reason}",
            "Do not repeat it; try another way, or ask.",
        )
    if gate.decision is Decision.TIMEOUT:
        return CallFailure(
            ErrorCode.APPROVAL_TIMEOUT,
            f"{gate.tool} was not run: nobody decided within {gate.deadline - gate.created:g} s.",
            "Call it again when somebody is there to decide.",
        )
    if gate.decision is Decision.CANCELLED:
        return CallFailure(ErrorCode.CANCELLED, f"{gate.tool} was not run: the call was cancelled.")
    return None


def _edited(gates: Sequence[ApprovalRecord]) -> str | None:
    """The arguments of the gate that was edited last."""
    edits = [gate for gate in gates if gate.edited_arguments is not None]
    return max(edits, key=lambda gate: gate.decided_at or 0.0).edited_arguments if edits else None


def _details(ticket: Ticket, gates: Sequence[ApprovalRecord]) -> Mapping[str, JsonValue]:
    details: dict[str, JsonValue] = {}
    if ticket.after is not None:
        details["after"] = ticket.after
    if gates:
        details["approvals"] = [
            {
                "id": gate.id,
                "gate": gate.gate.value,
                "decided_by": gate.decided_by,
                "edited": gate.edited_arguments is not None,
            }
            for gate in gates
        ]
    return details
