"""JSON-RPC over one pair of pipes, of either era."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

import structlog

from toolyard.core.call import ProgressSink
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.question import LogSink
from toolyard.providers.mcp import exchange, wire
from toolyard.providers.mcp.child import Child
from toolyard.providers.mcp.failures import BadAnswer, LinkLost, RpcFault
from toolyard.providers.mcp.link import ALL_LISTS, NO_HEADERS, NO_META, NO_NEWS, Era, News, hear
from toolyard.providers.mcp.offers import subscribe_each
from toolyard.providers.mcp.relay import Relay
from toolyard.providers.mcp.wire import Message

_log = structlog.stdlib.get_logger("toolyard.providers.mcp")
_ACKNOWLEDGED_WITHIN = 3.0
"""Seconds that a server has to take a subscription before we go on without knowing."""
_LAST_WORDS_SECONDS = 1.0
"""How long a server that stopped reading may take to be seen ending, so that its own words can be told."""


@dataclass(slots=True)
class _Waiting:
    answer: asyncio.Future[Message]
    progress: ProgressSink | None
    log: LogSink | None


class StdioLink:
    """Many requests over one pair of pipes."""

    def __init__(self, provider_id: str) -> None:
        self._id = provider_id
        self.era: Era = "modern"
        self.relay = Relay()
        self._child: Child | None = None
        self._ids = count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._ended: str | None = None
        self._news = NO_NEWS
        self._followed: frozenset[str] = frozenset()
        self._following: asyncio.Task[None] | None = None
        self._acknowledged = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()

    async def start(self, command: Sequence[str], *, env: Mapping[str, str], cwd: str | None) -> None:
        """
        Raises:
            ProviderError: no process can be made.
        """
        self._child = await Child.start(self._id, command, env=env, cwd=cwd, on_line=self._heard, on_end=self._lost)

    @property
    def lost(self) -> bool:
        return self._ended is not None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

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
        if self._ended is not None or self._child is None:
            raise LinkLost(f"The MCP server is gone. {self._ended or ''}".strip(), sent=False)
        waiting = _Waiting(asyncio.get_running_loop().create_future(), progress, log)
        self._waiting[request_id] = waiting
        try:
            await self._child.send(wire.request(request_id, method, params, meta, modern=self.era == "modern"))
            return exchange.result_of(await waiting.answer)
        except OSError as error:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await waiting.answer  # most often it has just ended: `_lost` is about to say with which words
            raise LinkLost("The MCP server no longer reads what it is sent.", sent=True) from error
        except asyncio.CancelledError:
            gone = {"requestId": request_id, "reason": "the caller gave up"}
            self._post(wire.notification("notifications/cancelled", gone))
            raise
        finally:
            del self._waiting[request_id]

    async def notify_server(self, method: str) -> None:
        if self._child is not None:
            try:
                await self._child.send(wire.notification(method))
            except OSError as error:
                raise LinkLost("The MCP server no longer reads what it is sent.", sent=False) from error

    def listen(self, news: News, *, announced: bool) -> None:
        self._news = news
        if self._ended is not None:
            news.changed()
        elif self.era == "modern" and announced:
            self._in_background(self._follow_changes(ALL_LISTS))

    async def follow(self, uris: frozenset[str]) -> None:
        before, self._followed = self._followed, uris
        if self.era == "legacy":
            await subscribe_each(self, before, uris)
            return
        older, self._following = self._following, None
        if uris:
            self._acknowledged.clear()
            self._following = self._in_background(self._follow_changes({"resourceSubscriptions": sorted(uris)}))
            with suppress(TimeoutError):
                async with asyncio.timeout(_ACKNOWLEDGED_WITHIN):
                    await self._acknowledged.wait()
        if older is not None:
            older.cancel()

    async def close(self) -> None:
        self._news = NO_NEWS
        for task in list(self._background):
            task.cancel()
        child, self._child = self._child, None
        if child is not None:
            await child.close()
        self._lost("It was closed.")

    async def _follow_changes(self, wanted: JsonObject) -> None:
        try:
            await self.request("subscriptions/listen", {"notifications": wanted})
        except RpcFault as fault:
            _log.debug("provider sends no changes", provider=self._id, reason=fault.message)
            self._acknowledged.set()
        except (LinkLost, BadAnswer):
            return  # `_lost` has told the supervisor already

    def _heard(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = exchange.parse(line)
        except BadAnswer:
            _log.info("stdout holds what is no JSON-RPC", provider=self._id, line=line[:200].decode(errors="replace"))
            return
        if "method" not in message:
            self._answered(message)
        elif "id" in message:
            if not self.relay.ask(message, self._post):
                self._post(wire.reply_to(message))
        else:
            token = _token(message)
            waiting = self._waiting.get(token) if token is not None else None
            progress = waiting.progress if waiting else None
            if message.get("method") == wire.ACKNOWLEDGED:
                self._acknowledged.set()
            hear(message, request_id=token, progress=progress, news=self._news, log=self._log)

    def _log(self, said: JsonObject) -> None:
        """Nothing says whose it is: it is told where only one call can be meant."""
        sinks = [waiting.log for waiting in self._waiting.values() if waiting.log is not None]
        if len(sinks) == 1 and len(self._waiting) == 1:
            sinks[0](said)
        else:
            self.relay.log(said)

    def _answered(self, message: Message) -> None:
        request_id = message.get("id")
        waiting = self._waiting.get(request_id) if isinstance(request_id, int) else None
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_result(message)

    def _lost(self, reason: str) -> None:
        if self._ended is not None:
            return
        self._ended = reason
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(LinkLost(f"The MCP server is gone. {reason}", sent=True))
        self._news.changed()

    def _post(self, line: bytes) -> None:
        """Sends what nobody waits for."""

        async def send() -> None:
            if self._child is not None:
                try:
                    await self._child.send(line)
                except OSError:
                    return  # `_lost` follows

        if len(self._background) < 100:
            self._in_background(send())

    def _in_background(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


def _token(message: Message) -> int | None:
    params = message.get("params")
    token = params.get("progressToken") if isinstance(params, dict) else None
    return token if isinstance(token, int) else None
