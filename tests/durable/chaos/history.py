"""What the clients asked for and what they were told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Phase(StrEnum):
    ASKED = "asked"
    """No answer was recorded: the client itself was stopped."""
    OK = "ok"
    REFUSED = "refused"
    """An answer that says no: nothing happened by this operation."""
    UNKNOWN = "unknown"
    """The connection broke, or the answer said that it cannot know."""


@dataclass(slots=True)
class Operation:
    """One thing a client asked for, over all its attempts. `given` is what it sent, `seen` what it was told."""

    kind: str
    label: str
    given: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    phase: Phase = Phase.ASKED
    asked: float = 0.0
    answered: float | None = None

    def ok(self, **seen: Any) -> None:
        self._end(Phase.OK, seen)

    def refused(self, **seen: Any) -> None:
        self._end(Phase.REFUSED, seen)

    def unknown(self, **seen: Any) -> None:
        self._end(Phase.UNKNOWN, seen)

    def _end(self, phase: Phase, seen: dict[str, Any]) -> None:
        self.phase = phase
        self.seen.update(seen)
        self.answered = time.time()


class History:
    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def ask(self, kind: str, label: str, **given: Any) -> Operation:
        operation = Operation(kind, label, given, asked=time.time())
        self.operations.append(operation)
        return operation

    def of(self, kind: str, phase: Phase | None = None) -> Iterator[Operation]:
        return (o for o in self.operations if o.kind == kind and (phase is None or o.phase is phase))
