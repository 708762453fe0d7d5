"""The path itself: `invoke` reads as the list of its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import structlog

from toolyard.calls import questions
from toolyard.calls.approve import PolicyBook, approve
from toolyard.calls.authorize import authorize
from toolyard.calls.cancelling import cancel_on_record, must_be_theirs
from toolyard.calls.execute import Providers, Running, execute
from toolyard.calls.observing import Observer, Observers
from toolyard.calls.orphans import Orphans
from toolyard.calls.outcomes import Outcomes
from toolyard.calls.parking import PICK_UP_TIMEOUT, NewCall
from toolyard.calls.questions import Interview
from toolyard.calls.record import Ending, Opening, Recorder, must_be_the_same
from toolyard.calls.resolve import in_session, resolve
from toolyard.calls.sessions import Sessions
from toolyard.calls.ticket import KIND, Ticket
from toolyard.calls.validate import encode
from toolyard.calls.waiting import WaitingCalls
from toolyard.calls.workbench import Workbench
from toolyard.catalog import Catalog, Entry, Server
from toolyard.core.approval import Waiting
from toolyard.core.call import CallFailure, CallOutcome, CallRequest, CallState, ProgressSink, ToolResult
from toolyard.core.clock import Clock, SystemClock
from toolyard.core.errors import CallError, Conflict, ErrorCode, NotFound, StoreUnavailable
from toolyard.core.ids import new_id
from toolyard.core.principal import Principal
from toolyard.core.question import LogSink, NeedsInput
from toolyard.core.record import CallRecord
from toolyard.core.tool import ActionClass, Kind
from toolyard.durable.engine import Engine
from toolyard.store import open_calls
from toolyard.store.base import Store
from toolyard.store.blobs import Blobs
from toolyard.store.open_calls import INTERRUPTED

_log = structlog.get_logger("toolyard.calls")

_MOST_REPEATS = 1000


def _nobody(_: str) -> bool:
    return False


class Calls(Outcomes):
    """Every caller's way to a tool, and (by `Outcomes` and `Audit`) to the record of what happened."""

    def __init__(
        self,
        *,
        store: Store,
        blobs: Blobs,
        catalog: Catalog,
        servers: Mapping[str, Server],
        providers: Providers,
        engine: Engine,
        sessions: Sessions | None = None,
        policies: PolicyBook | None = None,
        blob_url: str = "",
        clock: Clock | None = None,
        pick_up_timeout: float = PICK_UP_TIMEOUT,
        is_coming: Callable[[str], bool] = _nobody,
    ) -> None:
        super().__init__(store, blobs, catalog=catalog, engine=engine, url=blob_url)
        self._clock: Clock = clock or SystemClock()
        self._servers = servers
        self._providers = providers
        self._policies = policies or PolicyBook(servers=servers)
        self._recorder = Recorder(store, blobs, self._clock, engine)
        self._observers = Observers(self._clock)
        self.bench = Workbench(
            store=store,
            engine=engine,
            catalog=catalog,
            servers=servers,
            providers=providers,
            sessions=sessions or Sessions(store, engine),
            recorder=self._recorder,
            observers=self._observers,
            clock=self._clock,
            policies=self._policies,
            url=blob_url,
            pick_up_timeout=pick_up_timeout,
            is_coming=is_coming,
        )
        self._validator = self.bench.validator
        self._waiting_calls = WaitingCalls(self.bench, self)
        self._running: dict[str, Running] = {}
        self._repeats: dict[str, str] = {}
        self._background: set[asyncio.Task[CallOutcome]] = set()
        self._watch: asyncio.Task[None] | None = None
        self.orphans = Orphans(store, engine, self._clock)
        engine.handle(KIND, self._waiting_calls.run, ended=self._waiting_calls.ended)

    async def begin(self) -> None:
        """Settle what dead nodes left open, and watch for calls of this node that others cancel. The engine runs."""
        await self.orphans.settle()
        self._watch = asyncio.create_task(self._watch_for_cancels(), name="cancelled calls")

    def observe(self, observer: Observer) -> None:
        """Have `observer` told when a call begins to run and when it ends. It must be quick and must not raise."""
        self._observers.add(observer)

    async def invoke(self, request: CallRequest) -> CallOutcome:
        """Take one call through the whole path. A failed call is an outcome, not an exception.

        Raises:
            Conflict: the idempotency key was used for another call.
            StoreUnavailable: the call could not be put on record; nothing ran.
        """
        if request.may_ask:
            return await self._invoke_asking(request)
        return await self._invoke(request)

    async def follow(
        self,
        call_id: str,
        principal: Principal,
        *,
        hold: float | None,
        known: frozenset[str] = frozenset(),
        progress: ProgressSink | None = None,
        log: LogSink | None = None,
        on_wait: Callable[[Waiting], None] | None = None,
    ) -> CallOutcome:
        """What comes next of a call that was answered open: its end, questions other than the `known` ones, or how it
        stands after `hold` seconds (None: however long it takes). On any node.

        Raises:
            NotFound: there is no such call, or it is another principal's.
        """
        record = await self.get(call_id)
        if record.principal != principal.label:
            raise NotFound(f"There is no call {call_id!r}.")
        running = self._running.get(call_id)
        if running is not None and isinstance(running.asking, Interview):
            running.asking.listen(progress, log)
        outcome = await self.outcome(call_id)
        if outcome.state.is_final:
            return outcome
        if on_wait is not None and outcome.waiting is not None:
            on_wait(outcome.waiting)
        with self._waiting_calls.heard_by(call_id, progress, log):
            return await self.until_ended_or_asked(call_id, hold, known)

    async def _invoke_asking(self, request: CallRequest) -> CallOutcome:
        """A call that may ask its caller goes on by itself once it does."""
        put_on_record = partial(self.put_on_record, request.call_id)
        interview = Interview(request, self._store, self._engine, put_on_record=put_on_record)
        running = self._running.setdefault(request.call_id, Running(request.principal.label))
        running.asking = interview
        task = asyncio.create_task(self._invoke(interview.request, interview), name=request.call_id)
        self._background.add(task)
        task.add_done_callback(self._forget)
        try:
            await asyncio.wait({task, interview.asked}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        if task.done():
            return task.result()
        outcome = await self.outcome(request.call_id)
        if request.on_wait is not None and outcome.waiting is not None:
            request.on_wait(outcome.waiting)
        return outcome

    async def _invoke(self, request: CallRequest, interview: Interview | None = None) -> CallOutcome:
        running = self._running.setdefault(request.call_id, Running(request.principal.label))
        try:
            outcome = await self._travel(request, running)
        except BaseException as error:
            self._release(request.call_id, running, error)
            raise
        self._release(request.call_id, running, outcome)
        if interview is not None and interview.asked.done():
            self._engine.hint(f"call:{request.call_id}")
        if running.cancelled and not outcome.state.is_final and outcome.call_id == request.call_id:
            # Cancelled while it was being parked: nothing ran that could have noticed.
            await self.cancel(request.call_id, request.principal)
            return await self.outcome(request.call_id)
        return outcome if outcome.state.is_final else await self._hold(request, outcome)

    async def _travel(self, request: CallRequest, running: Running) -> CallOutcome:
        try:
            if request.session is None:
                entry = resolve(self._catalog, self._servers, request.tool, request.server)
            else:
                entry = await self.bench.resolve(request)
                request = in_session(request, entry)
            arguments = self._validator.check(entry.tool, request.arguments)
            authorize(request.principal, entry)
            verdict = approve(self._policies, request, entry)
        except CallError as error:
            return await self.refuse(request, CallFailure.of(error))
        opening = await self._recorder.open(request, arguments)
        if verdict.gates or entry.tool.kind is Kind.CLIENT:
            return await self._park(opening, self.bench.parked(opening, entry, verdict))
        return await self._run(opening, entry, running)

    async def refuse(self, request: CallRequest, failure: CallFailure) -> CallOutcome:
        """Nothing ran; the refusal is on record all the same. Also for a caller that could not make out what it was
        asked to call: `request` then holds what there was of it.

        Raises:
            StoreUnavailable: it could not be put on record.
        """
        try:
            arguments = encode(request.arguments)
        except CallError:
            arguments = b"{}"
        try:
            await self.bench.session_of(request)
        except CallError:
            request = replace(request, session=None)
        # A refused call must not use up its idempotency key: the caller will correct it and try again.
        opening = await self._recorder.open(replace(request, idempotency_key=None), arguments)
        await self._recorder.end(opening, Ending.of_failure(failure, None), begun=False)
        self._observers.tell(request, CallState.ERROR, None, failure)
        return CallOutcome(request.call_id, request.tool, CallState.ERROR, None, failure)

    async def _park(self, opening: Opening, new: NewCall) -> CallOutcome:
        """Rows, and nothing in memory: a job, or the client, goes on with it."""
        record = await self._recorder.park(new)
        if record.id != opening.request.call_id:
            must_be_the_same(record, opening)
            self._remember_repeat(opening.request.call_id, record.id)
        else:
            self._observers.tell(opening.request, CallState.PENDING, None, None)
        return await self.outcome(record.id)

    async def _hold(self, request: CallRequest, outcome: CallOutcome) -> CallOutcome:
        """Wait as long as the caller wants to for what others have to do."""
        if request.on_wait is not None and outcome.waiting is not None:
            request.on_wait(outcome.waiting)
        if request.hold is not None and request.hold <= 0:
            return outcome
        if request.may_ask:
            with self._waiting_calls.heard_by(outcome.call_id, request.progress, request.log):
                return await self.until_ended_or_asked(outcome.call_id, request.hold)
        with self._waiting_calls.heard_by(outcome.call_id, request.progress, request.log):
            ended = await self.until_ended(outcome.call_id, request.hold)
        return ended or await self.outcome(outcome.call_id)

    async def _run(self, opening: Opening, entry: Entry, running: Running) -> CallOutcome:
        request = opening.request
        started = self._clock.now()
        begun = (
            entry.tool.action_class is not ActionClass.READ
            or request.idempotency_key is not None
            or request.recorded_first
            or request.session is not None
        )
        if not begun:
            running.unrecorded = (opening, started)
        ended: ToolResult | CallError | NeedsInput
        try:
            if begun and (earlier := await self._recorder.begin(opening, started)) is not None:
                running.repeats = earlier.id
                self._remember_repeat(request.call_id, earlier.id)
                return await self._repeat(earlier, entry)
            self._observers.tell(request, CallState.PROCESSING, None, None)
            ended = await execute(self._providers, request, entry, running, running.asking)
        except (CallError, NeedsInput) as error:
            ended = error
        except asyncio.CancelledError:
            begun = begun or running.recording is not None
            self._recorder.end_soon(opening, Ending.of_failure(INTERRUPTED, started), begun=begun)
            raise
        running.unrecorded = None
        if running.recording is not None:
            begun = await _succeeds(running.recording)
        if isinstance(ended, ToolResult):
            return await self._settle(opening, entry, ended, started, begun=begun)
        if isinstance(ended, NeedsInput):
            return await self._ask(opening, entry, ended, started, begun=begun)
        return await self._fail(opening, CallFailure.of(ended), started, begun=begun)

    async def put_on_record(self, call_id: str) -> None:
        """Have a call that runs here on disk now, also when it only reads: somebody is given its id.

        Raises:
            StoreUnavailable: it could not be written. The call runs on.
        """
        running = self._running.get(call_id)
        if running is None or running.unrecorded is None:
            return
        if running.recording is None:
            running.recording = asyncio.create_task(self._recorder.begin(*running.unrecorded))
        await asyncio.shield(running.recording)

    async def _fail(self, opening: Opening, failure: CallFailure, started: float, *, begun: bool) -> CallOutcome:
        request = opening.request
        if not await self._recorder.end(opening, Ending.of_failure(failure, started), begun=begun):
            return await self.outcome(request.call_id)
        self._observers.tell(request, CallState.ERROR, self._clock.now() - started, failure)
        return CallOutcome(request.call_id, request.tool, CallState.ERROR, None, failure)

    async def _ask(
        self, opening: Opening, entry: Entry, needs: NeedsInput, started: float, *, begun: bool
    ) -> CallOutcome:
        """The upstream wants answers before it goes on: from now on the call is its job's, which waits for them."""
        request = opening.request
        try:
            questions.must_be_askable(needs.questions, request.may_ask)
        except CallError as error:
            return await self._fail(opening, CallFailure.of(error), started, begun=begun)
        if not begun:
            await self._recorder.begin(opening, started)
        # Nothing runs here any more: whoever cancels it from now on has to do so on record.
        running = self._running.pop(request.call_id, None)
        if running is not None and running.cancelled:
            failure = CallFailure(ErrorCode.CANCELLED, f"The call of {request.tool} was cancelled.")
            return await self._fail(opening, failure, started, begun=True)
        ticket = Ticket.of(request, entry.tool.definition_hash)
        job_id = new_id("job")
        leave = partial(
            questions.leave_to_job,
            ticket,
            job_id,
            needs,
            questions.new_ids(needs.questions),
            session_id=request.session,
        )
        if await self._store.tx(leave):
            self._engine.hint(f"call:{request.call_id}", f"job:{job_id}")
        return await self.outcome(request.call_id)

    async def _settle(
        self, opening: Opening, entry: Entry, result: ToolResult, started: float, *, begun: bool
    ) -> CallOutcome:
        request = opening.request
        ending = await self.bench.shaped(request, opening.created, entry.tool, result, started)
        then = None
        if ending.failure is None and (request.session is not None or self.bench.has_follow_up(entry.tool)):
            then = await self.bench.follow_up(request, entry, result)
        if not await self._recorder.end(opening, ending, begun=begun, follow=not begun, then=then):
            return await self.outcome(request.call_id)
        self._observers.tell(request, ending.state, self._clock.now() - started, ending.failure)
        return CallOutcome(request.call_id, request.tool, ending.state, ending.result, ending.failure)

    async def _repeat(self, earlier: CallRecord, entry: Entry) -> CallOutcome:
        """The first answer again, waiting for it where the call still runs."""
        if earlier.waiting is not None or earlier.run_job is not None:
            return await self.outcome(earlier.id)
        outcome = await self.wait(earlier.id, seconds=entry.tool.time_limit or 60.0)
        if outcome is None:
            raise Conflict(f"The call {earlier.id} with this idempotency key is still running.")
        return outcome

    def start(self, request: CallRequest) -> str:
        """Begin a call and return its id; `wait` or `get` tells how it goes. One that has to wait holds no task."""
        self._start(replace(request, hold=0.0))
        return request.call_id

    async def invoke_within(self, request: CallRequest, seconds: float) -> CallOutcome | None:
        """As `invoke`, but no longer than `seconds`: None while the call still runs, in the background from now on.

        Raises:
            Conflict, StoreUnavailable: as `invoke`.
        """
        task = self._start(replace(request, hold=seconds))
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
        # From now on others may follow it, perhaps on other nodes.
        task.add_done_callback(lambda _: self._engine.hint(f"call:{request.call_id}"))
        return None

    def _start(self, request: CallRequest) -> asyncio.Task[CallOutcome]:
        self._running[request.call_id] = Running(request.principal.label)
        task = asyncio.create_task(self.invoke(request), name=request.call_id)
        self._background.add(task)
        task.add_done_callback(self._forget)
        return task

    async def wait(self, call_id: str, seconds: float) -> CallOutcome | None:
        """The outcome, or None when the call is still open after `seconds`. Works on any node.

        Raises:
            NotFound: there is no such call.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        running = self._running.get(call_id)
        if running is None:
            return await self.until_ended(self.id_on_record(call_id), seconds)
        future: asyncio.Future[CallOutcome] = loop.create_future()
        running.waiting.append(future)
        try:
            async with asyncio.timeout(seconds):
                outcome = await future
        except TimeoutError:
            return None
        finally:
            if future in running.waiting:
                running.waiting.remove(future)
        if outcome.state.is_final:
            return outcome
        return await self.until_ended(outcome.call_id, until - loop.time())

    def id_on_record(self, call_id: str) -> str:
        """The id under which a started call is found: an earlier call's, where its idempotency key was used before."""
        return self._repeats.get(call_id, call_id)

    async def cancel(self, call_id: str, principal: Principal) -> bool:
        """End an open call, wherever it runs or waits; False when there is nothing to end.

        Raises:
            Forbidden: it is somebody else's call, and the principal may not manage.
        """
        running = self._running.get(call_id)
        if running is not None:
            must_be_theirs(running.principal, principal)
            running.cancel()
            return True
        try:
            record = await self.get(call_id)
        except NotFound:
            return False
        if record.state.is_final:
            return False
        must_be_theirs(record.principal, principal)
        cancelled = await cancel_on_record(self._store, self._engine, record)
        if cancelled:
            failure = CallFailure(ErrorCode.CANCELLED, "The call was cancelled.")
            self._observers.tell_of(record, CallState.ERROR, failure)
            if record.waiting == "question":
                await self._abandon(record)
        return cancelled

    async def _abandon(self, record: CallRecord) -> None:
        """The upstream that asked may hold something open for the answers."""
        asked = await self._store.read(partial(questions.latest_round, call_id=record.id))
        if asked and asked[0].upstream_state is not None:
            await self._providers.abandon(record.tool.partition(":")[0], asked[0].upstream_state)

    async def close(self) -> None:
        """Cancel what still runs and see it recorded."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    async def _watch_for_cancels(self) -> None:
        """Another node has settled calls that run here: tell their providers to stop."""
        async with self._engine.watch(f"node:{self._engine.node_id}") as waiter:
            while True:
                if not await waiter.wait() or not self._running:
                    continue
                ids = list(self._running)
                for record in await self._store.read(partial(open_calls.states_of, call_ids=ids)):
                    running = self._running.get(record.id)
                    if running is not None and record.error_code is ErrorCode.CANCELLED:
                        running.cancel()

    def _remember_repeat(self, call_id: str, earlier: str) -> None:
        if len(self._repeats) >= _MOST_REPEATS:
            self._repeats.pop(next(iter(self._repeats)))
        self._repeats[call_id] = earlier

    def _release(self, call_id: str, running: Running, ended: CallOutcome | BaseException) -> None:
        self._running.pop(call_id, None)
        for future in running.waiting:
            if future.done():
                continue
            if isinstance(ended, CallOutcome):
                future.set_result(ended)
            elif isinstance(ended, asyncio.CancelledError):
                future.cancel()
            else:
                future.set_exception(ended)

    def _forget(self, task: asyncio.Task[CallOutcome]) -> None:
        self._background.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Conflict):
            _log.error("a background call could not be recorded", call=task.get_name(), error=str(error))


async def _succeeds(recording: asyncio.Task[CallRecord | None]) -> bool:
    """Whether a call that was put on record while it ran is there. If not, all of it goes there at its end."""
    try:
        await recording
    except StoreUnavailable:
        return False
    return True
