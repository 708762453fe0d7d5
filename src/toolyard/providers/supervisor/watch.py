"""One provider's life: start, list, refresh, fail, come back. One task does all of it, one thing after the other."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from toolyard.core.clock import Clock
from toolyard.core.errors import CallError, ErrorCode, ProviderError, ToolyardError
from toolyard.core.offer import NO_OFFERS, Offers
from toolyard.core.tool import Tool
from toolyard.providers.base import Provider
from toolyard.providers.offers import Offering
from toolyard.providers.supervisor.listing import shortened, vet
from toolyard.providers.supervisor.optional import HasEra, HasStartLimit, Skips
from toolyard.providers.supervisor.policy import RetryPolicy
from toolyard.providers.supervisor.status import ProviderState, ProviderStatus

START_SECONDS = 10.0
_log = structlog.stdlib.get_logger("toolyard.providers")


class Reports(Protocol):
    """Where a watch tells what happened; the supervisor is one."""

    def published(self, namespace: str, tools: Sequence[Tool]) -> None: ...
    def offered(self, namespace: str, offers: Offers) -> None: ...
    def updated(self, namespace: str, uri: str) -> None: ...
    def availability(self, namespace: str, *, available: bool, reason: str | None) -> None: ...
    def changed(self, status: ProviderStatus) -> None: ...


class Watch:
    """Keeps one provider up. `call` paths read `refusal` and report through `succeeded` and `failed`."""

    def __init__(
        self,
        provider: Provider,
        *,
        required: bool,
        start_timeout: float | None,
        policy: RetryPolicy,
        clock: Clock,
        reports: Reports,
    ) -> None:
        self.provider = provider
        self.required = required
        self.refusing = True
        """True while calls fail at once. A plain attribute: the call path reads it every time."""
        own_limit = provider.start_limit if isinstance(provider, HasStartLimit) else START_SECONDS
        self._start_timeout = own_limit if start_timeout is None else start_timeout
        self._policy = policy
        self._clock = clock
        self._reports = reports
        self._state = ProviderState.STARTING
        self._since = clock.now()
        self._last_error: str | None = None
        self._latency: float | None = None
        self._tool_count = 0
        self._skipped: tuple[str, ...] = ()
        self._failures = 0
        self._attempts = 0
        self._proven = True
        """False after coming back until a call succeeds: half open, one failure closes the door again."""
        self._retry_at: float | None = None
        self._last_use = clock.monotonic()
        self._wake = asyncio.Event()
        self._stale = False
        self._suspect = False
        self._waiting: list[asyncio.Future[None]] = []
        self._serving: list[asyncio.Future[None]] = []
        self._published: tuple[Tool, ...] | None = None
        self._refreshed_at = -math.inf
        self._first: asyncio.Future[ProviderError | None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        provider.on_change(self.notice_change)
        if isinstance(provider, Offering):
            provider.on_update(lambda uri: reports.updated(provider.id, uri))

    # -- what the supervisor does with it

    def begin(self) -> asyncio.Future[ProviderError | None]:
        """Starts the watching task. The future has the first attempt's error, or None when the provider is up."""
        if self._first is None:
            self._first = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(), name=f"provider {self.provider.id}")
        return self._first

    def _first_ended(self, error: ProviderError | None) -> None:
        if self._first is not None and not self._first.done():
            self._first.set_result(error)

    def notice_change(self) -> None:
        """The provider says that its list changed (or that it was lost). Storms become one refresh."""
        self._stale = True
        self._wake.set()

    async def refresh(self) -> None:
        """Lists again now, or reconnects when down.

        Raises:
            ProviderError: it did not answer.
        """
        if self._closed:
            raise ProviderError(f"Provider {self.provider.id!r} is closed.")
        self.begin()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._wake.set()
        await done

    async def close(self) -> None:
        """Ends the task and the provider, within the policy's limit."""
        self._closed = True
        self.refusing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=self._policy.close_limit)
        self._serve_waiting()
        self._answer(ProviderError(f"Provider {self.provider.id!r} was closed."))
        self._first_ended(ProviderError(f"Provider {self.provider.id!r} was closed while it started."))
        try:
            async with asyncio.timeout(self._policy.close_limit):
                await self.provider.close()
        except TimeoutError:
            _log.warning("provider did not close in time", provider=self.provider.id)
        except Exception:  # noqa: BLE001  the end of its life: logged, and the others still have to be closed
            _log.exception("provider failed while closing", provider=self.provider.id)

    def status(self) -> ProviderStatus:
        return ProviderStatus(
            id=self.provider.id,
            kind=self.provider.kind,
            address=self.provider.address,
            state=self._state,
            era=self.provider.era if isinstance(self.provider, HasEra) else None,
            latency_ms=None if self._latency is None else round(self._latency * 1000, 3),
            last_error=self._last_error,
            tool_count=self._tool_count,
            since=self._since,
            required=self.required,
            retry_at=self._retry_at,
            skipped=self._skipped,
        )

    # -- what the call path tells it

    def refusal(self) -> CallError:
        """Why calls fail at once, and when the provider is tried again."""
        if self._closed:
            return CallError(ErrorCode.UPSTREAM, f"Provider '{self.provider.id}' was removed.")
        if self._state is ProviderState.STARTING:
            return CallError(
                ErrorCode.UPSTREAM,
                f"Provider '{self.provider.id}' is still starting.",
                suggestion="Try again in a few seconds.",
            )
        wait = max(0.0, (self._retry_at or self._clock.now()) - self._clock.now())
        return CallError(
            ErrorCode.UPSTREAM,
            f"Provider '{self.provider.id}' is down: {_sentence(self._last_error or 'no answer')}",
            suggestion=f"It is tried again in {wait:.0f} s." if wait >= 1 else "It is being tried again now.",
        )

    def succeeded(self, seconds: float) -> None:
        """A call was answered, be it with a tool's error."""
        self._failures = 0
        self._last_use = self._clock.monotonic()
        self._latency = seconds if self._latency is None else self._latency * 0.9 + seconds * 0.1
        if not self._proven:
            self._proven = True
            self._attempts = 0

    def failed(self, error: ToolyardError) -> None:
        """A call found the provider unreachable. A probe follows at once; enough of these close the door."""
        self._failures += 1
        self._last_error = str(error)
        if self._state is ProviderState.UP:
            if self._failures >= self._policy.failures_to_open or not self._proven:
                self._go_down(str(error))
            self._suspect = True
            self._wake.set()

    def timed_out(self) -> None:
        """A call got no answer in its time. The tool may be slow, so only a probe may close the door."""
        if self._state is ProviderState.UP:
            self._suspect = True
            self._wake.set()

    # -- the watching task

    async def _run(self) -> None:
        while not self._closed:
            try:
                if self._state is ProviderState.UP:
                    await self._attend()
                else:
                    await self._connect()
            except Exception as error:  # noqa: BLE001  the task's top: a provider may raise anything, others go on
                _log.exception("provider failed unexpectedly", provider=self.provider.id)
                self._give_up(_unexpected(error))

    async def _connect(self) -> None:
        if self._attempts and not self._waiting:
            await self._pause()
        self._attempts += 1
        self._retry_at = None
        self._stale = self._suspect = False
        self._serve_waiting()
        if await self._within_limit(self._start_and_list):
            self._come_up()

    async def _start_and_list(self) -> None:
        await self.provider.start()
        if self._attempts > 1:
            await self.provider.health()
        await self._list()

    async def _attend(self) -> None:
        """Waits for something to do (a change, a doubt, a wish to refresh, a long silence), and does it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._policy.idle_check):
                await self._wake.wait()
        if self._stale and not self._waiting:
            await self._gather_changes()
        self._wake.clear()
        if self._state is not ProviderState.UP:
            return
        self._serve_waiting()
        stale, doubted = self._stale or bool(self._serving), self._suspect
        self._stale = self._suspect = False
        if not (stale or doubted) and self._clock.monotonic() - self._last_use < self._policy.idle_check:
            return
        if await self._within_limit(self._list if stale else self.provider.health):
            self._answer(None)
            if not doubted:
                self._failures = 0

    async def _gather_changes(self) -> None:
        """Lets a burst of notices end, and keeps a provider that never stops from being listed all the time."""
        again = self._refreshed_at + self._policy.refresh_interval - self._clock.monotonic()
        pause = max(self._policy.settle, again)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                while not self._waiting and not self._suspect:
                    self._wake.clear()
                    await self._wake.wait()

    async def _within_limit(self, act: Callable[[], Awaitable[None]]) -> bool:
        try:
            async with asyncio.timeout(self._start_timeout):
                await act()
        except TimeoutError:
            self._give_up(f"{self.provider.address} did not answer within {self._start_timeout:g} s")
        except ToolyardError as error:
            self._give_up(str(error))
        else:
            return True
        return False

    async def _list(self) -> None:
        began = self._clock.monotonic()
        answered = await self.provider.tools()
        offers = await self.provider.offers() if isinstance(self.provider, Offering) else NO_OFFERS
        if self._closed:
            return
        seconds = self._clock.monotonic() - began
        listing = vet(self.provider.id, answered)
        own = self.provider.skipped if isinstance(self.provider, Skips) else ()
        self._skipped = shortened((*own, *listing.skipped))
        for reason in self._skipped:
            _log.warning("tool skipped", provider=self.provider.id, reason=reason)
        if self._latency is None:
            self._latency = seconds
        self._refreshed_at = self._clock.monotonic()
        self._tool_count = len(listing.tools)
        if listing.tools != self._published:
            self._published = listing.tools
            self._reports.published(self.provider.id, listing.tools)
            if self._state is ProviderState.DOWN:
                self._reports.availability(
                    self.provider.id, available=False, reason=f"The provider is down: {self._last_error}"
                )
        self._reports.offered(self.provider.id, offers)
        self._tell()

    async def _pause(self) -> None:
        """Until the next attempt is due, or somebody asks for one."""
        delay = self._policy.delay(self._attempts)
        self._retry_at = self._clock.now() + delay
        self._tell()
        deadline = self._clock.monotonic() + delay
        while not self._waiting and (left := deadline - self._clock.monotonic()) > 0:
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._wake.wait()

    def _come_up(self) -> None:
        self._proven = not self._failures and self._attempts == 1
        if self._proven:
            self._attempts = 0
        self._failures = 0
        self._state = ProviderState.UP
        self._since = self._clock.now()
        self._last_use = self._clock.monotonic()
        self.refusing = False
        self._reports.availability(self.provider.id, available=True, reason=None)
        self._tell()
        self._answer(None)
        self._first_ended(None)

    def _give_up(self, reason: str) -> None:
        self._go_down(reason)
        error = ProviderError(f"Provider '{self.provider.id}' ({self.provider.address}): {_sentence(reason)}")
        self._answer(error)
        self._first_ended(error)

    def _go_down(self, reason: str) -> None:
        self._last_error = reason
        self.refusing = True
        if self._state is not ProviderState.DOWN:
            _log.warning("provider down", provider=self.provider.id, reason=reason)
            self._state = ProviderState.DOWN
            self._since = self._clock.now()
            self._attempts = max(self._attempts, 1)
            self._retry_at = self._clock.now() + self._policy.delay(self._attempts)
            self._reports.availability(self.provider.id, available=False, reason=f"The provider is down: {reason}")
            self._tell()

    def _tell(self) -> None:
        self._reports.changed(self.status())

    def _serve_waiting(self) -> None:
        """Those who ask from now on want a list that begins later than this one."""
        self._serving += self._waiting
        self._waiting = []

    def _answer(self, error: ProviderError | None) -> None:
        served, self._serving = self._serving, []
        for future in served:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _unexpected(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]
