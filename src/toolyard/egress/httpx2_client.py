"""An httpx2 client whose connections are made by `sockets.py`. Imported on first use: httpx2 is heavy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import httpcore2
import httpx2

from toolyard.egress.policy import AddressPolicy
from toolyard.egress.sockets import CONNECTIONS, KEPT_IDLE_SECONDS, network_backend, shared_tls

_DEFAULT_TIMEOUT = httpx2.Timeout(30.0, read=300.0)


def build(
    policy: AddressPolicy,
    *,
    headers: Mapping[str, str] | None,
    timeout: httpx2.Timeout | float | None,
    auth: httpx2.Auth | None,
) -> httpx2.AsyncClient:
    """A client of its own pool: no environment, no redirects, our sockets and the shared TLS context."""
    return httpx2.AsyncClient(
        transport=_Transport(policy),
        headers=dict(headers or {}),
        timeout=_DEFAULT_TIMEOUT if timeout is None else timeout,
        auth=auth,
        trust_env=False,
        follow_redirects=False,
    )


class _Transport(httpx2.AsyncBaseTransport):
    """httpx2's own transport has no public way to hand in a network backend; its pool underneath does."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=shared_tls(),
            network_backend=network_backend(policy),
            max_connections=CONNECTIONS,
            keepalive_expiry=KEPT_IDLE_SECONDS,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=cast("AsyncIterator[bytes]", request.stream),
            extensions=request.extensions,
        )
        with _as_httpx2():
            answer = await self._pool.handle_async_request(outgoing)
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer.stream),
            extensions=cast("dict[str, Any]", answer.extensions),  # pyright: ignore[reportUnknownMemberType]
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, inner: object) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx2():
            async for part in cast("AsyncIterator[bytes]", self._inner):
                yield part

    async def aclose(self) -> None:
        close = getattr(self._inner, "aclose", None)
        if close is not None:
            await close()


@contextmanager
def _as_httpx2() -> Generator[None]:
    """httpcore2's errors under their httpx2 names (the two libraries name them alike)."""
    try:
        yield
    except (
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.UnsupportedProtocol,
    ) as error:
        named = getattr(httpx2, type(error).__name__, httpx2.TransportError)
        raise named(str(error)) from error
