"""Rows of `approvals` and `allowances`: what waits for a human, what was decided, and what need not be asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from toolyard.core.approval import ApprovalRecord, ApprovalScope, Decision, Gate
from toolyard.store.base import Connection, Row, SqlValue
from toolyard.store.cursors import read_cursor, write_cursor

_COLUMNS = (
    "id, call_id, gate, tool, arguments, principal, server, session_id, why, created, deadline, decision, decided_by, "
    "decided_at, reason, edited_arguments, scope"
)


def insert(c: Connection, record: ApprovalRecord) -> bool:
    """An undecided gate of a call; False when the call has this gate already."""
    return (
        c.execute(
            "INSERT INTO approvals (id, call_id, gate, tool, arguments, principal, server, session_id, why, created, "
            "deadline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            record.id,
            record.call_id,
            record.gate.value,
            record.tool,
            record.arguments,
            record.principal,
            record.server,
            record.session_id,
            record.why,
            record.created,
            record.deadline,
        ).rowcount
        == 1
    )


def get(c: Connection, approval_id: str) -> ApprovalRecord | None:
    row = c.execute(f"SELECT {_COLUMNS} FROM approvals WHERE id = ?", approval_id).fetchone()  # noqa: S608
    return _record(row) if row else None


def of_call(c: Connection, call_id: str) -> list[ApprovalRecord]:
    """Every gate of a call."""
    rows = c.execute(
        f"SELECT {_COLUMNS} FROM approvals WHERE call_id = ? ORDER BY gate",  # noqa: S608
        call_id,
    ).fetchall()
    return [_record(row) for row in rows]


def decide(
    c: Connection,
    approval_id: str,
    decision: Decision,
    *,
    by: str | None,
    at: float,
    reason: str | None = None,
    edited_arguments: str | None = None,
    scope: ApprovalScope | None = None,
) -> bool:
    """The first decision wins; False when there was one."""
    return (
        c.execute(
            "UPDATE approvals SET decision = ?, decided_by = ?, decided_at = ?, reason = ?, edited_arguments = ?, "
            "scope = ? WHERE id = ? AND decision IS NULL",
            decision.value,
            by,
            at,
            reason,
            edited_arguments,
            scope.value if scope else None,
            approval_id,
        ).rowcount
        == 1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which approvals; None means any. `principal` is who made the call."""

    state: Literal["pending", "decided"] | None = None
    decision: Decision | None = None
    tool: str | None = None
    principal: str | None = None
    decided_by: str | None = None
    session_id: str | None = None


def page(
    c: Connection, wanted: Wanted, *, limit: int, cursor: str | None = None
) -> tuple[list[ApprovalRecord], str | None]:
    """Pending ones oldest first, the others newest first.

    Raises:
        BadInput: the cursor is not one of ours.
    """
    oldest_first = wanted.state == "pending"
    where: list[str] = []
    values: list[SqlValue] = []
    if wanted.state is not None:
        where.append("decision IS NULL" if wanted.state == "pending" else "decision IS NOT NULL")
    for column, value in (
        ("decision", wanted.decision.value if wanted.decision else None),
        ("tool", wanted.tool),
        ("principal", wanted.principal),
        ("decided_by", wanted.decided_by),
        ("session_id", wanted.session_id),
    ):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if cursor is not None:
        created, last = read_cursor(cursor)
        beyond = ">" if oldest_first else "<"
        where.append(f"(created {beyond} ? OR (created = ? AND id {beyond} ?))")
        values += [created, created, last]
    clause = f"WHERE {' AND '.join(where)}" if where else ""
    order = "ASC" if oldest_first else "DESC"
    rows = c.execute(
        f"SELECT {_COLUMNS} FROM approvals {clause} ORDER BY created {order}, id {order} LIMIT ?",  # noqa: S608
        *values,
        limit + 1,
    ).fetchall()
    records = [_record(row) for row in rows[:limit]]
    return records, write_cursor(records[-1].created, records[-1].id) if len(rows) > limit else None


def changed(c: Connection, since: float, *, at_most: int) -> list[ApprovalRecord]:
    """Those asked for or decided after `since` (epoch seconds by the database's clock), oldest change first."""
    rows = c.execute(
        f"SELECT {_COLUMNS} FROM (SELECT * FROM approvals WHERE created > ? "  # noqa: S608
        "UNION SELECT * FROM approvals WHERE decided_at > ?) AS news "
        "ORDER BY coalesce(decided_at, created), id LIMIT ?",
        since,
        since,
        at_most,
    ).fetchall()
    return [_record(row) for row in rows]


def count_pending(c: Connection) -> int:
    row = c.execute("SELECT count(*) FROM approvals WHERE decision IS NULL").fetchone()
    return cast("int", row[0]) if row else 0


def allow(c: Connection, holder: str, tool: str, definition_hash: str, *, granted_by: str) -> None:
    """Do not ask `holder` again for this tool as it is defined now."""
    c.execute(
        "INSERT INTO allowances (holder, tool, definition_hash, granted_by, at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (holder, tool) DO UPDATE SET definition_hash = excluded.definition_hash, "
        "granted_by = excluded.granted_by, at = excluded.at",
        holder,
        tool,
        definition_hash,
        granted_by,
        c.now(),
    )


def allowed_by(c: Connection, holder: str, tool: str, definition_hash: str) -> str | None:
    """Who allowed it, if anybody did."""
    row = c.execute(
        "SELECT granted_by FROM allowances WHERE holder = ? AND tool = ? AND definition_hash = ?",
        holder,
        tool,
        definition_hash,
    ).fetchone()
    return str(row[0]) if row else None


def forget_allowances(c: Connection, holders: Sequence[str]) -> None:
    for holder in holders:
        c.execute("DELETE FROM allowances WHERE holder = ?", holder)


def _record(row: Row) -> ApprovalRecord:
    text = cast("Sequence[str | None]", row)
    numbers = cast("Sequence[float | None]", row)
    return ApprovalRecord(
        id=str(row[0]),
        call_id=str(row[1]),
        gate=Gate(str(row[2])),
        tool=str(row[3]),
        arguments=str(row[4] or "{}"),
        principal=str(row[5]),
        server=text[6],
        session_id=text[7],
        why=str(row[8]),
        created=numbers[9] or 0.0,
        deadline=numbers[10] or 0.0,
        decision=Decision(str(row[11])) if row[11] else None,
        decided_by=text[12],
        decided_at=numbers[13],
        reason=text[14],
        edited_arguments=text[15],
        scope=ApprovalScope(str(row[16])) if row[16] else None,
    )
