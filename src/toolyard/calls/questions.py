"""What running tools ask their callers: put on record, answered on any node, and carried back to who asked.

| who asks | meanwhile | after the answer |
|---|---|---|
| a legacy upstream, a Python tool (`Invocation.ask`) | its node holds it in memory | it goes on; or `interrupted` |
| a modern upstream (`NeedsInput`) | rows and a job of the call, nothing in memory | any node sends the request again |

The call stays PROCESSING and `waiting` says `question`. Keys are never used twice in a call; the first answer counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from toolyard.calls.ticket import KIND, Ticket
from toolyard.core.call import CallRequest, Progress, ProgressSink
from toolyard.core.errors import BadInput, CallError, ErrorCode, NotFound
from toolyard.core.ids import new_id
from toolyard.core.json import JsonObject
from toolyard.core.principal import Principal
from toolyard.core.question import (
    DECLINED,
    ELICITATION,
    ROOTS,
    AskedQuestion,
    Capabilities,
    LogSink,
    NeedsInput,
    Question,
    cannot_ask,
)
from toolyard.core.record import CallRecord
from toolyard.durable import jobs
from toolyard.durable.engine import Engine
from toolyard.durable.jobs import NewJob
from toolyard.providers.base import Invocation
from toolyard.store import calls as call_rows
from toolyard.store import open_calls
from toolyard.store import questions as rows
from toolyard.store.base import Connection, Store
from toolyard.store.questions import QuestionRow

ANSWER_WITHIN = 600.0
"""Seconds that a question waits for its answer."""
MOST_OF_A_CALL = 100
UNANSWERED: JsonObject = {"action": "cancel"}
_ACTIONS = ("accept", "decline", "cancel")


class Questions:
    """The callers' side: what is open, and their answers."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store = store
        self._engine = engine

    async def open(self, call_id: str, principal: Principal) -> list[AskedQuestion]:
        """What a call still waits to be told, oldest first.

        Raises:
            NotFound: there is no such call, or it is another principal's.
        """
        record = await self._theirs(call_id, principal)
        if record.state.is_final:
            return []
        return [row.asked for row in await self._rows(call_id) if row.answer is None]

    async def answer(
        self, call_id: str, answers: Mapping[str, JsonObject], principal: Principal
    ) -> list[AskedQuestion]:
        """Keep the answers that are awaited, all or none of them; those still open. Other keys are ignored.

        Raises:
            NotFound: there is no such call, or it is another principal's.
            BadInput: an answer is not of its question's shape; `where` is its key.
        """
        record = await self._theirs(call_id, principal)
        for row in await self._rows(call_id):
            if row.answer is None and row.key in answers:
                _check(row, answers[row.key])
        still_open = await self._store.tx(partial(_answer, record, answers))
        job = (f"job:{record.run_job}",) if record.run_job is not None else ()
        self._engine.hint(f"call:{call_id}", *job)
        return [row.asked for row in still_open]

    async def answer_one(self, question_id: str, answer: JsonObject, principal: Principal) -> None:
        """As `answer`, for a client that was asked one question by its id. `{"error": {...}}` says that it failed.

        Raises:
            NotFound: there is no such question, or it is of another principal's call.
            BadInput: see `answer`.
        """
        row = await self._store.read(partial(rows.get, question_id=question_id))
        if row is None:
            raise NotFound(f"There is no question {question_id[:100]!r}.")
        await self.answer(row.call_id, {row.key: answer}, principal)

    async def _rows(self, call_id: str) -> list[QuestionRow]:
        return await self._store.read(partial(rows.of_call, call_id=call_id))

    async def _theirs(self, call_id: str, principal: Principal) -> CallRecord:
        record = await self._store.read(partial(call_rows.get, call_id=call_id))
        if record is None or record.principal != principal.label:
            raise NotFound(f"There is no call {call_id!r}.")
        return record


class Asker:
    """`Invocation.ask` of one run: the tool waits here, in memory, and its answers come from any node."""

    def __init__(
        self,
        request: CallRequest,
        store: Store,
        engine: Engine,
        *,
        put_on_record: Callable[[], Awaitable[None]],
        on_ask: Callable[[], None],
        pause: Pause,
    ) -> None:
        """`put_on_record` sees that the call has its row; `on_ask` is told once a round is on record. `pause` stops the
        call's clock while it is out."""
        self._put_on_record = put_on_record
        self._request = request
        self._store = store
        self._engine = engine
        self._on_ask = on_ask
        self._pause = pause

    async def __call__(self, questions: Sequence[Question]) -> Mapping[str, JsonObject]:
        """
        Raises:
            CallError: `upstream`, the caller cannot be asked this; `timeout`, nobody answered.
        """
        known = {question.key: answer for question in questions if (answer := _without_asking(question, self._may_ask))}
        wanted = [question for question in questions if question.key not in known]
        if not wanted:
            return known
        ids = new_ids(wanted)
        with self._pause:
            await self._put_on_record()
            await self._store.tx(partial(ask, self._request.call_id, wanted, ids, held=True, state=None))
            self._engine.hint(f"call:{self._request.call_id}")
            self._on_ask()
            return known | await self._answers(frozenset(ids))

    @property
    def _may_ask(self) -> Capabilities:
        return self._request.may_ask

    async def _answers(self, ids: frozenset[str]) -> dict[str, JsonObject]:
        call_id = self._request.call_id
        async with self._engine.watch(f"call:{call_id}") as waiter:
            while True:
                now, round_ = await self._store.read(partial(_round, call_id, ids))
                if all(row.answer is not None for row in round_):
                    return answers_of(round_)
                deadline = min(row.deadline for row in round_)
                if deadline <= now:
                    await self._store.tx(partial(close, call_id, ids))
                    return answers_of(round_)
                await waiter.wait(deadline - now)


