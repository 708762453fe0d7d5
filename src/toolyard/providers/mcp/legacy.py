"""A legacy upstream over streamable HTTP: one initialized session, shared by all calls, renewed unseen once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping
from itertools import count
from typing import Literal

import structlog

from toolyard.core.call import ProgressSink
from toolyard.core.errors import EgressError, ToolyardError
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.question import LogSink
from toolyard.egress import Egress
from toolyard.providers.mcp import exchange, wire
from toolyard.providers.mcp.exchange import Answer
from toolyard.providers.mcp.failures import BadAnswer, LinkLost, RpcFault, SessionLost
from toolyard.providers.mcp.link import NO_HEADERS, NO_META, NO_NEWS, News, hear
from toolyard.providers.mcp.offers import subscribe_each
from toolyard.providers.mcp.relay import Relay
from toolyard.providers.mcp.wire import Message

_log = structlog.stdlib.get_logger("toolyard.providers.mcp")
_COURTESY_SECONDS = 2.0
"""For messages that nobody waits for: cancellations, refusals, the end of a session."""
_REPLY_SECONDS = 10.0
_REPLY_PAUSES = (0.2, 1.0, 5.0)
"""A user's answer is sent again when it is lost on the way: the upstream waits for it, and knows it by its id."""
_MOST_COURTESIES = 100
_MOST_RESUMES = 10


