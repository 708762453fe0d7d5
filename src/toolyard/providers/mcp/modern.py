"""A modern upstream over HTTP: no session, one POST per request. This is the hot path."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Literal

import structlog

from toolyard.core.call import ProgressSink
from toolyard.core.errors import EgressError, ToolyardError
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.question import LogSink
from toolyard.egress import Egress
from toolyard.providers.mcp import exchange, wire
from toolyard.providers.mcp.failures import BadAnswer, LinkLost, RpcFault
from toolyard.providers.mcp.link import ALL_LISTS, NO_HEADERS, NO_META, NO_NEWS, News, hear
from toolyard.providers.mcp.wire import Message

_log = structlog.stdlib.get_logger("toolyard.providers.mcp")
_MOST_PREPARED = 20_000
_ACKNOWLEDGED_WITHIN = 3.0
"""Seconds that a server has to take a subscription before we go on without knowing."""


class ModernHttp:
    """Keeps nothing but prepared headers between requests; the connections are the egress's."""

    era: Literal["modern"] = "modern"
    lost = False
    relay: None = None

    def __init__(self, provider_id: str, url: str, *, egress: Egress, headers: Mapping[str, str]) -> None:
        self._id = provider_id
        self._url = url
        self._egress = egress
        self._constant = {
            **headers,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": wire.MODERN,
        }
        self._prepared: dict[tuple[str, str | None], dict[str, str]] = {}
        self._ids = count(1)
        self._listener: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._news = NO_NEWS

    async def discover(self) -> JsonObject:
        """
        Raises:
            RpcFault, LinkLost, BadAnswer: as `request`.
        """
        return await self.request("server/discover", {})

    async def request(
        self,
        method: str,
        params: Mapping[str, JsonValue],
        *,
        name: str | None = None,
        meta: JsonObject = NO_META,
        headers: Mapping[str, str] = NO_HEADERS,
        progress: ProgressSink | None = None,
        log: LogSink | None = None,
        repeatable: bool = True,
    ) -> JsonObject:
        request_id = next(self._ids)
        if progress is not None:
            meta = {**meta, "progressToken": request_id}
        prepared = self._prepared.get((method, name)) or self._prepare(method, name)

        def on_message(message: Message) -> None:
            hear(message, request_id=request_id, progress=progress, log=log)

        sent_headers = {**prepared, **headers} if headers else prepared
        body = wire.request(request_id, method, params, meta, modern=True)
        try:
            answer = await exchange.post(
                self._egress, self._url, sent_headers, body, request_id=request_id, on_message=on_message
            )
        except LinkLost as lost:
            if not (repeatable and lost.sent and isinstance(lost.__cause__, EgressError)):
                raise
            # Most likely a kept connection that the server closed just then: a new one is worth a try.
            answer = await exchange.post(
                self._egress, self._url, sent_headers, body, request_id=request_id, on_message=on_message
            )
        return exchange.result_of(answer.message)

    def listen(self, news: News, *, announced: bool) -> None:
        self._news = news
        if announced and self._listener is None:
            self._listener = asyncio.create_task(
                self._follow_changes(ALL_LISTS, news, asyncio.Event()), name=f"changes of {self._id}"
            )

    async def follow(self, uris: frozenset[str]) -> None:
        """A stream of its own, opened before the one it replaces is closed."""
        before, self._following = self._following, None
        if uris:
            begun = asyncio.Event()
            wanted: JsonObject = {"resourceSubscriptions": sorted(uris)}
            news = News(updated=self._news.updated)
            self._following = asyncio.create_task(
                self._follow_changes(wanted, news, begun), name=f"resources of {self._id}"
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(_ACKNOWLEDGED_WITHIN):
                    await begun.wait()
        await _ended(before)

    async def close(self) -> None:
        listener, following = self._listener, self._following
        self._listener = self._following = None
        await _ended(listener)
        await _ended(following)

    def _prepare(self, method: str, name: str | None) -> dict[str, str]:
        prepared = {**self._constant, "Mcp-Method": method}
        if name is not None:
            prepared["Mcp-Name"] = wire.header_value(name)
        if len(self._prepared) < _MOST_PREPARED:
            self._prepared[(method, name)] = prepared
        return prepared

    async def _follow_changes(self, wanted: JsonObject, news: News, begun: asyncio.Event) -> None:
        """Holds one `subscriptions/listen` stream open. When it breaks, the supervisor looks and it is opened again.
        `begun` is set once the server has taken it, or never will.
        """
        pause = 1.0
        while True:
            heard = False

            def on_message(message: Message) -> None:
                nonlocal heard
                heard = True
                if message.get("method") == wire.ACKNOWLEDGED:
                    begun.set()
                hear(message, request_id=None, progress=None, news=news)

            request_id = next(self._ids)
            try:
                answer = await exchange.post(
                    self._egress,
                    self._url,
                    self._prepare("subscriptions/listen", None),
                    wire.request(
                        request_id,
                        "subscriptions/listen",
                        {"notifications": wanted},
                        NO_META,
                        modern=True,
                    ),
                    request_id=request_id,
                    on_message=on_message,
                    endless=True,
                )
                exchange.result_of(answer.message)
            except RpcFault as fault:
                _log.debug("provider sends no changes", provider=self._id, reason=fault.message)
                begun.set()
                return
            except (LinkLost, BadAnswer, ToolyardError) as error:
                _log.debug("stream of changes ended", provider=self._id, reason=error.message)
            pause = 1.0 if heard else min(pause * 2, 60.0)
            await asyncio.sleep(pause)
            news.changed()


async def _ended(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait([task], timeout=1)
