"""What every MCP provider does, whatever its transport: list, call, ask for health, end."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress

from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError, ErrorCode, ProtocolError, ProviderError, Unreachable
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.offer import READ_RESOURCE, Offers
from toolyard.core.tool import Kind, Tool
from toolyard.providers.base import Invocation
from toolyard.providers.mcp import upstream_tasks
from toolyard.providers.mcp.asking_links import AskingLinks
from toolyard.providers.mcp.definitions import HeaderMap, Unusable, param_headers, read_definition
from toolyard.providers.mcp.failures import BadAnswer, LinkLost, RpcFault
from toolyard.providers.mcp.link import NO_HEADERS, Link, News, nothing
from toolyard.providers.mcp.offers import offers_of, to_offer_result
from toolyard.providers.mcp.relay import RETRY_PAUSES, asked_of, meta_of, needs_input, params_of, state_alone
from toolyard.providers.mcp.results import to_result
from toolyard.providers.offers import Completion

MOST_TOOLS = 10_000
MOST_PAGES = 500
_AT_ONCE = 200
"""Definitions read before others get a turn."""


class McpProvider(ABC):
    """A connection that is made anew by each `start`, and the tools listed through it."""

    kind = Kind.MCP
    most_asking = 64
    """Sessions that are kept for callers who can be asked."""

    def __init__(self, provider_id: str, address: str, *, time_limit: float) -> None:
        self._id = provider_id
        self._address = address
        self._time_limit = time_limit
        self._link: Link | None = None
        self._asking = AskingLinks(self._connect_asking, most=self.most_asking)
        self._header_maps: dict[str, HeaderMap] = {}
        self._skipped: tuple[str, ...] = ()
        self._notify: Callable[[], None] = nothing
        self._updated: Callable[[str], None] = nothing
        self._capabilities: JsonObject = {}
        self._followed: frozenset[str] = frozenset()

    @abstractmethod
    async def _connect_asking(self, declared: JsonObject) -> Link:
        """Another legacy session, whose server is told these capabilities.

        Raises:
            ProviderError: it cannot be opened.
        """

    @abstractmethod
    async def _connect(self) -> tuple[Link, JsonObject]:
        """A link whose era is settled, and the capabilities that the server declared."""

    @property
    def id(self) -> str:
        return self._id

    @property
    def address(self) -> str:
        return self._address

    @property
    def era(self) -> str | None:
        return self._link.era if self._link else None

    @property
    def skipped(self) -> tuple[str, ...]:
        """What the last list left out, and why."""
        return self._skipped

    async def start(self) -> None:
        """Connects; an earlier connection is given up.

        Raises:
            ProviderError: it cannot be reached, refuses us, or speaks no version that we speak.
        """
        await self.close()
        link, capabilities = await self._connect()
        self._link, self._capabilities = link, capabilities
        each = (capabilities.get(kind) for kind in ("tools", "prompts", "resources"))
        announced = any(isinstance(one, dict) and one.get("listChanged") is True for one in each)
        link.listen(News(self._changed, self._resource_changed), announced=announced)
        if self._followed:
            with suppress(ProviderError):  # it offers them no more, and is heard of when it changes
                await link.follow(self._followed)

    async def tools(self) -> Sequence[Tool]:
        """All pages of `tools/list`; definitions that cannot be used are in `skipped`.

        Raises:
            ProviderError: no answer, or one that is no list.
        """
        link = self._linked()
        if "tools" not in self._capabilities and self._capabilities.keys() & {"resources", "prompts"}:
            return []
        tools: dict[str, Tool] = {}
        header_maps: dict[str, HeaderMap] = {}
        skipped: list[str] = []
        cursor: str | None = None
        cursors: set[str] = set()
        for _ in range(MOST_PAGES):
            page = await link.request("tools/list", {} if cursor is None else {"cursor": cursor})
            entries = page.get("tools")
            if not isinstance(entries, list):
                raise ProviderError(f"{self._address} answered tools/list without a list of tools.")
            for index, wire in enumerate(entries[: MOST_TOOLS - len(tools)]):
                self._take(wire, tools, header_maps, skipped)
                if index % _AT_ONCE == _AT_ONCE - 1:
                    await asyncio.sleep(0)
            following = page.get("nextCursor")
            cursor = following if isinstance(following, str) and following else None
            if len(tools) >= MOST_TOOLS and (cursor or len(entries) > MOST_TOOLS):
                skipped.append(f"all tools after the first {MOST_TOOLS}")
                break
            if cursor in cursors:
                skipped.append("the rest of the list: its pages repeat")
                break
            if cursor is None:
                break
            cursors.add(cursor)
            await asyncio.sleep(0)
        else:
            skipped.append(f"all tools after the first {MOST_PAGES} pages of the list")
        self._header_maps = header_maps
        self._skipped = tuple(skipped)
        return list(tools.values())

    async def call(self, invocation: Invocation) -> ToolResult:
        """
        Raises:
            CallError: upstream, with the server's own message; `Unreachable` when it did not answer.
        """
        link = self._link
        if link is None:
            raise Unreachable(f"Provider '{self._id}' is not connected.")
        if invocation.may_ask and link.era == "legacy":
            return await self._call_asking(invocation)
        return await self._call(link, invocation)

    async def _call_asking(self, invocation: Invocation) -> ToolResult:
        """On a session of the caller's own, on which the upstream may ask what this caller can answer."""
        async with AsyncExitStack() as stack:
            asking = self._asking.of(invocation.principal.label, invocation.may_ask)
            try:
                link = await stack.enter_async_context(asking)
            except ProviderError as error:
                raise Unreachable(error.message, suggestion=error.suggestion) from error
            except TimeoutError as error:
                raise Unreachable(f"{self._address} did not answer to initialize in time.") from error
            if link.relay is not None:
                stack.enter_context(link.relay.serving(invocation))
            return await self._call(link, invocation)

    async def _call(self, link: Link, invocation: Invocation) -> ToolResult:
        tool = invocation.tool
        task_id = upstream_tasks.task_in(invocation.upstream_state)
        try:
            if tool.offer:
                return await self._offered(link, invocation)
            if task_id is not None:
                return to_result(await upstream_tasks.resume(link, task_id, invocation))
            result = await self._send(link, invocation)
            if link.era == "modern" and upstream_tasks.is_task(result):
                result = await upstream_tasks.follow(link, result, invocation)
            elif result.get("resultType") == "input_required":
                raise needs_input(result)
        except RpcFault as fault:
            if not fault.code:
                raise CallError(ErrorCode.UPSTREAM, fault.message) from None
            raise ProtocolError(fault.code, fault.message, fault.data) from None
        except BadAnswer as bad:
            raise CallError(bad.code, bad.message, suggestion=bad.suggestion) from None
        except LinkLost as lost:
            raise _unreachable(lost, tool) from lost
        return to_result(result)

    async def _offered(self, link: Link, invocation: Invocation) -> ToolResult:
        result = await self._send(link, invocation)
        if result.get("resultType") == "input_required":
            raise needs_input(result)
        return to_offer_result(result, "contents" if invocation.tool.name == READ_RESOURCE else "messages")

    async def _send(self, link: Link, invocation: Invocation) -> JsonObject:
        """The result of the invocation's request, which is sent again for as long as its answer is only a state."""
        tool, arguments = invocation.tool, invocation.arguments
        header_map = None if tool.offer else self._header_maps.get(tool.name)
        params = params_of(invocation)
        pauses = iter(RETRY_PAUSES)
        while True:
            result = await link.request(
                tool.name if tool.offer else "tools/call",
                params,
                name=str(arguments.get("uri", arguments.get("name"))) if tool.offer else tool.name,
                meta=meta_of(invocation) if link.era == "modern" else invocation.trace,
                headers=param_headers(header_map, arguments) if header_map else NO_HEADERS,
                progress=invocation.progress,
                log=invocation.log,
                repeatable=bool(tool.annotations.read_only or tool.annotations.idempotent),
            )
            state = state_alone(result)
            pause = None if state is None else next(pauses, None)
            if pause is None:
                return result
            await asyncio.sleep(pause)
            params = {**asked_of(invocation), "requestState": state}

    async def offers(self) -> Offers:
        return await offers_of(self._linked(), self._capabilities)

    async def complete(self, completion: Completion) -> JsonObject:
        params: dict[str, JsonValue] = {
            "ref": completion.reference,
            "argument": {"name": completion.argument, "value": completion.value},
        }
        if completion.given:
            params["context"] = {"arguments": completion.given}
        try:
            found = (await self._linked().request("completion/complete", params)).get("completion")
        except RpcFault as fault:
            raise ProtocolError(fault.code, fault.message, fault.data) from None
        except ProviderError as error:
            raise Unreachable(error.message) from error
        if not isinstance(found, dict) or not isinstance(found.get("values"), list):
            raise CallError(ErrorCode.UPSTREAM, f"{self._address} answered with no list of values.")
        return found

    async def follow(self, uris: frozenset[str]) -> None:
        self._followed = uris
        if self._link is not None:
            await self._link.follow(uris)

    def on_update(self, notify: Callable[[str], None]) -> None:
        self._updated = notify

    async def abandon(self, upstream_state: str) -> None:
        """Cancel the task that waits for answers, if the state names one."""
        task_id, link = upstream_tasks.task_in(upstream_state), self._link
        if task_id is not None and link is not None:
            await upstream_tasks.cancel(link, task_id)

    async def health(self) -> None:
        """
        Raises:
            ProviderError: the server does not answer.
        """
        link = self._linked()
        try:
            await link.request("server/discover" if link.era == "modern" else "ping", {})
        except RpcFault as fault:
            if not fault.code:
                raise  # an HTTP refusal; a JSON-RPC error, even to ping, is an answer

    def on_change(self, notify: Callable[[], None]) -> None:
        self._notify = notify

    async def close(self) -> None:
        link, self._link = self._link, None
        await self._asking.close()
        if link is not None:
            await link.close()

    def _resource_changed(self, uri: str) -> None:
        self._updated(uri)

    def _changed(self) -> None:
        self._notify()

    def _linked(self) -> Link:
        if self._link is None:
            raise ProviderError(f"Provider '{self._id}' is not connected.")
        return self._link

    def _take(
        self, wire: JsonValue, tools: dict[str, Tool], header_maps: dict[str, HeaderMap], skipped: list[str]
    ) -> None:
        over_http = self._link is not None and self._link.era == "modern"
        try:
            definition = read_definition(self._id, wire, modern=over_http, time_limit=self._time_limit)
        except Unusable as reason:
            skipped.append(str(reason))
            return
        name = definition.tool.name
        if name in tools:
            skipped.append(f"{name!r} is listed twice; the first one is used")
            return
        tools[name] = definition.tool
        if definition.header_map:
            header_maps[name] = definition.header_map


def _unreachable(lost: LinkLost, tool: Tool) -> Unreachable:
    if lost.sent and not tool.annotations.read_only:
        return Unreachable(
            f"{lost.message} The outcome is unknown: {tool.name!r} may have taken effect.",
            suggestion="Check before you call it again.",
        )
    return Unreachable(lost.message, suggestion=lost.suggestion)