async def _is_on_record() -> None:
    """A call that its job runs always is."""


class Interview:
    """What one run of a call has besides its provider: a caller that can be asked, and may listen from another request
    than the one that began the call."""

    def __init__(
        self,
        request: CallRequest,
        store: Store,
        engine: Engine,
        *,
        answers: Mapping[str, JsonObject] | None = None,
        upstream_state: str | None = None,
        put_on_record: Callable[[], Awaitable[None]] = _is_on_record,
    ) -> None:
        self.asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put_on_record = put_on_record
        self._request = request
        self._store = store
        self._engine = engine
        self._answers = answers or {}
        self._upstream_state = upstream_state
        self._progress = request.progress
        self._log = request.log

    @property
    def request(self) -> CallRequest:
        """The call's request, whose reports go to whoever listens."""
        return replace(self._request, progress=self._report, log=self._tell)

    def listen(self, progress: ProgressSink | None, log: LogSink | None) -> None:
        self._progress, self._log = progress, log

    def invocation(self, invocation: Invocation, timer: asyncio.Timeout) -> Invocation:
        asker = Asker(
            self._request,
            self._store,
            self._engine,
            put_on_record=self._put_on_record,
            on_ask=self._asks,
            pause=Pause(timer),
        )
        return replace(
            invocation,
            may_ask=self._request.may_ask,
            ask=asker,
            answers=self._answers,
            upstream_state=self._upstream_state,
        )

    def _asks(self) -> None:
        if not self.asked.done():
            self.asked.set_result(None)

    def _report(self, progress: Progress) -> None:
        if self._progress is not None:
            self._progress(progress)

    def _tell(self, message: JsonObject) -> None:
        if self._log is not None:
            self._log(message)


class Pause:
    """A time limit that stands still within `with`. Rounds may overlap."""

    def __init__(self, timer: asyncio.Timeout) -> None:
        self._timer = timer
        self._out = 0
        self._left: float | None = None

    def __enter__(self) -> None:
        self._out += 1
        when = self._timer.when()
        if self._out == 1 and when is not None:
            self._left = when - asyncio.get_running_loop().time()
            self._timer.reschedule(None)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._out -= 1
        over = self._timer.expired() or kind is asyncio.CancelledError  # the call has ended, or is about to
        if self._out == 0 and self._left is not None and not over:
            self._timer.reschedule(asyncio.get_running_loop().time() + max(self._left, 0.0))


def new_ids(questions: Sequence[Question]) -> list[str]:
    """Made before the transaction, so that it can run again."""
    return [new_id("ques") for _ in questions]


def ask(
    call_id: str,
    questions: Sequence[Question],
    ids: Sequence[str],
    c: Connection,
    *,
    held: bool,
    state: str | None,
) -> None:
    """Put one round on record. Safe to run again.

    Raises:
        CallError: the call asked too much, or has ended.
    """
    earlier = rows.of_call(c, call_id)
    if any(row.id in ids for row in earlier):
        return
    if len(earlier) + len(questions) > MOST_OF_A_CALL:
        raise CallError(ErrorCode.UPSTREAM, f"The tool asked more than {MOST_OF_A_CALL} questions.")
    taken = {row.key for row in earlier}
    number = 1 + max((row.round for row in earlier), default=0)
    now = c.now()
    asked: list[QuestionRow] = []
    for question_id, question in zip(ids, questions, strict=True):
        key = _unused(question.key, taken)
        taken.add(key)
        asked.append(
            QuestionRow(
                id=question_id,
                call_id=call_id,
                round=number,
                key=key,
                upstream_key=question.key,
                method=question.method,
                params=question.params,
                held=held,
                upstream_state=state,
                created=now,
                deadline=now + ANSWER_WITHIN,
            )
        )
    rows.insert(c, asked)
    rows.waits(c, call_id)


def latest_round(c: Connection, call_id: str) -> list[QuestionRow]:
    """The questions that were asked last."""
    found = rows.of_call(c, call_id)
    last = max((row.round for row in found), default=0)
    return [row for row in found if row.round == last]


