"""Which approval policy holds for a tool, in words."""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolyard.calls.approve import PolicyBook, operator_policy
from toolyard.catalog import Entry
from toolyard.core.approval import DEFAULT_APPROVAL_TIMEOUT


@dataclass(frozen=True, slots=True)
class ShownPolicy:
    """`inherited` and `timeout` (seconds) are what would hold without the tool's own settings."""

    asks: bool
    reason: str
    inherited: str
    timeout: float


def policy_of(book: PolicyBook, entry: Entry) -> ShownPolicy:
    """Whatever the server: one that asks does so for tools about which nothing nearer decides."""
    asks, reason = operator_policy(book, entry, None)
    _, inherited = operator_policy(book, replace(entry, settings=replace(entry.settings, approval=None)), None)
    provider = book.providers(entry.tool.namespace)
    return ShownPolicy(asks, reason, inherited, provider.approval_timeout if provider else DEFAULT_APPROVAL_TIMEOUT)
