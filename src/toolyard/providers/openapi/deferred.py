"""A provider of the manifest: it reads its document when it is started, not before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

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
    """An `OpenApiProvider` whose document is imported by `start`, and read again by `tools` when it had failed.

    Raises:
        BadInput: `base_url` is none.
    """

    def __init__(
        self,
        id: str,  # noqa: A002  the providers' common first argument
        source: DocumentSource,
        *,
        egress: Egress,
        cluster: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        trusted_origins: Sequence[str] = (),
    ) -> None:
        self._id = id
        self._source = source
        self._egress = egress
        self._cluster = cluster
        self._base_url = checked_base_url(base_url) if base_url else None
        self._headers = dict(headers or {})
        self._trusted_origins = tuple(trusted_origins)
        self._ready: OpenApiProvider | None = None
        self._importing = asyncio.Lock()

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
        location = self._source.location
        return self._base_url or (without_secrets(location) if self._source.kind == "url" else location) or self._id

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
                api = await import_document(
                    self._source,
                    namespace=self._id,
                    cluster=self._cluster,
                    base_url=self._base_url,
                    egress=self._egress,
                )
                self._ready = OpenApiProvider(
                    api,
                    egress=self._egress,
                    base_url=self._base_url,
                    headers=self._headers,
                    trusted_origins=self._trusted_origins,
                )
            return self._ready
