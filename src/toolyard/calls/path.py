"""The path itself: `invoke` reads as the list of its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import structlog

from toolyard.calls.approve import approve
from toolyard.calls.audit import Audit, failure_of
from toolyard.calls.authorize import authorize
from toolyard.calls.execute import Providers, Running, execute
from toolyard.calls.images import ImageCollector
from toolyard.calls.record import Ending, Opening, Recorder, blob_prefix
from toolyard.calls.resolve import resolve
from toolyard.calls.shape import decode_result, shape
from toolyard.calls.validate import ArgumentValidator, encode
from toolyard.catalog import Catalog, Entry, Server
from toolyard.core.call import CallFailure, CallOutcome, CallRequest, CallState, ToolResult
from toolyard.core.clock import Clock, SystemClock
from toolyard.core.errors import CallError, Conflict, ErrorCode
from toolyard.core.principal import Principal, Scope
from toolyard.core.record import CallEvent
from toolyard.core.tool import ActionClass, Tool
from toolyard.store.base import Store
from toolyard.store.blobs import Blobs

_log = structlog.get_logger("toolyard.calls")

Observer = Callable[[CallEvent], None]


class Calls(Audit):
    """Every caller's way to a tool, and (by `Audit`) to the record of what happened."""

    def __init__(
        self,
        *,
        store: Store,
        blobs: Blobs,
        catalog: Catalog,
        servers: Mapping[str, Server],
        providers: Providers,
        blob_url: str = "",
        clock: Clock | None = None,
    ) -> None:
        super().__init__(store, blobs)
        self._clock: Clock = clock or SystemClock()
        self._catalog = catalog
        self._servers = servers
        self._providers = providers
        self._blob_url = blob_url
        self._validator = ArgumentValidator()
        self._recorder = Recorder(store, blobs, self._clock)
        self._running: dict[str, Running] = {}
        self._background: set[asyncio.Task[CallOutcome]] = set()
        self._observers: list[Observer] = []

    def observe(self, observer: Observer) -> None:
        """Have `observer` told when a call begins to run and when it ends. It must be quick and must not raise."""
        self._observers.append(observer)

    async def invoke(self, request: CallRequest) -> CallOutcome:
        """Take one call through the whole path. A failed call is an outcome, not an exception.

        Raises:
            Conflict: the idempotency key was used for another call.
            StoreUnavailable: the call could not be put on record; nothing ran.
        """
        running = self._running.setdefault(request.call_id, Running(request.principal.label))
        try:
            outcome = await self._travel(request, running)
        except BaseException as error:
            self._release(request.call_id, running, error)
            raise
        self._release(request.call_id, running, outcome)
        return outcome

    async def _travel(self, request: CallRequest, running: Running) -> CallOutcome:
        try:
            entry = resolve(self._catalog, self._servers, request.tool, request.server)
            arguments = self._validator.check(entry.tool, request.arguments)
            authorize(request.principal, entry)
            approve(request, entry)
        except CallError as error:
            return await self._refuse(request, CallFailure.of(error))
        opening = await self._recorder.open(request, arguments)
        return await self._run(opening, entry, running)

    async def _refuse(self, request: CallRequest, failure: CallFailure) -> CallOutcome:
        """Nothing ran; the refusal is on record all the same."""
        try:
            arguments = encode(request.arguments)
        except CallError:
            arguments = b"{}"
        # A refused call must not use up its idempotency key: the caller will correct it and try again.
        opening = await self._recorder.open(replace(request, idempotency_key=None), arguments)
        await self._recorder.end(opening, Ending.of_failure(failure, None), begun=False)
        self._tell(request, CallState.ERROR, None, failure)
        return CallOutcome(request.call_id, request.tool, CallState.ERROR, None, failure)

    async def _run(self, opening: Opening, entry: Entry, running: Running) -> CallOutcome:
        request = opening.request
        started = self._clock.now()
        begun = (
            entry.tool.action_class is not ActionClass.READ
            or request.idempotency_key is not None
            or request.recorded_first
        )
        try:
            if begun and (earlier := await self._recorder.begin(opening, started)) is not None:
                running.repeats = earlier.id
                return await self._repeat(earlier.id, entry)
            self._tell(request, CallState.PROCESSING, None, None)
            result = await execute(self._providers, request, entry, running)
        except CallError as error:
            failure = CallFailure.of(error)
            await self._recorder.end(opening, Ending.of_failure(failure, started), begun=begun)
            self._tell(request, CallState.ERROR, self._clock.now() - started, failure)
            return CallOutcome(request.call_id, request.tool, CallState.ERROR, None, failure)
        except asyncio.CancelledError:
            self._recorder.end_soon(opening, Ending.of_failure(_STOPPED, started), begun=begun)
            raise
        return await self._settle(opening, entry, result, started, begun=begun)

    async def _settle(
        self, opening: Opening, entry: Entry, result: ToolResult, started: float, *, begun: bool
    ) -> CallOutcome:
        request = opening.request
        collector = partial(self._collector, request.call_id, opening.created)
        shaped = shape(result, entry.tool, call_id=request.call_id, origin=request.origin, collector=collector)
        failure = _failure_of(shaped.result)
        await self._recorder.keep_images(shaped)
        ending = Ending.of_result(shaped, failure, started)
        await self._recorder.end(opening, ending, begun=begun, follow=not begun)
        self._tell(request, ending.state, self._clock.now() - started, failure)
        return CallOutcome(request.call_id, request.tool, ending.state, shaped.result, failure)

    def _collector(self, call_id: str, created: float) -> ImageCollector:
        return ImageCollector(blob_prefix(call_id, created), self._blob_url)

    async def _repeat(self, call_id: str, entry: Entry) -> CallOutcome:
        """The first answer again, waiting for it where the call still runs."""
        outcome = await self.wait(call_id, seconds=entry.tool.time_limit or 60.0)
        if outcome is None:
            raise Conflict(f"The call {call_id} with this idempotency key is still running.")
        return outcome

    def start(self, request: CallRequest) -> str:
        """Run a call in the background; `wait` or `get` tells how it goes."""
        self._running[request.call_id] = Running(request.principal.label)
        task = asyncio.create_task(self.invoke(request), name=request.call_id)
        self._background.add(task)
        task.add_done_callback(self._forget)
        return request.call_id

    async def wait(self, call_id: str, seconds: float) -> CallOutcome | None:
        """The outcome, or None when the call is still open after `seconds`.

        Raises:
            NotFound: there is no such call.
        """
        running = self._running.get(call_id)
        if running is None:
            return await self._recorded(call_id)
        future: asyncio.Future[CallOutcome] = asyncio.get_running_loop().create_future()
        running.waiting.append(future)
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            return None
        finally:
            if future in running.waiting:
                running.waiting.remove(future)

    def id_on_record(self, call_id: str) -> str:
        """The id under which a started call is found: an earlier call's, where its idempotency key was used before."""
        running = self._running.get(call_id)
        return running.repeats if running is not None and running.repeats else call_id

    async def _recorded(self, call_id: str) -> CallOutcome | None:
        record = await self.get(call_id)
        if not record.state.is_final:
            return None
        failure = failure_of(record)
        result: ToolResult | None = None
        if record.output_bytes is not None:
            whole = decode_result(await self.full_result(call_id))
            entry = self._catalog.snapshot.get(record.tool)
            collector = partial(self._collector, record.id, record.created)
            tool = entry.tool if entry else Tool(record.namespace, record.tool.partition(":")[2], "")
            result = shape(whole, tool, call_id=call_id, origin=record.origin, collector=collector).result
        return CallOutcome(call_id, record.tool, record.state, result, failure)

    async def cancel(self, call_id: str, principal: Principal) -> bool:
        """Cancel a call that runs on this node; False when none does.

        Raises:
            Forbidden: it is somebody else's call, and the principal may not manage.
        """
        running = self._running.get(call_id)
        if running is None:
            return False
        if running.principal != principal.label:
            principal.require(Scope.MANAGE)
        running.cancel()
        return True

    async def close(self) -> None:
        """Cancel what still runs and see it recorded."""
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

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

    def _tell(
        self, request: CallRequest, state: CallState, duration: float | None, failure: CallFailure | None
    ) -> None:
        if not self._observers:
            return
        event = CallEvent(
            id=request.call_id,
            tool=request.tool,
            state=state,
            principal=request.principal.label,
            origin=request.origin,
            at=self._clock.now(),
            duration=duration,
            error_code=failure.code if failure else None,
        )
        for observer in self._observers:
            observer(event)


_STOPPED = CallFailure(
    ErrorCode.INTERRUPTED,
    "Toolyard stopped while this call was running; whether it took effect is not known.",
    "Check its effect before calling again.",
)


def _failure_of(result: ToolResult) -> CallFailure | None:
    if not result.is_error:
        return None
    return CallFailure(ErrorCode.UPSTREAM, result.text or "The tool reported an error and said no more.")
