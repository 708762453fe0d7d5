"""The providers of a node: those of its manifest, and those that are added at run time, here or on another node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from toolyard.app.building import UnusableProvider, build_provider
from toolyard.app.imports import Imports
from toolyard.app.policies import Policies
from toolyard.catalog import Catalog
from toolyard.core.errors import BadInput, Conflict, NotFound, ToolyardError
from toolyard.core.tool import Tool
from toolyard.egress import Egress
from toolyard.manifest import Manifest, OpenApiConfig, ProviderConfig, dump_provider, parse_provider
from toolyard.providers.base import Provider
from toolyard.providers.supervisor import ProviderStatus, Supervisor
from toolyard.store import providers as rows
from toolyard.store.base import Store

if TYPE_CHECKING:
    from toolyard.providers.openapi import ImportedApi

_log = structlog.get_logger("toolyard.app")


class Providing:
    """The part of the application that knows providers. What it needs is given by the attributes below."""

    store: Store
    catalog: Catalog
    supervisor: Supervisor
    egress: Egress
    imports: Imports
    manifest: Manifest
    policies: Policies

    def __init__(self, manifest_dir: Path | None, changed: Callable[[], None]) -> None:
        """`changed` tells the other nodes that providers are to be read again."""
        self._manifest_dir = manifest_dir
        self._providers_changed = changed
        self._configs: dict[str, ProviderConfig] = {}
        self._rows: dict[str, rows.ProviderRow] = {}
        """The providers that were added at run time, as this node runs them."""
        self._keeping = asyncio.Lock()
        """What is kept and what runs change together, as seen by whoever reads what other nodes changed."""
        self._declared: set[str] = set()
        self._replacing: set[str] = set()
        self._removed_tools: set[str] = set()

    def provider_config(self, provider_id: str) -> ProviderConfig | None:
        return self._configs.get(provider_id)

    def is_declared(self, provider_id: str) -> bool:
        """Whether it comes from the manifest, so that only an edit of the manifest changes it for good."""
        return provider_id in self._declared

    async def add_provider(self, config: ProviderConfig) -> ProviderStatus:
        """Keep a new provider and contact it. One that does not answer is kept and retried, unless it is required.

        Raises:
            BadInput: this kind is not served yet.
            Conflict: the id is taken.
            ProviderError: it is required and did not answer; nothing was kept.
        """
        if self.supervisor.provider(config.id) is not None:
            raise Conflict(f"There is a provider {config.id!r} already.", suggestion="Choose another id.")
        provider = build_provider(config, self.egress, self.imports, self._manifest_dir)
        if provider is None:
            raise BadInput("Providers of this kind are not served yet.", where="kind")
        self._remember(config)
        try:
            await self.supervisor.add_and_start(provider, required=config.required, start_timeout=config.start_timeout)
            await self._save(config, None)
        except BaseException:
            self._configs.pop(config.id, None)
            if self.supervisor.provider(config.id) is not None:
                await self.supervisor.remove(config.id)
            raise
        return self.supervisor.status(config.id)

    async def update_provider(self, config: ProviderConfig) -> ProviderStatus:
        """Replace a provider's configuration; its tools stay until the new one answered.

        Raises:
            NotFound, BadInput
            Conflict: it is declared in the manifest.
        """
        self._must_be_ours(config.id)
        document_ref = await self._kept_document(config)
        if document_ref is not None and isinstance(config, OpenApiConfig):
            provider = self.imports.restore(config, document_ref)
        else:
            provider = build_provider(config, self.egress, self.imports, self._manifest_dir)
        if provider is None:
            raise BadInput("Providers of this kind are not served yet.", where="kind")
        await self._save(config, document_ref)
        self._remember(config)
        await self._make_room_for(config.id)
        await self.supervisor.add_and_start(provider, start_timeout=config.start_timeout)
        return self.supervisor.status(config.id)

    async def _make_room_for(self, provider_id: str) -> None:
        """For another version of it; its tools stay until that one answers."""
        self._replacing.add(provider_id)
        try:
            await self.supervisor.remove(provider_id)
        finally:
            self._replacing.discard(provider_id)

    async def _kept_document(self, config: ProviderConfig) -> str | None:
        """The document that was kept for a provider, while it still is what the configuration names."""
        present = self._configs.get(config.id)
        if not (isinstance(present, OpenApiConfig) and isinstance(config, OpenApiConfig)):
            return None
        if (present.url, present.cluster) != (config.url, config.cluster):
            return None
        return await self._document_of(config.id)

    async def _document_of(self, provider_id: str) -> str | None:
        stored = await self.store.read(rows.providers)
        return next((row.document_ref for row in stored if row.id == provider_id), None)

    async def remove_provider(self, provider_id: str) -> None:
        """
        Raises:
            NotFound: there is no such provider.
            Conflict: it is declared in the manifest, or built in.
        """
        self._must_be_ours(provider_id)
        await self._drop(provider_id)

    async def refresh_provider(self, provider_id: str) -> ProviderStatus:
        """
        Raises:
            NotFound: there is no such provider.
            ProviderError: it did not answer.
        """
        await self.supervisor.refresh(provider_id)
        return self.supervisor.status(provider_id)

    async def import_openapi(
        self,
        *,
        url: str | None = None,
        document: bytes | None = None,
        cluster: str | None = None,
        provider_id: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ImportedApi:
        """Turn an API document into tools, at once and for good. Importing the same cluster again replaces it.

        Raises:
            BadInput: neither or both of `url` and `document`, or an id that cannot be one.
            Conflict: the id belongs to another kind of provider, or the same import is running right now.
            ProviderError: the document cannot be read.
        """
        async with self.imports.prepare(
            url=url, document=document, cluster=cluster, provider_id=provider_id, base_url=base_url, headers=headers
        ) as prepared:
            config, api = prepared.config, prepared.api
            present = self._configs.get(config.id)
            if present is None and self.supervisor.provider(config.id) is not None:
                raise Conflict(f"{config.id!r} is a built-in provider.", suggestion="Choose another cluster name.")
            if present is not None and (not isinstance(present, OpenApiConfig) or config.id in self._declared):
                raise Conflict(
                    f"There is another provider {config.id!r} already.",
                    suggestion="Choose another cluster name or provider id.",
                )
            document_ref = await self.imports.keep(api)
            await self._save(config, document_ref)
            self._remember(config)
            self._removed_tools -= {tool.id for tool in api.tools}
            if present is not None:
                await self._make_room_for(config.id)
            await self.supervisor.add_and_start(self.imports.provider(config, api))
            return api

    async def delete_cluster(self, name: str) -> int:
        """Remove every tool of a cluster, in every face, in one snapshot; returns how many.

        An imported API goes for good, on every node. Tools of any other provider stay away from this node only, until
        its next start, or until the provider is added again.

        Raises:
            NotFound: there is no such cluster.
        """
        cluster = next((found for found in self.catalog.snapshot.clusters() if found.name == name), None)
        if cluster is None:
            raise NotFound(f"There is no cluster {name!r}.")
        ids = {entry.id for entry in cluster.entries}
        self._removed_tools |= ids
        self.catalog.remove_tools(ids)
        for namespace in cluster.namespaces:
            emptied = not any(entry.tool.namespace == namespace for entry in self.catalog.snapshot.entries)
            if emptied and isinstance(self._configs.get(namespace), OpenApiConfig):
                await self._drop(namespace)
        return len(ids)

    # -- what this node runs, and what is kept

    async def add_known_providers(self) -> None:
        for config in self.manifest.all_providers:
            provider = build_provider(config, self.egress, self.imports, self._manifest_dir)
            if provider is None:
                _log.warning("this kind of provider is not served yet", provider=config.id)
                continue
            self._remember(config)
            self._declared.add(config.id)
            self.supervisor.add(provider, required=config.required, start_timeout=config.start_timeout)
        for row in await self.store.read(rows.providers):
            if row.id in self._declared:
                _log.warning("the manifest's provider hides one that was added at run time", provider=row.id)
                continue
            provider, limit = self._restored(row)
            self.supervisor.add(provider, required=False, start_timeout=limit)

    def _restored(self, row: rows.ProviderRow) -> tuple[Provider, float | None]:
        """A provider that was added at run time, here or on another node, and how long its start may take."""
        self._rows[row.id] = row
        try:
            config = parse_provider({**row.config, "id": row.id})
            if row.document_ref is not None and isinstance(config, OpenApiConfig):
                provider = self.imports.restore(config, row.document_ref)
            else:
                provider = build_provider(config, self.egress, self.imports, self._manifest_dir)
        except ToolyardError as error:
            return UnusableProvider(row.id, row.config, error.message), None
        self._remember(config)
        if provider is None:
            return UnusableProvider(row.id, row.config, "This kind is not served yet."), None
        return provider, config.start_timeout

    async def follow_providers(self) -> None:
        """Add, replace and remove what other nodes added, changed and removed."""
        async with self._keeping:
            kept = {row.id: row for row in await self.store.read(rows.providers) if row.id not in self._declared}
            for provider_id in [provider_id for provider_id in self._rows if provider_id not in kept]:
                await self._put_away(provider_id)
            changed = [row for row in kept.values() if self._rows.get(row.id) != row]
            await asyncio.gather(*(self._take_over(row) for row in changed))

    async def _take_over(self, row: rows.ProviderRow) -> None:
        """As another node keeps it. What goes wrong with one is tried again with the next look, and stops no other."""
        replaced = row.id in self._rows
        provider, limit = self._restored(row)
        try:
            if replaced:
                await self._make_room_for(row.id)
            await self.supervisor.add_and_start(provider, start_timeout=limit)
        except ToolyardError as error:
            self._rows.pop(row.id, None)
            _log.warning("a provider of another node could not be taken over", provider=row.id, cause=str(error))

    def _publish(self, namespace: str, tools: Sequence[Tool]) -> None:
        config = self._configs.get(namespace)
        kept = [tool for tool in tools if tool.id not in self._removed_tools]
        if config is not None:
            kept = [tool if tool.time_limit else replace(tool, time_limit=config.timeout) for tool in kept]
        self.catalog.publish(namespace, kept)

    def _forget(self, namespace: str) -> None:
        if namespace not in self._replacing:
            self.catalog.remove(namespace)

    def _remember(self, config: ProviderConfig) -> None:
        self._configs[config.id] = config
        self.policies.remember(config)

    async def _save(self, config: ProviderConfig, document_ref: str | None) -> None:
        row = rows.ProviderRow(config.id, dump_provider(config, reveal=True), document_ref)
        replaced = await self._document_of(config.id)
        async with self._keeping:
            await self.store.tx(lambda c: rows.save_provider(c, row))
            self._rows[row.id] = row
        self._providers_changed()
        if replaced is not None and replaced != document_ref:
            await self.imports.discard(replaced)

    async def _drop(self, provider_id: str) -> None:
        document_ref = await self._document_of(provider_id)
        async with self._keeping:
            await self.store.tx(lambda c: rows.delete_provider(c, provider_id))
            await self._put_away(provider_id)
        self._providers_changed()
        if document_ref is not None:
            await self.imports.discard(document_ref)

    async def _put_away(self, provider_id: str) -> None:
        self._rows.pop(provider_id, None)
        await self.supervisor.remove(provider_id)
        self._removed_tools = {tool for tool in self._removed_tools if not tool.startswith(f"{provider_id}:")}
        self._configs.pop(provider_id, None)
        self.policies.forget(provider_id)

    def _must_be_ours(self, provider_id: str) -> None:
        if self.supervisor.provider(provider_id) is None:
            raise NotFound(f"There is no provider {provider_id!r}.")
        if provider_id in self._declared or provider_id not in (self._configs.keys() | self._rows.keys()):
            raise Conflict(
                f"The provider {provider_id!r} is declared in the manifest or built in.",
                suggestion="Change the manifest and start again.",
            )
