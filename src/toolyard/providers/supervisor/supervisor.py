"""All providers of one node: started in parallel, watched one by one, called through one door."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from toolyard.core.call import ToolResult
from toolyard.core.clock import Clock, SystemClock
from toolyard.core.errors import (
    AddressRefused,
    CallError,
    Conflict,
    EgressError,
    ErrorCode,
    NotFound,
    ProviderError,
    Unreachable,
)
from toolyard.core.json import JsonObject
from toolyard.core.names import check_namespace
from toolyard.core.offer import Offers
from toolyard.core.question import NeedsInput
from toolyard.core.tool import Tool
from toolyard.providers.base import Invocation, Provider
from toolyard.providers.offers import Completion, Offering
from toolyard.providers.supervisor.followers import Followers, Heard
from toolyard.providers.supervisor.optional import Abandons
from toolyard.providers.supervisor.policy import RetryPolicy
from toolyard.providers.supervisor.status import ProviderStatus
from toolyard.providers.supervisor.watch import Watch

_NEARLY = 0.98
"""A call cancelled after this share of its time limit ran out of time; earlier, somebody changed their mind."""


class Supervisor:
    """Owns every provider from `add` to `close`. All methods belong to the event loop's thread.

    `publish`, `set_availability` and `forget` are the catalog's; `events` hears of every change of a status.
    """

    def __init__(
        self,
        *,
        publish: Callable[[str, Sequence[Tool]], None],
        set_availability: Callable[[str, bool, str | None], None],
        forget: Callable[[str], None],
        publish_offers: Callable[[str, Offers], object] | None = None,
        events: Callable[[ProviderStatus], None] | None = None,
        clock: Clock | None = None,
        policy: RetryPolicy | None = None,
    ) -> None:
        self._publish = publish
        self._set_availability = set_availability
        self._forget = forget
        self._publish_offers = publish_offers
        self._followers: dict[str, Followers] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._events = events
        self._clock = clock or SystemClock()
        self._policy = policy or RetryPolicy()
        self._watches: dict[str, Watch] = {}

    # -- life

    def add(self, provider: Provider, *, required: bool = False, start_timeout: float | None = None) -> None:
        """Takes a provider in; `start` contacts it, within `start_timeout` seconds (10, unless it says otherwise).

        Raises:
            BadInput: its id cannot be a namespace.
            Conflict: the id is taken.
        """
        namespace = check_namespace(provider.id)
        if namespace in self._watches:
            raise Conflict(f"A provider {namespace!r} exists already.", suggestion="Remove it first, or rename one.")
        self._watches[namespace] = Watch(
            provider,
            required=required,
            start_timeout=start_timeout,
            policy=self._policy,
            clock=self._clock,
            reports=self,
        )

    async def start(self, *, patience: float = 3.0) -> None:
        """Contacts all added providers in parallel.

        Waits for the required ones until they answered or ran out of time, for the others at most `patience` seconds;
        those go on in the background.

        Raises:
            ProviderError: required ones failed; names provider, address and cause of each.
        """
        began = time.monotonic()
        firsts = {watch: watch.begin() for watch in self._watches.values()}
        needed = [first for watch, first in firsts.items() if watch.required]
        if needed:
            await asyncio.wait(needed)
            _unless_failed(needed)
        others = [first for watch, first in firsts.items() if not watch.required]
        left = patience - (time.monotonic() - began)
        if others and left > 0:
            await asyncio.wait(others, timeout=left)

    async def add_and_start(
        self, provider: Provider, *, required: bool = False, start_timeout: float | None = None
    ) -> None:
        """`add`, and the first contact. A required provider that fails is taken out again.

        Raises:
            BadInput, Conflict: as `add`.
            ProviderError: it is required and failed.
        """
        self.add(provider, required=required, start_timeout=start_timeout)
        error = await self._watches[provider.id].begin()
        if error is not None and required:
            await self.remove(provider.id)
            raise error

    async def refresh(self, provider_id: str) -> None:
        """Lists its tools again now; reconnects it when it is down.

        Raises:
            NotFound: no such provider.
            ProviderError: it did not answer.
        """
        await self._watch(provider_id).refresh()

    async def remove(self, provider_id: str) -> None:
        """Closes a provider and takes its tools out of the catalog.

        Raises:
            NotFound: no such provider.
        """
        watch = self._watch(provider_id)
        del self._watches[provider_id]
        self._forget(provider_id)
        await watch.close()

    async def close(self) -> None:
        """Ends every provider at the same time, each within its limit. May be called twice."""
        watches, self._watches = list(self._watches.values()), {}
        await asyncio.gather(*(watch.close() for watch in watches))

    # -- state

    def provider(self, provider_id: str) -> Provider | None:
        watch = self._watches.get(provider_id)
        return watch.provider if watch else None

    def status(self, provider_id: str) -> ProviderStatus:
        """
        Raises:
            NotFound: no such provider.
        """
        return self._watch(provider_id).status()

    def statuses(self) -> list[ProviderStatus]:
        """All of them, by id."""
        return [self._watches[name].status() for name in sorted(self._watches)]

    # -- the call path's door

    async def call(self, invocation: Invocation) -> ToolResult:
        """Hands a call to its provider.

        Raises:
            CallError: from the provider; `upstream` at once while the provider is down.
        """
        watch = self._watches.get(invocation.tool.namespace)
        if watch is None:
            raise CallError(ErrorCode.UPSTREAM, f"Provider '{invocation.tool.namespace}' was removed.")
        if watch.refusing:
            raise watch.refusal()
        began = time.perf_counter()
        try:
            result = await watch.provider.call(invocation)
        except asyncio.CancelledError:
            # Time in which the caller was asked is not the provider's; how much that was is not known here.
            if invocation.ask is None and time.perf_counter() - began >= invocation.time_limit * _NEARLY:
                watch.timed_out()
            raise
        except NeedsInput:
            watch.succeeded(time.perf_counter() - began)
            raise
        except CallError as error:
            if _counts_against_provider(error):
                watch.failed(error)
            else:
                watch.succeeded(time.perf_counter() - began)
            raise
        except (EgressError, ProviderError) as error:
            if not isinstance(error, AddressRefused):
                watch.failed(error)
            raise CallError(ErrorCode.UPSTREAM, error.message, suggestion=error.suggestion) from error
        watch.succeeded(time.perf_counter() - began)
        return result

    async def abandon(self, namespace: str, upstream_state: str) -> None:
        """Tell a provider that no answers will come for the call that it left in this state."""
        watch = self._watches.get(namespace)
        if watch is not None and not watch.refusing and isinstance(watch.provider, Abandons):
            await watch.provider.abandon(upstream_state)

    async def complete(self, namespace: str, completion: Completion) -> JsonObject:
        """What may follow in an argument of a prompt or of a resource template.

        Raises:
            CallError: the provider is down, or cannot say.
        """
        watch = self._watches.get(namespace)
        if watch is None or not isinstance(watch.provider, Offering):
            raise CallError(ErrorCode.NOT_FOUND, f"Provider '{namespace}' completes nothing.")
        if watch.refusing:
            raise watch.refusal()
        return await watch.provider.complete(completion)

    @asynccontextmanager
    async def following(self, namespace: str, uri: str, heard: Heard) -> AsyncGenerator[None, None]:
        """While the context is open, `heard` is called whenever the provider says that this resource is another one."""
        followers = self._followers.setdefault(namespace, Followers())
        offering = self._offering(namespace)
        if offering is not None:
            await followers.add(offering, uri, heard)
        try:
            yield
        finally:
            if offering is not None:
                await followers.remove(self._offering(namespace), uri, heard)

    def _offering(self, namespace: str) -> Offering | None:
        provider = self.provider(namespace)
        return provider if isinstance(provider, Offering) else None

    # -- what watches report (`Reports`)

    def offered(self, namespace: str, offers: Offers) -> None:
        if self._publish_offers is not None:
            self._publish_offers(namespace, offers)
        followers, offering = self._followers.get(namespace), self._offering(namespace)
        if followers is not None and offering is not None and followers.are_news_to(offering):
            telling = asyncio.create_task(followers.tell(offering))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    def updated(self, namespace: str, uri: str) -> None:
        followers = self._followers.get(namespace)
        if followers is not None:
            followers.updated(uri)

    def published(self, namespace: str, tools: Sequence[Tool]) -> None:
        self._publish(namespace, tools)

    def availability(self, namespace: str, *, available: bool, reason: str | None) -> None:
        self._set_availability(namespace, available, reason)

    def changed(self, status: ProviderStatus) -> None:
        if self._events is not None:
            self._events(status)

    def _watch(self, provider_id: str) -> Watch:
        try:
            return self._watches[provider_id]
        except KeyError:
            raise NotFound(f"There is no provider {provider_id!r}.") from None


def _counts_against_provider(error: CallError) -> bool:
    """An unreachable provider does; a tool's error, a refused address or a 4xx answer does not."""
    if isinstance(error, Unreachable):
        return True
    return isinstance(error.__cause__, EgressError) and not isinstance(error.__cause__, AddressRefused)


def _unless_failed(needed: Sequence[asyncio.Future[ProviderError | None]]) -> None:
    failures = [error for first in needed if (error := first.result()) is not None]
    if failures:
        raise ProviderError(
            "\n".join(f"Required: {error.message}" for error in failures),
            suggestion="Correct its address, start it, or set `required: false`.",
        )
