"""The one place where outbound connections are made, for both HTTP stacks, under an `AddressPolicy`.

Two steps are checked, because one is not enough: the resolver refuses a name when *any* of its addresses is refused
(else happy eyeballs would step over a refused answer to the next), and the socket factory checks the very address
that is being connected, because literal addresses never reach a resolver.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from toolyard.egress.policy import AddressPolicy

if TYPE_CHECKING:
    import httpcore2

CONNECTIONS = 512
KEPT_IDLE_SECONDS = 60.0


@functools.cache
def shared_tls() -> ssl.SSLContext:
    """One context for the whole process: building one reads the CA bundle and takes 25 ms."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def connector(policy: AddressPolicy) -> aiohttp.TCPConnector:
    """A pool of connections that were all allowed by `policy`."""

    def socket_for(info: aiohttp.AddrInfoType) -> socket.socket:  # pyright: ignore[reportUnknownParameterType]
        family, kind, protocol, _, address = cast("tuple[int, int, int, str, tuple[object, ...]]", info)
        policy.check(str(address[0]), str(address[0]))
        return socket.socket(family, kind, protocol)

    return aiohttp.TCPConnector(
        ssl=shared_tls(),
        resolver=_CheckedResolver(policy),
        socket_factory=socket_for,
        limit=CONNECTIONS,
        keepalive_timeout=KEPT_IDLE_SECONDS,
        ttl_dns_cache=10,
    )


class _CheckedResolver(AbstractResolver):
    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy
        self._inner = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        for answer in found:
            self._policy.check(host, answer["host"])
        return found

    async def close(self) -> None:
        await self._inner.close()


def network_backend(policy: AddressPolicy) -> httpcore2.AsyncNetworkBackend:
    """The same two steps for httpcore2: resolve, check every answer, connect to a checked address."""
    import httpcore2

    class CheckedBackend(httpcore2.AsyncNetworkBackend):
        def __init__(self) -> None:
            self._inner = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
        ) -> httpcore2.AsyncNetworkStream:
            addresses = await _addresses(host, port)
            for address in addresses:
                policy.check(host, address)
            return await self._first_that_answers(addresses, port, timeout, local_address, socket_options)

        async def _first_that_answers(
            self,
            addresses: list[str],
            port: int,
            timeout: float | None,
            local_address: str | None,
            socket_options: Iterable[httpcore2.SOCKET_OPTION] | None,
        ) -> httpcore2.AsyncNetworkStream:
            failure: httpcore2.ConnectError | httpcore2.ConnectTimeout | None = None
            for address in addresses:
                try:
                    return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
                except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                    failure = error
            raise failure or httpcore2.ConnectError("the name has no address")

        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(seconds)

    return CheckedBackend()


async def _addresses(host: str, port: int) -> list[str]:
    import httpcore2

    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise httpcore2.ConnectError(f"the name {host} cannot be resolved: {error.strerror}") from error
    return list(dict.fromkeys(str(info[4][0]) for info in found))