class LegacyHttp:
    era: Literal["legacy"] = "legacy"
    lost = False

    def __init__(
        self,
        provider_id: str,
        url: str,
        *,
        egress: Egress,
        headers: Mapping[str, str],
        limit: float,
        declared: JsonObject = NO_META,
    ) -> None:
        """`declared`: the capabilities that the upstream is told."""
        self.relay = Relay()
        self._declared = declared
        self._id = provider_id
        self._url = url
        self._egress = egress
        self._limit = limit
        self._given = {
            **headers,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        self._headers: dict[str, str] | None = None
        """Those of the present session; their identity tells sessions apart."""
        self._closed = False
        self._renewing = asyncio.Lock()
        self._ids = count(1)
        self._courtesies: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Task[None] | None = None
        self._news = NO_NEWS
        self._followed: frozenset[str] = frozenset()
        self.capabilities: JsonObject = {}

    async def initialize(self) -> None:
        """Opens the first session.

        Raises:
            RpcFault, LinkLost, BadAnswer: the server refused or did not answer.
        """
        request_id = next(self._ids)
        params: JsonObject = {
            "protocolVersion": wire.LEGACY,
            "capabilities": self._declared,
            "clientInfo": wire.client_info(),
        }
        async with asyncio.timeout(self._limit):
            answer = await self._post(
                self._given, wire.request(request_id, "initialize", params, NO_META, modern=False), request_id
            )
            result = exchange.result_of(answer.message)
            version = result.get("protocolVersion")
            if version is None:
                raise BadAnswer("The MCP server's answer to initialize names no protocol version.")
            if version not in wire.LEGACY_VERSIONS:
                raise RpcFault(f"The MCP server wants protocol version {version!r}, which is not spoken here.")
            headers = {**self._given, "MCP-Protocol-Version": str(version)}
            if session := answer.headers.get("Mcp-Session-Id"):
                headers["Mcp-Session-Id"] = session
            await self._post(headers, wire.notification("notifications/initialized"), None)
        capabilities = result.get("capabilities")
        self.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self._headers = headers

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
        session = self._headers
        if session is None:
            session = await self._renew(None)
        try:
            return await self._once(session, method, params, meta, progress=progress, log=log)
        except LinkLost as lost:
            broke_off = isinstance(lost.__cause__, EgressError)
            if lost.sent and not (repeatable and broke_off):
                raise
        return await self._once(await self._renew(session), method, params, meta, progress=progress, log=log)

    def listen(self, news: News, *, announced: bool) -> None:
        """Always opens the GET stream: a server that waits there for an answer to its question gets a refusal."""
        self._news = news
        if self._listener is None:
            self._listener = asyncio.create_task(self._follow_changes(), name=f"changes of {self._id}")

    async def follow(self, uris: frozenset[str]) -> None:
        before, self._followed = self._followed, uris
        await subscribe_each(self, before, uris)

    async def close(self) -> None:
        self._closed = True
        ending = [task for task in (self._listener, *self._courtesies) if task is not None]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending, timeout=1)
        headers, self._headers, self._listener = self._headers, None, None
        if headers is not None and "Mcp-Session-Id" in headers:
            with contextlib.suppress(EgressError):
                await self._egress.request("DELETE", self._url, headers=headers, time_limit=_COURTESY_SECONDS)

    async def _once(
        self,
        session: dict[str, str],
        method: str,
        params: Mapping[str, JsonValue],
        meta: JsonObject,
        *,
        progress: ProgressSink | None,
        log: LogSink | None,
    ) -> JsonObject:
        request_id = next(self._ids)
        if progress is not None:
            meta = {**meta, "progressToken": request_id}
        body = wire.request(request_id, method, params, meta, modern=False)
        try:
            answer = await self._post(session, body, request_id, progress=progress, log=log)
            answer = await self._resume(session, answer, request_id, progress, log)
        except asyncio.CancelledError:
            gone = {"requestId": request_id, "reason": "the caller gave up"}
            self._courtesy(session, wire.notification("notifications/cancelled", gone))
            raise
        except RpcFault as fault:
            if "Mcp-Session-Id" in session and _forgot_session(fault):
                raise SessionLost("The MCP server no longer knows our session.") from fault
            raise
        return exchange.result_of(answer.message)

    async def _post(
        self,
        headers: Mapping[str, str],
        body: bytes,
        request_id: int | None,
        *,
        progress: ProgressSink | None = None,
        log: LogSink | None = None,
    ) -> Answer:
        return await exchange.post(
            self._egress,
            self._url,
            headers,
            body,
            request_id=request_id,
            on_message=lambda message: self._heard(headers, message, request_id, progress, log),
        )

    async def _resume(
        self,
        session: dict[str, str],
        answer: Answer,
        request_id: int,
        progress: ProgressSink | None,
        log: LogSink | None,
    ) -> Answer:
        """A server may end the stream before the response and have it fetched with `Last-Event-ID`."""
        for _ in range(_MOST_RESUMES):
            if answer.message is not None or answer.resume_at is None:
                break
            at = answer.resume_at
            await asyncio.sleep(min((at.retry if at.retry is not None else 1000) / 1000, self._limit))
            answer = await exchange.resume(
                self._egress,
                self._url,
                {**session, "Accept": "text/event-stream", "Last-Event-ID": at.id or ""},
                request_id=request_id,
                on_message=lambda message: self._heard(session, message, request_id, progress, log),
                resume_at=at,
            )
        return answer

    async def _renew(self, stale: dict[str, str] | None) -> dict[str, str]:
        """A session other than `stale`: whoever comes first opens it, the others wait and share it."""
        async with self._renewing:
            if self._closed:
                raise LinkLost("The connection was closed.", sent=False)
            if self._headers is stale or self._headers is None:
                try:
                    await self.initialize()
                except TimeoutError as error:
                    raise LinkLost("The MCP server did not answer to initialize in time.", sent=False) from error
                if stale is not None:
                    self._news.changed()
                    for uri in self._followed:
                        self._aside(self._subscribed_again(uri))
            assert self._headers is not None  # noqa: S101  initialize sets it or raises
            return self._headers

    async def _subscribed_again(self, uri: str) -> None:
        """In the new session, which knows nothing of it."""
        with contextlib.suppress(ToolyardError):
            await self.request("resources/subscribe", {"uri": uri})

    def _heard(
        self,
        headers: Mapping[str, str],
        message: Message,
        request_id: int | None,
        progress: ProgressSink | None = None,
        log: LogSink | None = None,
    ) -> None:
        """`log` takes what is logged on a call's own stream; elsewhere nothing says whose it is."""
        if "method" in message and "id" in message:
            if not self.relay.ask(message, lambda body: self._reply(headers, body)):
                self._courtesy(headers, wire.reply_to(message))
        else:
            hear(message, request_id=request_id, progress=progress, news=self._news, log=log or self.relay.log)

    def _courtesy(self, headers: Mapping[str, str], body: bytes) -> None:
        async def send() -> None:
            with contextlib.suppress(ToolyardError, TimeoutError):
                async with asyncio.timeout(_COURTESY_SECONDS):
                    await self._post(headers, body, None)

        if len(self._courtesies) < _MOST_COURTESIES:
            self._aside(send())

    def _reply(self, headers: Mapping[str, str], body: bytes) -> None:
        """What a caller answered to the upstream's question."""

        async def send() -> None:
            for pause in (0.0, *_REPLY_PAUSES):
                await asyncio.sleep(pause)
                try:
                    async with asyncio.timeout(_REPLY_SECONDS):
                        await self._post(headers, body, None)
                    return
                except (LinkLost, TimeoutError) as lost:
                    _log.warning("an answer did not reach the upstream that asked", provider=self._id, reason=str(lost))
                except ToolyardError as refused:
                    _log.warning(
                        "an answer was refused by the upstream that asked", provider=self._id, reason=refused.message
                    )
                    return

        self._aside(send())

    def _aside(self, sending: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(sending)
        self._courtesies.add(task)
        task.add_done_callback(self._courtesies.discard)

    async def _follow_changes(self) -> None:
        """Holds the GET stream open. When it breaks the supervisor looks, then it is opened again."""
        pause = 1.0
        while True:
            session = self._headers
            began = asyncio.get_running_loop().time()
            if session is not None:
                try:
                    await exchange.resume(
                        self._egress,
                        self._url,
                        {**session, "Accept": "text/event-stream"},
                        request_id=None,
                        on_message=lambda message, session=session: self._heard(session, message, None),
                    )
                except RpcFault as fault:
                    if fault.status != 404:
                        _log.debug("provider sends no changes", provider=self._id, reason=fault.message)
                        return
                except ToolyardError as error:
                    _log.debug("stream of changes ended", provider=self._id, reason=error.message)
            pause = 1.0 if asyncio.get_running_loop().time() - began > 30 else min(pause * 2, 60.0)
            await asyncio.sleep(pause)
            self._news.changed()


def _forgot_session(fault: RpcFault) -> bool:
    """404 is the specification's answer; servers made from the TypeScript SDK's examples say 400 and -32000."""
    return fault.status == 404 or (fault.status == 400 and fault.code == -32000 and "session" in fault.message.lower())
