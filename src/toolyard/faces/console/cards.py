"""What a request for approval looks like to people: everything that its card shows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from toolyard.catalog import Entry
from toolyard.core.approval import ApprovalRecord, Decision, Gate
from toolyard.core.call import Origin
from toolyard.core.errors import NotFound
from toolyard.core.json import JsonObject
from toolyard.core.principal import Scope
from toolyard.core.tool import ActionClass
from toolyard.faces.console.arguments import (
    ArgumentRow,
    Change,
    argument_rows,
    changes,
    read_arguments,
    request_line,
)
from toolyard.faces.console.visit import Visit

_SOON = 0.2
"""Of the time to decide: what is left is shown in another colour from here on."""


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """`share` is what is left of the whole, in percent."""

    seconds: float
    share: int
    soon: bool


@dataclass(frozen=True, slots=True)
class Card:
    record: ApprovalRecord
    entry: Entry | None
    """None when the tool is gone."""
    origin: Origin | None
    arguments: JsonObject
    rows: list[ArgumentRow]
    rows_left_out: int
    edits: list[Change]
    request: str
    left: TimeLeft
    may_decide: bool

    @property
    def destructive(self) -> bool:
        return self.entry is not None and self.entry.tool.action_class is ActionClass.DESTRUCTIVE

    @property
    def verdict(self) -> Literal["", "approved", "rejected", "expired", "cancelled"]:
        match self.record.decision:
            case None:
                return ""
            case Decision.APPROVE:
                return "approved"
            case Decision.REJECT:
                return "rejected"
            case Decision.TIMEOUT:
                return "expired"
            case Decision.CANCELLED:
                return "cancelled"


async def card_of(visit: Visit, record: ApprovalRecord) -> Card:
    entry = visit.app.catalog.snapshot.get(record.tool)
    arguments = read_arguments(record.arguments)
    schema: JsonObject = entry.tool.input_schema.document() if entry is not None else {}
    rows, left_out = argument_rows(arguments, schema)
    edited = record.edited_arguments
    return Card(
        record=record,
        entry=entry,
        origin=await _origin(visit, record.call_id),
        arguments=arguments,
        rows=rows,
        rows_left_out=left_out,
        edits=changes(arguments, read_arguments(edited)) if edited is not None else [],
        request=request_line(entry.tool, arguments) if entry is not None else "",
        left=_time_left(record, visit.app.clock.now()),
        may_decide=_may_decide(visit, record),
    )


async def cards_of(visit: Visit, records: Iterable[ApprovalRecord]) -> list[Card]:
    return list(await asyncio.gather(*(card_of(visit, record) for record in records)))


async def _origin(visit: Visit, call_id: str) -> Origin | None:
    try:
        return (await visit.app.calls.get(call_id)).origin
    except NotFound:  # its record was deleted with old ones
        return None


def _time_left(record: ApprovalRecord, now: float) -> TimeLeft:
    left, whole = max(0.0, record.deadline - now), max(1.0, record.deadline - record.created)
    return TimeLeft(left, min(100, round(100 * left / whole)), soon=left < _SOON * whole)


def _may_decide(visit: Visit, record: ApprovalRecord) -> bool:
    """Whether to offer it; whether it counts is the decision's own check."""
    if record.gate is Gate.USER:
        return record.principal == visit.principal.label
    return visit.principal.may(Scope.APPROVE) or visit.principal.may(Scope.MANAGE)
