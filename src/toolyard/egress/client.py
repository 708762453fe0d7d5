"""`Egress`: a pooled HTTP client under one address policy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import aiohttp
import yarl

from toolyard.core.errors import EgressError
from toolyard.egress import failures
from toolyard.egress.policy import OPEN, AddressPolicy
from toolyard.egress.redirects import LONGEST_CHAIN, headers_for, next_location
from toolyard.egress.sockets import connector

if TYPE_CHECKING:
    import httpx2

MIB = 1024 * 1024
CONNECT_SECONDS = 5.0
_CHUNK = 64 * 1024
_USER_AGENT = "toolyard"

Headers: TypeAlias = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. `body` is decoded (no gzip) and at most `max_bytes` long; `url` is where it came from.

    `cut_by` says why the body is not all there is: the byte cap, or the time limit of a `keep_partial` request.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    cut_by: Literal["size", "time"] | None = None

    @property
    def truncated(self) -> bool:
        return self.cut_by is not None


@dataclass(frozen=True, slots=True)
class StreamedResponse:
    """An answer whose body is read piece by piece, or by `read` at once. Both raise `EgressError`.

    `read(most)` is the whole body, or None when it has more than `most` bytes.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    url: str
    read: Callable[[int], Awaitable[bytes | None]]


class Egress:
    """The only HTTP client there is. Make one per address policy and keep it: its connections are pooled.

    No cookies are kept, no proxy or netrc is read from the environment, and a redirect is followed only as
    `redirects.py` says.
    """

    def __init__(self, *, policy: AddressPolicy = OPEN) -> None:
        self.policy = policy
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Headers = (),
        body: bytes | None = None,
        time_limit: float = 30,
        max_bytes: int = 10 * MIB,
        encoded: bool = False,
        follow: bool = True,
        keep_partial: bool = False,
    ) -> Response:
        """Send one request and read its whole answer.

        Args:
            time_limit: seconds for everything, redirects included.
            max_bytes: of the decoded body; what comes beyond is not read, and `cut_by` is "size".
            encoded: the URL is percent-encoded already and goes on the wire byte for byte.
            follow: whether a redirect of GET or HEAD is followed (at most five).
            keep_partial: when time runs out within a body, return what came instead of raising.

        Raises:
            EgressError: no answer, or not all of it. `sent` says whether it may have been received.
            AddressRefused: the policy does not allow the address.
        """
        limits = aiohttp.ClientTimeout(total=time_limit, sock_connect=min(CONNECT_SECONDS, time_limit))
        try:
            for _ in range(LONGEST_CHAIN + 1):
                async with self._send(method, url, headers, body, limits, encoded=encoded) as answer:
                    target = next_location(method, url, answer.status, answer.headers.get("Location"))
                    if target is None or not follow:
                        content, cut_by = await _read(answer, max_bytes, keep_partial=keep_partial)
                        return Response(answer.status, answer.headers, content, url, cut_by)
                headers = headers_for(headers.items() if isinstance(headers, Mapping) else headers, url, target)
                # A signed address must go out as it was given; one with raw spaces or umlauts has to be quoted.
                url, encoded = target, target.isascii() and " " not in target
        except TimeoutError as error:
            raise _timeout(error, url, time_limit) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise failures.of(error, url) from error
        raise EgressError(
            f"{failures.host_of(url)} redirects more than {LONGEST_CHAIN} times.",
            suggestion="Give the address that it finally leads to.",
            sent=True,
        )

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Headers = (),
        body: bytes | None = None,
        time_limit: float | None = 30,
        idle_limit: float | None = 300,
        encoded: bool = False,
    ) -> AsyncGenerator[StreamedResponse]:
        """Send a request and hand out its body as it comes, for server-sent events. Redirects are handed back.

        Args:
            time_limit: seconds until the head of the answer is there; None leaves it to whoever cancels.
            idle_limit: seconds without a single byte after which `chunks` raises; None waits for ever.

        Raises:
            EgressError: as for `request`; also out of `chunks`.
        """
        limits = _stream_limits(time_limit, idle_limit)
        try:
            if time_limit is None:
                answer = await self._send(method, url, headers, body, limits, encoded=encoded)
            else:
                async with asyncio.timeout(time_limit):
                    answer = await self._send(method, url, headers, body, limits, encoded=encoded)
        except TimeoutError as error:
            raise _timeout(error, url, time_limit or CONNECT_SECONDS) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise failures.of(error, url) from error
        try:
            chunks = _chunks(answer, url)
            yield StreamedResponse(answer.status, answer.headers, chunks, url, partial(_whole, answer, chunks, url))
        finally:
            answer.close()

    def sdk_client(
        self,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | float | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        """An httpx2 client under the same policy and TLS context, for SDKs that want one. The caller closes it."""
        from toolyard.egress.httpx2_client import build

        return build(self.policy, headers=headers, timeout=timeout, auth=auth)

    async def close(self) -> None:
        """Close the pool. A later request opens a new one."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _send(
        self,
        method: str,
        url: str,
        headers: Headers,
        body: bytes | None,
        limits: aiohttp.ClientTimeout,
        *,
        encoded: bool,
    ) -> aiohttp.client._RequestContextManager:  # pyright: ignore[reportPrivateUsage]
        session = self._session
        if session is None:
            session = self._session = self._open()
        return session.request(
            method,
            yarl.URL(url, encoded=True) if encoded else url,
            headers=headers,
            data=body,
            timeout=limits,
            allow_redirects=False,
        )

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector(self.policy),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            headers={"User-Agent": _USER_AGENT},
            # A request without a body has no type, and a body's type is its sender's to state.
            skip_auto_headers=("Content-Type",),
        )


async def _read(
    answer: aiohttp.ClientResponse, max_bytes: int, *, keep_partial: bool
) -> tuple[bytes, Literal["size", "time"] | None]:
    length = answer.content_length
    known = length is not None and length <= max_bytes and "Content-Encoding" not in answer.headers
    if known and (not keep_partial or answer.content.is_eof()):
        return await answer.read(), None
    taken = bytearray()
    try:
        async for chunk in answer.content.iter_chunked(_CHUNK):
            taken += chunk
            if len(taken) > max_bytes:
                answer.close()
                return bytes(taken[:max_bytes]), "size"
    except TimeoutError:
        if not keep_partial:
            raise
        return bytes(taken), "time"
    return bytes(taken), None


async def _chunks(answer: aiohttp.ClientResponse, url: str) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    except TimeoutError as error:
        raise EgressError(f"{failures.host_of(url)} went silent.", sent=True) from error
    except (aiohttp.ClientError, OSError) as error:
        raise failures.of(error, url) from error


async def _whole(answer: aiohttp.ClientResponse, chunks: AsyncIterator[bytes], url: str, most: int) -> bytes | None:
    length = answer.content_length
    if length is not None and length <= most and "Content-Encoding" not in answer.headers:
        try:
            return await answer.read()
        except TimeoutError as error:
            raise EgressError(f"{failures.host_of(url)} went silent.", sent=True) from error
        except (aiohttp.ClientError, OSError) as error:
            raise failures.of(error, url) from error
    taken = bytearray()
    async for chunk in chunks:
        taken += chunk
        if len(taken) > most:
            return None
    return bytes(taken)


@lru_cache(maxsize=64)
def _stream_limits(time_limit: float | None, idle_limit: float | None) -> aiohttp.ClientTimeout:
    connect = CONNECT_SECONDS if time_limit is None else min(CONNECT_SECONDS, time_limit)
    return aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=idle_limit)


def _timeout(error: TimeoutError, url: str, seconds: float) -> EgressError:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return failures.of(error, url)
    return failures.timed_out(url, seconds)
