"""The decisions that calls wait for: listed, read, and made. The first decision wins, whichever node it comes to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from toolyard.calls import session_events
from toolyard.calls.parking import holder, wake_key
from toolyard.calls.ticket import Ticket
from toolyard.calls.workbench import Workbench
from toolyard.core.approval import AlreadyDecided, ApprovalPage, ApprovalRecord, ApprovalScope, Decision, Gate
from toolyard.core.errors import BadInput, CallError, ErrorCode, Forbidden, NotFound
from toolyard.core.json import JsonObject
from toolyard.core.principal import Principal, PrincipalKind, Scope
from toolyard.durable import jobs
from toolyard.store import approvals as rows
from toolyard.store import calls as call_rows
from toolyard.store import sessions as session_rows
from toolyard.store.base import Connection

LARGEST_PAGE = 200
LONGEST_REASON = 2000
_DECISIONS = {"approve": Decision.APPROVE, "reject": Decision.REJECT}


@dataclass(frozen=True, slots=True)
class _Made:
    """The approval after the attempt, and whether it was this attempt that decided it."""

    approval: ApprovalRecord
    ours: bool
    run_job: str | None


class Approvals:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._store = bench.store
        self._engine = bench.engine

    async def page(
        self,
        state: Literal["pending", "decided"] | None = None,
        *,
        limit: int = 50,
        cursor: str | None = None,
        decision: Decision | None = None,
        tool: str | None = None,
        principal: str | None = None,
        decided_by: str | None = None,
        session: str | None = None,
    ) -> ApprovalPage:
        """Pending ones oldest first, the others newest first. `principal` is who made the call.

        Raises:
            BadInput: a cursor that is not ours.
        """
        wanted = rows.Wanted(
            state=state,
            decision=decision,
            tool=tool,
            principal=principal,
            decided_by=decided_by,
            session_id=session,
        )
        size = max(1, min(limit, LARGEST_PAGE))
        items, next_cursor = await self._store.read(lambda c: rows.page(c, wanted, limit=size, cursor=cursor))
        return ApprovalPage(tuple(items), next_cursor)

    async def count_pending(self) -> int:
        return await self._store.read(rows.count_pending)

    async def get(self, approval_id: str) -> ApprovalRecord:
        """
        Raises:
            NotFound: there is no such approval.
        """
        record = await self._store.read(partial(rows.get, approval_id=approval_id))
        if record is None:
            raise NotFound(f"There is no approval {approval_id[:100]!r}.")
        return record

    async def of_call(self, call_id: str) -> list[ApprovalRecord]:
        """Every gate of a call."""
        return await self._store.read(partial(rows.of_call, call_id=call_id))

    async def decide(
        self,
        approval_id: str,
        *,
        decision: Literal["approve", "reject"],
        principal: Principal,
        reason: str | None = None,
        arguments: JsonObject | None = None,
        scope: ApprovalScope | Literal["once", "session"] = ApprovalScope.ONCE,
    ) -> ApprovalRecord:
        """Approve (perhaps with other arguments, perhaps for the session) or reject, and wake the call.

        Raises:
            NotFound: there is no such approval.
            Forbidden: this principal may not decide it.
            BadInput: something that does not belong to this decision; nothing was changed.
            CallError: `invalid_arguments`, the edited arguments do not fit the tool; `not_found`, it is gone. The call
                still waits.
            AlreadyDecided: somebody was first, or the deadline was; it carries that decision.
        """
        approval = await self.get(approval_id)
        await self._may_decide(principal, approval)
        made = _DECISIONS.get(decision)
        if made is None:
            raise BadInput(f"{decision!r} is no decision.", where="decision", suggestion="Use approve or reject.")
        if made is Decision.REJECT and (arguments is not None or scope != ApprovalScope.ONCE):
            raise BadInput(
                "A rejection has neither arguments nor a scope.",
                where="arguments" if arguments is not None else "scope",
                suggestion="Give a reason, or approve.",
            )
        if reason is not None and len(reason) > LONGEST_REASON:
            raise BadInput(f"The reason is longer than {LONGEST_REASON:,} characters.", where="reason")
        if approval.is_decided:
            raise AlreadyDecided(approval)
        edited = None if arguments is None else await self._checked(approval, arguments)
        intended = replace(
            approval,
            decision=made,
            decided_by=principal.label,
            reason=reason or None,
            edited_arguments=edited,
            scope=ApprovalScope(scope) if made is Decision.APPROVE else None,
        )
        outcome = await self._store.tx(partial(_decide, intended))
        session = (f"session:{approval.session_id}",) if approval.session_id else ()
        job = (f"job:{outcome.run_job}",) if outcome.run_job else ()
        self._engine.hint(*job, "approvals", *session)
        if not outcome.ours:
            raise AlreadyDecided(outcome.approval)
        return outcome.approval

    async def _may_decide(self, principal: Principal, approval: ApprovalRecord) -> None:
        if approval.gate is Gate.USER:
            await self._must_be_the_user(principal, approval)
            return
        if not (principal.may(Scope.APPROVE) or principal.may(Scope.MANAGE)):
            raise Forbidden(
                f"This needs the scope 'approve', which {principal.label} does not have.",
                suggestion="Ask an operator to decide, or for a key with that scope.",
            )
        if principal.kind is PrincipalKind.KEY and principal.label == approval.principal:
            raise Forbidden(
                f"{principal.label} made this call, so somebody else has to decide about it.",
                suggestion="Decide in the console, or with another key.",
            )

    async def _must_be_the_user(self, principal: Principal, approval: ApprovalRecord) -> None:
        """The gate of the session's own user, or of the caller's where there is no session; an operator cannot stand
        in."""
        session_id = approval.session_id
        if session_id is None and approval.principal == principal.label:
            return
        session = await self._store.read(lambda c: session_rows.get(c, session_id)) if session_id else None
        if session is None or session.principal != principal.label:
            raise Forbidden(
                "Only the session's own user can confirm this call.",
                suggestion="Confirm it through the session's client.",
            )

    async def _checked(self, approval: ApprovalRecord, arguments: JsonObject) -> str:
        """The edited arguments as JSON, once they fit the tool as it is now."""
        job = await self._store.read(partial(_job_of, approval.call_id))
        if job is None:
            raise CallError(ErrorCode.NOT_FOUND, f"The call {approval.call_id} is no longer on record.")
        request = Ticket.from_wire(job.input).request(arguments)
        entry = await self._bench.resolve(request)
        return self._bench.validator.check(entry.tool, arguments).decode()


def _decide(intended: ApprovalRecord, c: Connection) -> _Made:
    """Job first, then approval, then the session. Whoever decides holds the job, so no wake-up is lost."""
    call = call_rows.get(c, intended.call_id)
    run_job = None if call is None else call.run_job
    if run_job is not None:
        jobs.lock(c, run_job)
    now = c.now()
    approval = intended
    if now >= intended.deadline:
        approval = replace(intended, decision=Decision.TIMEOUT, decided_by=None, reason=None)
        approval = replace(approval, edited_arguments=None, scope=None)
    approval = replace(approval, decided_at=now)
    decision = approval.decision or Decision.TIMEOUT
    won = rows.decide(
        c,
        approval.id,
        decision,
        by=approval.decided_by,
        at=now,
        reason=approval.reason,
        edited_arguments=approval.edited_arguments,
        scope=approval.scope,
    )
    if not won:
        first = rows.get(c, approval.id) or approval
        return _Made(first, _is_ours(first, intended), run_job)
    if run_job is not None and (decision is not Decision.APPROVE or not _others_are_open(c, approval)):
        jobs.wake(c, run_job, wake_key(approval.call_id))
    if approval.scope is ApprovalScope.SESSION and run_job is not None:
        _allow(c, approval, run_job)
    session_events.decided(c, approval)
    return _Made(approval, decision is intended.decision, run_job)


def _is_ours(first: ApprovalRecord, intended: ApprovalRecord) -> bool:
    """Whether a transaction that was repeated finds its own decision."""
    return replace(first, decided_at=None) == replace(intended, decided_at=None)


def _others_are_open(c: Connection, approval: ApprovalRecord) -> bool:
    return any(not gate.is_decided for gate in rows.of_call(c, approval.call_id) if gate.id != approval.id)


def _allow(c: Connection, approval: ApprovalRecord, run_job: str) -> None:
    job = jobs.get(c, run_job)
    if job is None:
        return
    covered = holder(approval.gate, approval.session_id, approval.principal)
    definition_hash = Ticket.from_wire(job.input).definition_hash
    rows.allow(c, covered, approval.tool, definition_hash, granted_by=approval.decided_by or "")


def _job_of(call_id: str, c: Connection) -> jobs.JobRow | None:
    call = call_rows.get(c, call_id)
    return None if call is None or call.run_job is None else jobs.get(c, call.run_job)
