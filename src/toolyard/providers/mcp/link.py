"""What a provider needs of a connection to an MCP server, whatever the era and the transport."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from toolyard.core.call import Progress, ProgressSink
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.question import LogSink
from toolyard.providers.mcp.relay import Relay
from toolyard.providers.mcp.wire import LISTS_CHANGED, LOG, PROGRESS, RESOURCE_UPDATED, Message

Era: TypeAlias = Literal["modern", "legacy"]
NO_META: JsonObject = {}
NO_HEADERS: Mapping[str, str] = {}
ALL_LISTS: JsonObject = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
"""What we listen to of a modern server: what it does not have it leaves out of its acknowledgement."""


def nothing(*_: object) -> None:
    """Hears, and does nothing."""


@dataclass(frozen=True, slots=True)
class News:
    """Whom a link tells that a list changed or that it was lost (`changed`), and which resource is another one."""

    changed: Callable[[], None] = nothing
    updated: Callable[[str], None] = nothing


NO_NEWS = News()


class Link(Protocol):
    """A way to an upstream whose era is settled."""

    @property
    def era(self) -> Era: ...
    @property
    def relay(self) -> Relay | None:
        """Of a legacy session."""
        ...

    @property
    def lost(self) -> bool:
        """Whether nothing can be sent through it any more."""
        ...

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
        """The `result` of one request.

        Args:
            name: what `Mcp-Name` says (modern HTTP).
            meta: goes into `_meta`.
            headers: `Mcp-Param-*` (modern HTTP).
            log: takes log messages of this request (modern); a legacy session's go to its `relay`.
            repeatable: whether it may be sent twice when the first time got no answer.

        Raises:
            RpcFault: the upstream answered with an error.
            LinkLost: it did not answer.
            BadAnswer: its answer cannot be used.
        """
        ...

    def listen(self, news: News, *, announced: bool) -> None:
        """From now on `news` is told. `announced`: the server declared that it tells of changes. Called once."""
        ...

    async def follow(self, uris: frozenset[str]) -> None:
        """From now on the server tells of changes of exactly these resources, also in a session to come.

        Raises:
            RpcFault, LinkLost, BadAnswer: it was not told so.
        """
        ...

    async def close(self) -> None: ...


def hear(
    message: Message,
    *,
    request_id: int | None,
    progress: ProgressSink | None,
    news: News = NO_NEWS,
    log: Callable[[JsonObject], None] | None = None,
) -> None:
    """Passes a notification of the upstream on; unknown ones are nobody's business."""
    method = message.get("method")
    if method in LISTS_CHANGED:
        news.changed()
    elif method == RESOURCE_UPDATED:
        updated = message.get("params")
        if isinstance(updated, dict) and isinstance(uri := updated.get("uri"), str):
            news.updated(uri)
    elif method == LOG and log is not None:
        said = message.get("params")
        if isinstance(said, dict):
            log(said)
    elif method == PROGRESS and progress is not None:
        params = message.get("params")
        if isinstance(params, dict) and params.get("progressToken") == request_id:
            report = _progress(params)
            if report is not None:
                progress(report)


def _progress(params: JsonObject) -> Progress | None:
    done, total, text = params.get("progress"), params.get("total"), params.get("message")
    if not isinstance(done, int | float):
        return None
    return Progress(done, total if isinstance(total, int | float) else None, text if isinstance(text, str) else None)
