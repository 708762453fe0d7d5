"""A provider that has its API only once it is started: its document is imported, or a kept import is read, then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError, ErrorCode, ProviderError
from toolyard.core.tool import Kind, Tool
from toolyard.egress import Egress, without_secrets
from toolyard.providers.base import Invocation
from toolyard.providers.openapi.api import ImportedApi
from toolyard.providers.openapi.loading import DocumentSource
from toolyard.providers.openapi.provider import OpenApiProvider, checked_base_url
from toolyard.providers.openapi.running import import_document


class DeferredOpenApiProvider:
    """An `OpenApiProvider` whose API `obtain` gives at `start`, and is asked for again by `tools` when it had failed.

    `address` is shown until then.

    Raises:
        BadInput: `base_url` is none.
    """

    def __init__(
        self,
        id: str,  # noqa: A002  the providers' common first argument
        obtain: Callable[[], Awaitable[ImportedApi]],
        *,
        address: str,
        egress: Egress,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        trusted_origins: Sequence[str] = (),
    ) -> None:
        self._id = id
        self._obtain = obtain
        self._first_address = address
        self._egress = egress
        self._base_url = checked_base_url(base_url) if base_url else None
        self._headers = dict(headers or {})
        self._trusted_origins = tuple(trusted_origins)
        self._ready: OpenApiProvider | None = None
        self._importing = asyncio.Lock()

    @classmethod
    def of_document(
        cls,
        id: str,  # noqa: A002
        source: DocumentSource,
        *,
        egress: Egress,
        cluster: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        trusted_origins: Sequence[str] = (),
    ) -> DeferredOpenApiProvider:
        """One of the manifest: it reads its document when it is started, not before."""
        location = without_secrets(source.location) if source.kind == "url" else source.location
        obtain = partial(import_document, source, namespace=id, cluster=cluster, base_url=base_url, egress=egress)
        return cls(
            id,
            obtain,
            address=location,
            egress=egress,
            base_url=base_url,
            headers=headers,
            trusted_origins=trusted_origins,
        )

    @property
    def id(self) -> str:
        return self._id

    @property
    def kind(self) -> Kind:
        return Kind.OPENAPI

    @property
    def address(self) -> str:
        """The API once it is known; until then the document."""
        if self._ready is not None:
            return self._ready.address
        return self._base_url or self._first_address or self._id

    @property
    def api(self) -> ImportedApi | None:
        return self._ready.api if self._ready is not None else None

    async def start(self) -> None:
        """
        Raises:
            DocumentError: the document cannot be had, or not be read as a whole.
        """
        await self._imported()

    async def tools(self) -> Sequence[Tool]:
        return await (await self._imported()).tools()

    async def call(self, invocation: Invocation) -> ToolResult:
        if self._ready is None:
            raise CallError(ErrorCode.UPSTREAM, f"The API document of {self._id} is not read yet.")
        return await self._ready.call(invocation)

    async def health(self) -> None:
        if self._ready is None:
            raise ProviderError(f"The API document of {self._id} is not read yet.")
        await self._ready.health()

    def on_change(self, notify: Callable[[], None]) -> None:
        """A document does not change by itself."""

    async def close(self) -> None:
        """The pool belongs to egress."""

    async def _imported(self) -> OpenApiProvider:
        async with self._importing:
            if self._ready is None:
                self._ready = OpenApiProvider(
                    await self._obtain(),
                    egress=self._egress,
                    base_url=self._base_url,
                    headers=self._headers,
                    trusted_origins=self._trusted_origins,
                )
            return self._ready
