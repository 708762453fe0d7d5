"""Step 3: may this principal do this to this tool? Plain, typed, default deny; every answer has its reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from toolyard.catalog import Entry
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.names import ToolClass
from toolyard.core.principal import Principal, Scope


class Effect(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Decision:
    effect: Effect
    reason: str


_HOLDS_CALL = Decision(Effect.ALLOW, "the caller holds the scope 'call'")


def decide(principal: Principal, entry: Entry) -> Decision:
    """Pure. No rule that allows means deny."""
    if not principal.may(Scope.CALL):
        return Decision(Effect.DENY, f"{principal.label} lacks the scope 'call'")
    if not entry.settings.enabled:
        return Decision(Effect.DENY, f"{entry.id} was switched off by an operator")
    if entry.tool.tool_class is ToolClass.PRIVATE:
        return Decision(
            Effect.DENY,
            "its name begins with priv_, so it needs a one-time code (TOTP), and this version cannot check one yet",
        )
    return _HOLDS_CALL


def authorize(principal: Principal, entry: Entry) -> Decision:
    """
    Raises:
        CallError: `denied`, with the reason.
    """
    decision = decide(principal, entry)
    if decision.effect is Effect.DENY:
        raise CallError(
            ErrorCode.DENIED,
            f"{entry.id} may not be called: {decision.reason}.",
            suggestion="Ask an operator for access.",
        )
    return decision
