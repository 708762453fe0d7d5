"""What is left when every node is dead: the database's rows, their moves, and the effects outside it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.durable.chaos.cluster import Blow
from tests.durable.chaos.effects import Effect
from tests.durable.chaos.effects import read as read_effects
from toolyard.store import Connection, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    id: str
    tool: str
    state: str
    code: str | None = None
    key: str | None = None
    """The idempotency key as the client gave it."""
    execution: str = "node"
    owner: str | None = None
    session: str | None = None
    arguments: str | None = None
    result: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    id: str
    kind: str
    state: str
    epoch: int = 1
    takeovers: int = 0
    input: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[str] = ()
    """The outputs on record, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    id: str
    call: str
    decision: str | None
    by: str | None = None
    reason: str | None = None
    edited: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    seq: int
    kind: str
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Move:
    """One change of one row, as its trigger saw it; `old` None is the row's beginning."""

    what: str
    id: str
    old: str | None
    new: str | None
    epoch: int | None = None


@dataclass(slots=True, kw_only=True)
class Evidence:
    calls: dict[str, Call] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    approvals: dict[str, Approval] = field(default_factory=dict)
    sessions: dict[str, int] = field(default_factory=dict)
    """The last number given to an event, by session."""
    events: dict[str, list[Event]] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    blows: list[Blow] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    """What SQLite's own check of the file found, and nodes that ended by themselves."""

    def effects_of(self, label: str) -> list[Effect]:
        return [effect for effect in self.effects if effect.label == label]

    @property
    def struck(self) -> set[str]:
        """Nodes that were killed or paused."""
        return {blow.node for blow in self.blows if blow.node}


async def gather(database: str, folder: Path, blows: Sequence[Blow], deaths: Sequence[str] = ()) -> Evidence:
    store = open_store(database)
    await store.start()
    try:
        evidence = await store.read(_read)
        if store.dialect == "sqlite":
            found = await store.read(lambda c: c.execute("PRAGMA integrity_check").fetchall())
            evidence.damage += [str(row[0]) for row in found if row[0] != "ok"]
    finally:
        await store.close()
    evidence.effects = read_effects(folder / "effects.jsonl")
    evidence.blows = list(blows)
    evidence.damage += deaths
    return evidence


_OPEN = (
    "SELECT count(*) FROM calls WHERE state IN ('PENDING', 'PROCESSING')",
    "SELECT count(*) FROM jobs WHERE state IN ('ready', 'running', 'waiting')",
)


async def count_open(database: str) -> int:
    """Calls and jobs that have not ended, as nodes are running; past our own store, whose file belongs to a node."""
    return await asyncio.to_thread(_count_open, database)


def _count_open(database: str) -> int:
    if "://" in database:
        with psycopg.connect(database) as connection:
            rows = [connection.execute(sql.encode()).fetchone() for sql in _OPEN]
    else:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5)) as connection:
            rows = [connection.execute(sql).fetchone() for sql in _OPEN]
    return sum(int(row[0]) for row in rows if row)


def _read(c: Connection) -> Evidence:
    evidence = Evidence()
    for row in c.execute(
        "SELECT id, tool, state, error_code, idempotency_key, execution, owner, session_id, arguments, result "
        "FROM calls"
    ).fetchall():
        call_id, tool, state, code, key, execution, owner, session, arguments, result = map(_text, row)
        evidence.calls[str(call_id)] = Call(
            id=str(call_id), tool=str(tool), state=str(state), code=code, key=key.partition("|")[2] if key else None,
            execution=str(execution), owner=owner, session=session, arguments=arguments, result=result,
        )  # fmt: skip
    steps: dict[str, list[str]] = {}
    for job, output in c.execute("SELECT job_id, output FROM steps ORDER BY job_id, n").fetchall():
        steps.setdefault(str(job), []).append(str(output))
    for row in c.execute("SELECT id, kind, state, epoch, takeovers, input FROM jobs").fetchall():
        job = str(row[0])
        evidence.jobs[job] = Job(
            id=job, kind=str(row[1]), state=str(row[2]), epoch=int(row[3] or 0), takeovers=int(row[4] or 0),
            input=json.loads(str(row[5])), steps=steps.get(job, []),
        )  # fmt: skip
    for row in c.execute(
        "SELECT id, call_id, decision, decided_by, reason, edited_arguments FROM approvals"
    ).fetchall():
        approval, call, decision, by, reason, edited = map(_text, row)
        evidence.approvals[str(approval)] = Approval(
            id=str(approval), call=str(call), decision=decision, by=by, reason=reason,
            edited=json.loads(edited) if edited else None,
        )  # fmt: skip
    for session, seq in c.execute("SELECT id, seq FROM sessions").fetchall():
        evidence.sessions[str(session)] = int(seq or 0)
    for session, seq, kind, type_, data in c.execute(
        "SELECT session_id, seq, kind, type, data FROM events ORDER BY session_id, seq"
    ).fetchall():
        event = Event(seq=int(seq or 0), kind=str(kind), type=str(type_), data=json.loads(str(data)))
        evidence.events.setdefault(str(session), []).append(event)
    for what, row_id, old, new, epoch in c.execute(
        "SELECT what, id, old, new, epoch FROM chaos_moves ORDER BY n"
    ).fetchall():
        evidence.moves.append(
            Move(str(what), str(row_id), _text(old), _text(new), None if epoch is None else int(epoch))
        )
    return evidence


def _text(value: object) -> str | None:
    return None if value is None else str(value)
