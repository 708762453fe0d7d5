"""Step 4: does a human have to decide first? No policy asks yet, so the answer is always yes, with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from toolyard.catalog import Entry
from toolyard.core.call import CallRequest


@dataclass(frozen=True, slots=True)
class Approval:
    approved: bool
    reason: str


_NO_POLICY_ASKS = Approval(approved=True, reason="no policy asks for a decision")


def approve(request: CallRequest, entry: Entry) -> Approval:
    return _NO_POLICY_ASKS
