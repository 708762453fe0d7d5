"""Rows of `questions`: what running tools asked their callers, and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import orjson

from toolyard.core.json import JsonObject, dumps
from toolyard.core.question import AskedQuestion
from toolyard.store.base import Connection, Row

_COLUMNS = (
    "id, call_id, round, key, upstream_key, method, params, held, upstream_state, created, deadline, answer, "
    "answered_at, taken"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """`key` is unique within the call and what its caller sees; `upstream_key` is what the asker called it."""

    id: str
    call_id: str
    round: int
    key: str
    upstream_key: str
    method: str
    params: JsonObject
    held: bool
    upstream_state: str | None
    created: float
    deadline: float
    answer: JsonObject | None = None
    answered_at: float | None = None
    taken: bool = False
    """A run went on with the answer."""

    @property
    def asked(self) -> AskedQuestion:
        return AskedQuestion(
            id=self.id,
            call_id=self.call_id,
            key=self.key,
            method=self.method,
            params=self.params,
            created=self.created,
            deadline=self.deadline,
            answered=self.answer is not None,
        )


def insert(c: Connection, rows: Sequence[QuestionRow]) -> None:
    """Safe to run again."""
    for row in rows:
        c.execute(
            f"INSERT INTO questions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, 0) "  # noqa: S608
            "ON CONFLICT DO NOTHING",
            row.id,
            row.call_id,
            row.round,
            row.key,
            row.upstream_key,
            row.method,
            dumps(row.params).decode(),
            int(row.held),
            row.upstream_state,
            row.created,
            row.deadline,
        )


def of_call(c: Connection, call_id: str) -> list[QuestionRow]:
    """Every question of a call, in the order in which they were asked."""
    rows = c.execute(
        f"SELECT {_COLUMNS} FROM questions WHERE call_id = ? ORDER BY round, created, key",  # noqa: S608
        call_id,
    ).fetchall()
    return [_question(row) for row in rows]


def get(c: Connection, question_id: str) -> QuestionRow | None:
    row = c.execute(f"SELECT {_COLUMNS} FROM questions WHERE id = ?", question_id).fetchone()  # noqa: S608
    return None if row is None else _question(row)


def answer(c: Connection, question_id: str, answer: JsonObject, *, at: float) -> bool:
    """The first answer counts; False for every other."""
    return (
        c.execute(
            "UPDATE questions SET answer = ?, answered_at = ? WHERE id = ? AND answer IS NULL",
            dumps(answer).decode(),
            at,
            question_id,
        ).rowcount
        == 1
    )


def take(c: Connection, call_id: str) -> None:
    """A run goes on with what was answered; what was not asked again is nobody's business any more."""
    c.execute("UPDATE questions SET taken = 1 WHERE call_id = ? AND answer IS NOT NULL", call_id)


def waits(c: Connection, call_id: str) -> None:
    """The running call waits for its caller's answers."""
    c.execute("UPDATE calls SET waiting = 'question' WHERE id = ? AND state = 'PROCESSING'", call_id)


def goes_on(c: Connection, call_id: str) -> None:
    c.execute("UPDATE calls SET waiting = NULL WHERE id = ? AND state = 'PROCESSING' AND waiting = 'question'", call_id)


def hand_to_job(c: Connection, call_id: str, job_id: str) -> bool:
    """A call that ran directly goes on as a job's; False when it ended meanwhile."""
    return (
        c.execute(
            "UPDATE calls SET run_job = ?, epoch = 0, waiting = 'question' WHERE id = ? AND state = 'PROCESSING' "
            "AND (run_job IS NULL OR run_job = ?)",
            job_id,
            call_id,
            job_id,
        ).rowcount
        == 1
    )


def _question(row: Row) -> QuestionRow:
    values = list(row)
    answer = cast("str | None", values[11])
    return QuestionRow(
        id=str(values[0]),
        call_id=str(values[1]),
        round=cast("int", values[2]),
        key=str(values[3]),
        upstream_key=str(values[4]),
        method=str(values[5]),
        params=cast("JsonObject", orjson.loads(cast("str", values[6]))),
        held=bool(values[7]),
        upstream_state=cast("str | None", values[8]),
        created=cast("float", values[9]),
        deadline=cast("float", values[10]),
        answer=None if answer is None else cast("JsonObject", orjson.loads(answer)),
        answered_at=cast("float | None", values[12]),
        taken=bool(values[13]),
    )
