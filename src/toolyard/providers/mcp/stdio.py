"""An MCP server as a child process, of either era."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping, Sequence

from toolyard.core.errors import BadInput, ProviderError
from toolyard.core.json import JsonObject
from toolyard.egress import without_secrets
from toolyard.providers.mcp import wire
from toolyard.providers.mcp.failures import BadAnswer, RpcFault
from toolyard.providers.mcp.http import versions_of
from toolyard.providers.mcp.link import NO_META, Link
from toolyard.providers.mcp.provider import McpProvider
from toolyard.providers.mcp.stdio_link import StdioLink

_SECRET_FLAG = re.compile(r"key|token|secret|passw|auth|credential", re.IGNORECASE)


class McpStdioProvider(McpProvider):
    """A command that speaks MCP on stdin and stdout; its stderr goes to the log, line by line.

    It sees `env` and a few harmless variables of ours (PATH, HOME, ...), nothing else. The first element of `command`
    is looked up on PATH. `time_limit` (seconds) is its tools' own limit, `probe_limit` how long it may take to say
    which era it speaks before the legacy handshake is tried.
    """

    most_asking = 8
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

    async def _connect_asking(self, declared: JsonObject) -> Link:
        """A process of its own: what a stdio server may ask is settled once, when it starts."""
        link = StdioLink(self._id)
        await link.start(self._command, env=self._env, cwd=self._cwd)
        link.era = "legacy"
        try:
            async with asyncio.timeout(self.start_limit):
                await self._initialize(link, declared)
        except TimeoutError as error:
            await link.close()
            raise ProviderError(f"{self._address} did not answer to initialize in time.") from error
        except BaseException:
            await link.close()
            raise
        return link

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

    async def _initialize(self, link: StdioLink, declared: JsonObject = NO_META) -> JsonObject:
        result = await link.request(
            "initialize",
            {"protocolVersion": wire.LEGACY, "capabilities": declared, "clientInfo": wire.client_info()},
        )
        version = result.get("protocolVersion")
        if version is None:
            raise ProviderError(f"{self._address} answered initialize without a protocol version.")
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