def close(call_id: str, ids: frozenset[str], c: Connection) -> None:
    """Nobody answered in time: from now on nobody can."""
    now = c.now()
    for question_id in ids:
        rows.answer(c, question_id, UNANSWERED, at=now)
    rows.goes_on(c, call_id)


def leave_to_job(
    ticket: Ticket, job_id: str, needs: NeedsInput, ids: Sequence[str], c: Connection, *, session_id: str | None
) -> bool:
    """From now on the direct call is its job's, which waits for the answers. False: it had ended. Safe to run again."""
    record = open_calls.lock(c, ticket.call_id)
    if record is None or record.state.is_final:
        return False
    waiting = NewJob(
        job_id,
        KIND,
        ticket.to_wire(),
        session_id=session_id,
        state="waiting",
        wake_at=c.now() + ANSWER_WITHIN,
        wake_key=wake_key(ticket.call_id),
    )
    jobs.insert(c, waiting)
    ask(ticket.call_id, needs.questions, ids, c, held=False, state=needs.state)
    return rows.hand_to_job(c, ticket.call_id, job_id)


def wake_key(call_id: str) -> str:
    """What the job of a call waits for while it asks."""
    return f"question:{call_id}"


def answers_of(round_: Sequence[QuestionRow]) -> dict[str, JsonObject]:
    """What the asker is told, by the keys it gave. A person may leave a form open, or fail to be shown it.

    Raises:
        CallError: `timeout` or `upstream`: the client did not answer anything else than a form, or with an error.
    """
    return {row.upstream_key: _told(row) for row in round_}


def _told(row: QuestionRow) -> JsonObject:
    failed = row.answer is not None and isinstance(row.answer.get("error"), Mapping)
    if row.answer is not None and not failed and row.answer != UNANSWERED:
        return row.answer
    if row.method == ELICITATION:
        return UNANSWERED
    if failed:
        error = cast("JsonObject", cast("JsonObject", row.answer)["error"])
        raise CallError(
            ErrorCode.UPSTREAM, f"The tool asked its caller ({row.method}), which failed: {error.get('message')}"
        )
    raise CallError(
        ErrorCode.TIMEOUT,
        f"The tool asked its caller ({row.method}), and no answer came within {row.deadline - row.created:g} s.",
        suggestion="Call it again when the client can answer.",
    )


def must_be_askable(questions: Sequence[Question], may_ask: Capabilities) -> None:
    """
    Raises:
        CallError: `upstream`, the caller's client cannot answer one of them.
    """
    for question in questions:
        if question.needs not in may_ask:
            raise cannot_ask(question)


def _without_asking(question: Question, may_ask: Capabilities) -> JsonObject | None:
    """The answer to what may not be asked: a form is declined, so that the tool can do without.

    Raises:
        CallError: it is not a form.
    """
    if question.needs in may_ask:
        return None
    if question.method == ELICITATION:
        return DECLINED
    raise cannot_ask(question)


def _unused(key: str, taken: set[str]) -> str:
    free, n = key, 2
    while free in taken:
        free, n = f"{key}-{n}", n + 1
    return free


def _round(call_id: str, ids: frozenset[str], c: Connection) -> tuple[float, list[QuestionRow]]:
    return c.now(), [row for row in rows.of_call(c, call_id) if row.id in ids]


def _answer(record: CallRecord, answers: Mapping[str, JsonObject], c: Connection) -> list[QuestionRow]:
    if record.run_job is not None:
        jobs.lock(c, record.run_job)
    open_calls.lock(c, record.id)
    now = c.now()
    still_open: list[QuestionRow] = []
    for row in rows.of_call(c, record.id):
        if row.answer is not None:
            continue
        if row.key not in answers:
            still_open.append(row)
        else:
            rows.answer(c, row.id, answers[row.key], at=now)
    if not still_open:
        rows.goes_on(c, record.id)
        if record.run_job is not None:
            jobs.wake(c, record.run_job, wake_key(record.id))
    return still_open


def _check(row: QuestionRow, answer: object) -> None:
    """
    Raises:
        BadInput: see `Questions.answer`.
    """
    if not isinstance(answer, Mapping):
        raise BadInput(f"The answer to {row.key!r} must be an object.", where=row.key)
    if isinstance(answer.get("error"), Mapping):  # pyright: ignore[reportUnknownMemberType]
        return
    if row.method == ELICITATION:
        if answer.get("action") not in _ACTIONS:  # pyright: ignore[reportUnknownMemberType]
            raise BadInput(
                f"The answer to {row.key!r} has no action.", where=row.key, suggestion=f"It is one of {_ACTIONS}."
            )
    elif row.method == ROOTS and not isinstance(answer.get("roots"), Sequence):  # pyright: ignore[reportUnknownMemberType]
        raise BadInput(f"The answer to {row.key!r} has no list of roots.", where=row.key)
