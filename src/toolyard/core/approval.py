"""An approval: a human decision that a call waits for, and the policies that ask for one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from toolyard.core.errors import Conflict
from toolyard.core.json import JsonValue
from toolyard.core.question import AskedQuestion

AutoApprove: TypeAlias = bool | Literal["read_only"]
"""True: nobody is asked. False: each call is asked for. `read_only`: only calls that may change something are."""

DEFAULT_APPROVAL_TIMEOUT = 300.0
"""Seconds."""


class Gate(StrEnum):
    """Who decides. One gate never stands in for the other; a call may have to pass both."""

    OPERATOR = "operator"
    """Somebody who runs this yard and may approve."""
    USER = "user"
    """The session's own user, for tools whose name begins with `pre_`."""


class Decision(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    TIMEOUT = "timeout"
    """Nobody decided before the deadline."""
    CANCELLED = "cancelled"
    """The call was cancelled while it waited."""


class ApprovalScope(StrEnum):
    ONCE = "once"
    SESSION = "session"
    """Also for later calls of the same tool, unchanged, in the same session (without one: by the same principal)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """One gate that one call has to pass. Times are epoch seconds by the database's clock; arguments are JSON text."""

    id: str
    call_id: str
    gate: Gate
    tool: str
    arguments: str
    principal: str
    """Who made the call, as the audit log names them."""
    server: str | None
    session_id: str | None
    why: str
    """Which policy asked."""
    created: float
    deadline: float
    decision: Decision | None = None
    decided_by: str | None = None
    decided_at: float | None = None
    reason: str | None = None
    edited_arguments: str | None = None
    scope: ApprovalScope | None = None

    @property
    def is_decided(self) -> bool:
        return self.decision is not None


@dataclass(frozen=True, slots=True)
class ApprovalPage:
    """Open ones first come first, decided ones newest first. `next_cursor` is None on the last page."""

    items: tuple[ApprovalRecord, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """What an open call waits for. `id` names the approval, the client's request, or the call that asks; `deadline` is
    epoch seconds."""

    kind: Literal["approval", "client", "question"]
    id: str
    deadline: float | None
    url: str | None = None
    """Where a person can decide."""
    questions: tuple[AskedQuestion, ...] = ()
    """All open ones, for kind `question`."""

    def to_wire(self) -> dict[str, JsonValue]:
        return {"kind": self.kind, "id": self.id, "deadline": self.deadline, "url": self.url}


class AlreadyDecided(Conflict):
    """Somebody was first, or the deadline was. `approval` carries that decision."""

    def __init__(self, approval: ApprovalRecord) -> None:
        how = {
            Decision.APPROVE: "approved",
            Decision.REJECT: "rejected",
            Decision.TIMEOUT: "left undecided until its deadline",
            Decision.CANCELLED: "cancelled",
        }
        decided = how[approval.decision] if approval.decision is not None else "decided"
        by = f" by {approval.decided_by}" if approval.decided_by else ""
        super().__init__(f"The approval {approval.id} was already {decided}{by}.", suggestion="Nothing was changed.")
        self.approval = approval
