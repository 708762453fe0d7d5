"""Importing API documents: one import per cluster at a time, kept as a blob so that a restart needs no network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import structlog

from toolyard.core.errors import BadInput, Conflict, DocumentError, NotFound, StoreUnavailable
from toolyard.core.ids import new_id
from toolyard.core.names import check_namespace, slugify
from toolyard.egress import Egress
from toolyard.manifest import OpenApiConfig, parse_provider
from toolyard.providers.base import Provider
from toolyard.store.blobs import Blobs

if TYPE_CHECKING:
    from toolyard.providers.openapi import DocumentSource, ImportedApi

_log = structlog.get_logger("toolyard.app")

UPLOADED = "https://uploaded.invalid/"
"""Stands for the address of a document that came as bytes: a configuration has to name one."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An import that is read but not yet in the catalog."""

    config: OpenApiConfig
    api: ImportedApi


class Imports:
    def __init__(self, egress: Egress, blobs: Blobs) -> None:
        self._egress = egress
        self._blobs = blobs
        self._busy: set[str] = set()

    @asynccontextmanager
    async def prepare(
        self,
        *,
        url: str | None,
        document: bytes | None,
        cluster: str | None,
        provider_id: str | None,
        base_url: str | None,
        headers: Mapping[str, str] | None,
    ) -> AsyncGenerator[Prepared, None]:
        """Read and walk a document; its id stays reserved until the block ends.

        Raises:
            BadInput, Conflict, DocumentError
        """
        from toolyard.providers.openapi import import_document

        source = _source(url, document)
        wanted = check_namespace(provider_id) if provider_id else slugify(cluster) if cluster else None
        with self._reserved(wanted):
            api = await import_document(
                source, namespace=wanted, cluster=cluster, base_url=base_url, egress=self._egress
            )
            config = _config(api, url=url, base_url=base_url, headers=headers)
            with self._reserved(None if wanted else api.namespace):
                yield Prepared(config, api)

    def provider(self, config: OpenApiConfig, api: ImportedApi) -> Provider:
        from toolyard.providers.openapi import OpenApiProvider

        return OpenApiProvider(api, egress=self._egress, base_url=config.base_url, headers=config.request_headers)

    def deferred(self, config: OpenApiConfig, manifest_dir: Path | None) -> Provider:
        """A provider that reads its document when it is started, and again when that failed."""
        from toolyard.providers.openapi import DeferredOpenApiProvider, DocumentSource

        if config.is_file:
            source = DocumentSource.file((manifest_dir or Path.cwd()) / config.url)
        else:
            source = DocumentSource.url(config.url)
        return DeferredOpenApiProvider.of_document(
            config.id,
            source,
            cluster=config.cluster,
            egress=self._egress,
            base_url=config.base_url,
            headers=config.request_headers,
        )

    async def keep(self, api: ImportedApi) -> str:
        """Keep an import as a blob; its name."""
        name = f"apis/{api.namespace}/{new_id('api')}"
        await self._blobs.put(name, api.to_bytes())
        return name

    def restore(self, config: OpenApiConfig, document_ref: str) -> Provider:
        """The provider of an import that was kept. One that is lost is down, with the reason; the others are not."""
        from toolyard.providers.openapi import DeferredOpenApiProvider

        return DeferredOpenApiProvider(
            config.id,
            partial(self._kept, document_ref),
            address=config.id if config.url == UPLOADED else config.url,
            egress=self._egress,
            base_url=config.base_url,
            headers=config.request_headers,
        )

    async def discard(self, document_ref: str) -> None:
        """Delete an import that was replaced or removed. What cannot be deleted is in nobody's way."""
        try:
            await self._blobs.delete([document_ref])
        except StoreUnavailable as error:
            _log.warning("an import that nobody needs could not be deleted", blob=document_ref, error=str(error))

    async def _kept(self, document_ref: str) -> ImportedApi:
        from toolyard.providers.openapi import ImportedApi

        try:
            return ImportedApi.from_bytes(await self._blobs.get(document_ref))
        except (NotFound, StoreUnavailable) as error:
            raise DocumentError(
                f"The import that was kept cannot be read: {error.message}", suggestion="Import the document again."
            ) from error

    def _reserved(self, name: str | None) -> _Reservation:
        return _Reservation(self._busy, name)


class _Reservation:
    def __init__(self, busy: set[str], name: str | None) -> None:
        self._busy = busy
        self._name = name

    def __enter__(self) -> None:
        if self._name is None:
            return
        if self._name in self._busy:
            raise Conflict(
                f"{self._name!r} is being imported right now.",
                suggestion="Wait for that import to end, then try again.",
            )
        self._busy.add(self._name)

    def __exit__(self, *_: object) -> None:
        if self._name is not None:
            self._busy.discard(self._name)


def _source(url: str | None, document: bytes | None) -> DocumentSource:
    from toolyard.providers.openapi import DocumentSource

    if (url is None) == (document is None):
        raise BadInput("Give either a url or a document.", where="url")
    return DocumentSource.url(url) if url is not None else DocumentSource.bytes(cast("bytes", document))


def _config(
    api: ImportedApi, *, url: str | None, base_url: str | None, headers: Mapping[str, str] | None
) -> OpenApiConfig:
    body: dict[str, object] = {
        "kind": "openapi",
        "id": api.namespace,
        "cluster": api.cluster,
        "url": url or UPLOADED,
        "headers": dict(headers or {}),
    }
    if base_url:
        body["base_url"] = base_url
    return cast("OpenApiConfig", parse_provider(body))
