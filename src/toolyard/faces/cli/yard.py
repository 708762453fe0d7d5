"""A running Toolyard as the commands see it: its documented `/v1` API over HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

import orjson

from toolyard.core.errors import (
    BadInput,
    Conflict,
    EgressError,
    Forbidden,
    NotFound,
    TooLarge,
    ToolyardError,
    Unauthenticated,
)
from toolyard.core.json import JsonObject, JsonValue
from toolyard.faces.cli.failures import NoYard

if TYPE_CHECKING:
    from toolyard.egress import Egress

T = TypeVar("T")
Query: TypeAlias = Mapping[str, str | int | float | None]

_MIB = 1024 * 1024
_LARGEST_ANSWER = 256 * _MIB
_PAGE = 200
_USUAL_SECONDS = 60.0


class Yard:
    def __init__(self, url: str, egress: Egress) -> None:
        """
        Raises:
            BadInput: `url` is no http(s) address.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise BadInput(f"{url!r} is no address.", where="--url", suggestion="Such as http://127.0.0.1:8420.")
        self.url = url.rstrip("/")
        self._egress = egress
        key = os.environ.get("TOOLYARD_KEY")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def get(self, path: str, query: Query | None = None) -> JsonObject:
        return await self.request("GET", path, query=query)

    async def post(self, path: str, body: object, *, time_limit: float = _USUAL_SECONDS) -> JsonObject:
        return await self.request("POST", path, body=body, time_limit=time_limit)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        kind: str = "application/json",
        time_limit: float = _USUAL_SECONDS,
    ) -> JsonObject:
        """The answer's JSON object; empty when the answer has no body. Bytes are sent as they are, as `kind`.

        Raises:
            NoYard: nothing answers, or something that is no Toolyard.
            ToolyardError: what the yard refused, as the error it was there.
        """
        headers = dict(self._headers)
        data = None
        if body is not None:
            headers["Content-Type"] = kind
            data = body if isinstance(body, bytes) else orjson.dumps(body)
        try:
            answer = await self._egress.request(
                method, self._address(path, query), headers=headers, body=data,
                time_limit=time_limit, max_bytes=_LARGEST_ANSWER,
            )  # fmt: skip
        except EgressError as error:
            raise self._nobody(error) from None
        return _opened(answer.status, answer.body, self.url)

    async def pages(self, path: str, query: Query, limit: int) -> list[JsonObject]:
        """Items of a list, page after page, at most `limit`."""
        found: list[JsonObject] = []
        cursor: JsonValue = None
        while len(found) < limit:
            asked = {**query, "limit": min(_PAGE, limit - len(found)), "cursor": cast("str | None", cursor)}
            page = await self.get(path, asked)
            found += cast("list[JsonObject]", page["items"])
            cursor = page.get("next_cursor")
            if cursor is None:
                break
        return found[:limit]

    @asynccontextmanager
    async def stream(self, path: str, query: Query, *, accept: str) -> AsyncGenerator[AsyncIterator[bytes]]:
        """A long answer piece by piece. Raises as `request`."""
        headers = {**self._headers, "Accept": accept}
        try:
            async with self._egress.stream(
                "GET", self._address(path, query), headers=headers, time_limit=3600
            ) as answer:
                if answer.status >= 400:
                    _opened(answer.status, b"".join([chunk async for chunk in answer.chunks]), self.url)
                yield answer.chunks
        except EgressError as error:
            raise self._nobody(error) from None

    def _address(self, path: str, query: Query | None) -> str:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return f"{self.url}{path}?{urlencode(given)}" if given else f"{self.url}{path}"

    def _nobody(self, error: EgressError) -> ToolyardError:
        if error.sent:
            return ToolyardError(f"{self.url} did not answer in time or broke off: {error.message}")
        return NoYard(
            f"No Toolyard answers at {self.url}.",
            suggestion="Start one with `toolyard serve`, or name another with --url or TOOLYARD_URL.",
        )


def segment(text: str) -> str:
    """An id inside a path."""
    return quote(text, safe=":")


def with_yard(url: str, body: Callable[[Yard], Awaitable[T]]) -> T:
    """Run `body` with a yard and give what it gives. Raises what `body` raises."""

    async def run() -> T:
        from toolyard.egress import Egress

        egress = Egress()
        try:
            return await body(Yard(url, egress))
        finally:
            await egress.close()

    return asyncio.run(run())


def _opened(status: int, data: bytes, url: str) -> JsonObject:
    try:
        value: object = orjson.loads(data) if data else {}
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise NoYard(f"What answers at {url} is no Toolyard.", suggestion="Check --url or TOOLYARD_URL.")
    answer = cast("dict[str, JsonValue]", value)
    if status >= 400:
        raise _refusal(status, answer)
    return answer


def _refusal(status: int, answer: Mapping[str, JsonValue]) -> ToolyardError:
    message = str(answer.get("error") or answer.get("detail") or f"The yard answered with status {status}.")
    told = answer.get("suggestion")
    suggestion = str(told) if told else None
    if status == 401:
        suggestion = "Set TOOLYARD_KEY to a key; `toolyard keys create` makes one."
    kinds: Mapping[int, type[ToolyardError]] = {
        401: Unauthenticated,
        403: Forbidden,
        404: NotFound,
        409: Conflict,
        413: TooLarge,
        400: BadInput,
        422: BadInput,
    }
    return kinds.get(status, ToolyardError)(message, suggestion=suggestion)
