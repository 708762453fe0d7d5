"""An MCP server as a child process, of either era."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import structlog

from toolyard.core.call import ProgressSink
from toolyard.core.errors import BadInput, ProviderError
from toolyard.core.json import JsonObject, JsonValue
from toolyard.egress import without_secrets
from toolyard.providers.mcp import exchange, wire
from toolyard.providers.mcp.child import Child
from toolyard.providers.mcp.failures import BadAnswer, LinkLost, RpcFault
from toolyard.providers.mcp.http import versions_of
from toolyard.providers.mcp.link import NO_HEADERS, NO_META, Era, Link, hear
from toolyard.providers.mcp.provider import McpProvider
from toolyard.providers.mcp.wire import Message

_SECRET_FLAG = re.compile(r"key|token|secret|passw|auth|credential", re.IGNORECASE)
_log = structlog.stdlib.get_logger("toolyard.providers.mcp")


@dataclass(slots=True)
class _Waiting:
    answer: asyncio.Future[Message]
    progress: ProgressSink | None


class StdioLink:
    """Many requests over one pair of pipes."""

    def __init__(self, provider_id: str) -> None:
        self._id = provider_id
        self.era: Era = "modern"
        self._child: Child | None = None
        self._ids = count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._ended: str | None = None
        self._notify: Callable[[], None] = _nobody
        self._background: set[asyncio.Task[None]] = set()

    async def start(self, command: Sequence[str], *, env: Mapping[str, str], cwd: str | None) -> None:
        """
        Raises:
            ProviderError: no process can be made.
        """
        self._child = await Child.start(self._id, command, env=env, cwd=cwd, on_line=self._heard, on_end=self._lost)

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
        repeatable: bool = True,
    ) -> JsonObject:
        request_id = next(self._ids)
        if progress is not None:
            meta = {**meta, "progressToken": request_id}
        if self._ended is not None or self._child is None:
            raise LinkLost(f"The MCP server is gone. {self._ended or ''}".strip(), sent=False)
        waiting = _Waiting(asyncio.get_running_loop().create_future(), progress)
        self._waiting[request_id] = waiting
        try:
            await self._child.send(wire.request(request_id, method, params, meta, modern=self.era == "modern"))
            return exchange.result_of(await waiting.answer)
        except OSError as error:
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

    def listen(self, notify: Callable[[], None], *, announced: bool) -> None:
        self._notify = notify
        if self._ended is not None:
            notify()
        elif self.era == "modern" and announced:
            self._in_background(self._follow_changes())

    async def close(self) -> None:
        self._notify = _nobody
        for task in list(self._background):
            task.cancel()
        child, self._child = self._child, None
        if child is not None:
            await child.close()
        self._lost("It was closed.")

    async def _follow_changes(self) -> None:
        try:
            await self.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        except RpcFault as fault:
            _log.debug("provider sends no changes", provider=self._id, reason=fault.message)
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
            self._post(wire.reply_to(message))
        else:
            token = _token(message)
            waiting = self._waiting.get(token) if token is not None else None
            hear(message, request_id=token, progress=waiting.progress if waiting else None, changed=self._changed)

    def _answered(self, message: Message) -> None:
        request_id = message.get("id")
        waiting = self._waiting.get(request_id) if isinstance(request_id, int) else None
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_result(message)

    def _changed(self) -> None:
        self._notify()

    def _lost(self, reason: str) -> None:
        if self._ended is not None:
            return
        self._ended = reason
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(LinkLost(f"The MCP server is gone. {reason}", sent=True))
        self._notify()

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

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


class McpStdioProvider(McpProvider):
    """A command that speaks MCP on stdin and stdout; its stderr goes to the log, line by line.

    It sees `env` and a few harmless variables of ours (PATH, HOME, ...), nothing else. The first element of `command`
    is looked up on PATH. `time_limit` (seconds) is its tools' own limit, `probe_limit` how long it may take to say
    which era it speaks before the legacy handshake is tried.
    """

    start_limit = 60.0
    """A first start may have to download the server (npx, uvx)."""

    def __init__(
        self,
        provider_id: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        time_limit: float = 30,
        probe_limit: float = 5,
    ) -> None:
        if not command or not all(command[:1]):
            raise BadInput("A stdio provider needs a command.", where="command")
        super().__init__(provider_id, shown(command), time_limit=time_limit)
        self._command = tuple(command)
        self._env = dict(env or {})
        self._cwd = cwd
        self._probe_limit = probe_limit

    @property
    def pid(self) -> int | None:
        """The process that guards the server while it runs."""
        return self._link.pid if isinstance(self._link, StdioLink) else None

    async def _connect(self) -> tuple[Link, JsonObject]:
        link = StdioLink(self._id)
        await link.start(self._command, env=self._env, cwd=self._cwd)
        try:
            capabilities = await self._settle_era(link)
        except BaseException:
            await link.close()
            raise
        return link, capabilities

    async def _settle_era(self, link: StdioLink) -> JsonObject:
        found = await self._discover(link)
        if found is None:
            link.era = "legacy"
            try:
                found = await self._initialize(link)
            except RpcFault as fault:
                # Perhaps a modern server that started too slowly for the first question.
                link.era = "modern"
                found = await self._discover(link)
                if found is None:
                    raise ProviderError(f"{self._address} refused: {fault.message}") from fault
        capabilities = found.get("capabilities")
        return capabilities if isinstance(capabilities, dict) else {}

    async def _discover(self, link: StdioLink) -> JsonObject | None:
        """What a modern server says of itself; None when this is not certainly one."""
        try:
            async with asyncio.timeout(self._probe_limit):
                found = await link.request("server/discover", {})
        except (TimeoutError, RpcFault, BadAnswer):
            return None
        return found if wire.MODERN in versions_of(found.get("supportedVersions")) else None

    async def _initialize(self, link: StdioLink) -> JsonObject:
        result = await link.request(
            "initialize",
            {"protocolVersion": wire.LEGACY, "capabilities": {}, "clientInfo": wire.client_info()},
        )
        version = result.get("protocolVersion")
        if version not in wire.LEGACY_VERSIONS:
            raise ProviderError(f"{self._address} wants protocol version {version!r}, which is not spoken here.")
        await link.notify_server("notifications/initialized")
        return result


def shown(command: Sequence[str]) -> str:
    """The command line for people, with what looks like a secret left out."""
    words: list[str] = []
    hidden = False
    for word in command:
        flag, equals, _ = word.partition("=")
        secret = bool(words) and _SECRET_FLAG.search(flag) is not None
        if hidden:
            words.append("...")
        else:
            words.append(f"{flag}=..." if secret and equals else shlex.quote(_without_user(word)))
        hidden = secret and not hidden and not equals and word.startswith("-")
    return " ".join(words)[:300]


def _without_user(word: str) -> str:
    return without_secrets(word) if "://" in word else word


def _token(message: Message) -> int | None:
    params = message.get("params")
    token = params.get("progressToken") if isinstance(params, dict) else None
    return token if isinstance(token, int) else None


def _nobody() -> None:
    """Until somebody listens."""
