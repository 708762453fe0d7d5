"""The yard itself: every room built once, wired together, started and stopped in order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from toolyard.app.approval_news import ApprovalNews
from toolyard.app.building import build_provider
from toolyard.app.builtins import builtin_provider
from toolyard.app.housekeeping import Housekeeping
from toolyard.app.imports import Imports
from toolyard.app.in_step import InStep
from toolyard.app.notices import Notices
from toolyard.app.policies import Policies
from toolyard.app.servers import DEFAULT_SERVER, all_servers
from toolyard.app.servers import save as save_server
from toolyard.app.settings import Settings
from toolyard.calls.approvals import Approvals
from toolyard.calls.client_calls import ClientCalls
from toolyard.calls.path import Calls
from toolyard.calls.questions import Questions
from toolyard.calls.sessions import Sessions
from toolyard.catalog import Catalog, Server, Snapshot, ToolSettings
from toolyard.core.clock import SystemClock
from toolyard.core.errors import BadInput, Conflict, NotFound
from toolyard.core.record import CallEvent
from toolyard.core.tool import Tool
from toolyard.durable.engine import Engine
from toolyard.durable.events import Bus
from toolyard.egress import Egress
from toolyard.identity.exposure import check_exposure
from toolyard.identity.gate import Gate
from toolyard.identity.keys import Keys
from toolyard.identity.operators import Operators
from toolyard.logs import log_safely
from toolyard.manifest import (
    Manifest,
    OpenApiConfig,
    ProviderConfig,
    dump_provider,
    parse_provider,
)
from toolyard.notify import Notifier, channels_of
from toolyard.providers.supervisor import ProviderStatus, Supervisor
from toolyard.store import providers as rows
from toolyard.store.blobs import Blobs
from toolyard.store.open import open_store

if TYPE_CHECKING:
    from toolyard.providers.openapi import ImportedApi

_log = structlog.get_logger("toolyard.app")


class App:
    """One node. Build it, `start` it, hand it to the faces, `stop` it; or use `App.running`."""

    def __init__(self, settings: Settings, manifest: Manifest | None = None) -> None:
        """
        Raises:
            BadInput: the settings would leave this node open to others, or a notification needs a missing package.
        """
        check_exposure(settings)
        log_safely()
        self.settings = _with_manifest(settings, manifest or Manifest())
        self.manifest = manifest or Manifest()
        self.clock = SystemClock()
        self.bus = Bus(self.clock)
        self.store = open_store(self.settings.database_location)
        self.blobs = Blobs(self.settings.blob_location)
        self.egress = Egress()
        self.catalog = Catalog()
        self.supervisor = Supervisor(
            publish=self._publish,
            set_availability=self._set_availability,
            forget=self._forget,
            events=self._provider_changed,
            clock=self.clock,
        )
        self.servers: dict[str, Server] = {DEFAULT_SERVER.id: DEFAULT_SERVER}
        self.engine = Engine(self.store, bus=self.bus, url=self.settings.url)
        self._in_step = InStep(self.engine, self.clock, self._read_settings_again)
        self.policies = Policies(self.store, self.catalog, self.servers, changed=self._in_step.tell)
        self.sessions = Sessions(self.store, self.engine, self.clock)
        self.calls = Calls(
            store=self.store,
            blobs=self.blobs,
            catalog=self.catalog,
            servers=self.servers,
            providers=self.supervisor,
            engine=self.engine,
            sessions=self.sessions,
            policies=self.policies.book,
            blob_url=self.settings.url,
            clock=self.clock,
            is_coming=self._is_coming,
        )
        self.approvals = Approvals(self.calls.bench)
        self.client_calls = ClientCalls(self.calls.bench, self.calls)
        self.questions = Questions(self.store, self.engine)
        channels = channels_of(self.manifest.settings.notifications, self.egress, self.clock)
        self._notices = Notices(self.bus, self.approvals.get, Notifier(channels, clock=self.clock), self.settings.url)
        self._news = ApprovalNews(self.store, self.engine, self.bus, self.calls.bench.asked_here)
        self.keys = Keys(self.store, self.clock)
        self.operators = Operators(self.store, self.clock)
        self.gate = Gate(
            self.keys,
            self.operators,
            demo=self.settings.demo,
            host=self.settings.host,
            public_url=self.settings.url,
        )
        self.imports = Imports(self.egress, self.blobs)
        self._housekeeping = Housekeeping(self.store, self.blobs, self.clock, self.settings.retention_days)
        self._configs: dict[str, ProviderConfig] = {}
        self._declared: set[str] = set()
        self._replacing: set[str] = set()
        self._removed_tools: set[str] = set()
        self._server_watchers: list[Callable[[], None]] = []
        self.calls.observe(self._call_changed)
        self.catalog.on_publish(self._catalog_changed)

    @staticmethod
    @asynccontextmanager
    async def running(settings: Settings, manifest: Manifest | None = None) -> AsyncGenerator[App, None]:
        """A started app that is stopped at the end, also when its start failed halfway."""
        app = App(settings, manifest)
        try:
            await app.start()
            yield app
        finally:
            await app.stop()

    # -- life

    async def start(self) -> None:
        """
        Raises:
            StoreError: the database cannot be used.
            ProviderError: a required provider did not answer.
        """
        self.settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        await self.store.start()
        await self.policies.load()
        await self._load_servers()
        self.supervisor.add(builtin_provider(self.calls))
        await self._add_providers()
        await self.supervisor.start()
        # Jobs only now: an approved call that waits must find its tool.
        await self.engine.start()
        self._notices.start()
        if self.store.dialect != "sqlite":  # there, no other node can have changed anything
            self._in_step.start()
        await self._news.start()
        await self.calls.begin()
        self._housekeeping.start()

    async def stop(self) -> None:
        """Every room in turn, the store last. May be called twice."""
        self.bus.close()
        await self._housekeeping.stop()
        await self.calls.close()
        await self.engine.stop()
        await self._in_step.stop()
        await self._news.stop()
        await self._notices.close()
        await self.supervisor.close()
        await self.egress.close()
        await self.store.close()

    async def _load_servers(self) -> None:
        known = all_servers(await self.store.read(rows.servers), self.manifest.servers)
        for server_id in [server_id for server_id in self.servers if server_id not in known]:
            del self.servers[server_id]
        self.servers.update(known)

    async def _read_settings_again(self) -> None:
        """What another node may have changed."""
        await self.policies.load()
        before = dict(self.servers)
        await self._load_servers()
        if self.servers != before:
            for callback in self._server_watchers:
                callback()

    async def _add_providers(self) -> None:
        for config in self.manifest.all_providers:
            provider = build_provider(config, self.egress, self.imports, self.settings.manifest_dir)
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
            config = parse_provider({**row.config, "id": row.id})
            if row.document_ref is not None and isinstance(config, OpenApiConfig):
                provider = self.imports.restore(config, row.document_ref)
            else:
                provider = build_provider(config, self.egress, self.imports, self.settings.manifest_dir)
            if provider is not None:
                self._remember(config)
                self.supervisor.add(provider, required=False, start_timeout=config.start_timeout)

    # -- providers

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
        provider = build_provider(config, self.egress, self.imports, self.settings.manifest_dir)
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
            provider = build_provider(config, self.egress, self.imports, self.settings.manifest_dir)
        if provider is None:
            raise BadInput("Providers of this kind are not served yet.", where="kind")
        await self._save(config, document_ref)
        self._remember(config)
        self._replacing.add(config.id)
        try:
            await self.supervisor.remove(config.id)
        finally:
            self._replacing.discard(config.id)
        await self.supervisor.add_and_start(provider, start_timeout=config.start_timeout)
        return self.supervisor.status(config.id)

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
            self._replacing.add(config.id)
            try:
                if present is not None:
                    await self.supervisor.remove(config.id)
            finally:
                self._replacing.discard(config.id)
            await self.supervisor.add_and_start(self.imports.provider(config, api))
            return api

    async def delete_cluster(self, name: str) -> int:
        """Remove every tool of a cluster, in every face, in one snapshot; returns how many.

        An imported API goes for good. Tools of any other provider stay away until the next start, or until the provider
        is added again.

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

    # -- servers and tools

    async def save_server(self, server: Server) -> None:
        await self.store.tx(partial(save_server, server=server))
        self.servers[server.id] = server
        self._servers_changed()

    async def delete_server(self, server_id: str) -> None:
        """
        Raises:
            NotFound: there is no such server.
            Conflict: it is the default server, or declared in the manifest.
        """
        if server_id not in self.servers:
            raise NotFound(f"There is no server {server_id!r}.")
        declared = any(config.id == server_id for config in self.manifest.servers)
        if server_id == DEFAULT_SERVER.id or declared:
            where = "in the manifest" if declared else "always"
            raise Conflict(f"The server {server_id!r} is there {where}.")
        await self.store.tx(lambda c: rows.delete_server(c, server_id))
        self.servers.pop(server_id, None)
        self._servers_changed()

    def on_server_change(self, callback: Callable[[], None]) -> None:
        """Have `callback` told whenever a server is made, changed or deleted."""
        self._server_watchers.append(callback)

    def _servers_changed(self) -> None:
        self._in_step.tell()
        for callback in self._server_watchers:
            callback()

    async def set_tool_settings(self, tool_id: str, settings: ToolSettings) -> None:
        """
        Raises:
            NotFound: there is no such tool.
            BadInput: an approval setting that is none.
        """
        await self.policies.set_tool(tool_id, settings)

    # -- wiring

    def _publish(self, namespace: str, tools: Sequence[Tool]) -> None:
        config = self._configs.get(namespace)
        kept = [tool for tool in tools if tool.id not in self._removed_tools]
        if config is not None:
            kept = [tool if tool.time_limit else replace(tool, time_limit=config.timeout) for tool in kept]
        self.catalog.publish(namespace, kept)

    def _set_availability(self, namespace: str, available: bool, reason: str | None) -> None:  # noqa: FBT001
        self.catalog.set_availability(namespace, available, reason)

    def _forget(self, namespace: str) -> None:
        if namespace not in self._replacing:
            self.catalog.remove(namespace)

    def _is_coming(self, namespace: str) -> bool:
        return self.supervisor.provider(namespace) is not None and self.supervisor.status(namespace).state != "up"

    def _provider_changed(self, status: ProviderStatus) -> None:
        self.bus.publish("provider", {"id": status.id, "state": status.state, "last_error": status.last_error})

    def _catalog_changed(self, snapshot: Snapshot) -> None:
        self.bus.publish("catalog", {"version": snapshot.version, "tools": len(snapshot.entries)})

    def _call_changed(self, event: CallEvent) -> None:
        if event.state.is_final or self.bus.is_watched("call"):
            self.bus.publish("call", event.to_wire())

    def _remember(self, config: ProviderConfig) -> None:
        self._configs[config.id] = config
        self.policies.remember(config)

    async def _save(self, config: ProviderConfig, document_ref: str | None) -> None:
        row = rows.ProviderRow(config.id, dump_provider(config, reveal=True), document_ref)
        replaced = await self._document_of(config.id)
        await self.store.tx(lambda c: rows.save_provider(c, row))
        if replaced is not None and replaced != document_ref:
            await self.imports.discard(replaced)

    async def _drop(self, provider_id: str) -> None:
        document_ref = await self._document_of(provider_id)
        await self.store.tx(lambda c: rows.delete_provider(c, provider_id))
        await self.supervisor.remove(provider_id)
        self._removed_tools = {tool for tool in self._removed_tools if not tool.startswith(f"{provider_id}:")}
        if document_ref is not None:
            await self.imports.discard(document_ref)
        self._configs.pop(provider_id, None)
        self.policies.forget(provider_id)

    def _must_be_ours(self, provider_id: str) -> None:
        if self.supervisor.provider(provider_id) is None:
            raise NotFound(f"There is no provider {provider_id!r}.")
        if provider_id in self._declared or provider_id not in self._configs:
            raise Conflict(
                f"The provider {provider_id!r} is declared in the manifest or built in.",
                suggestion="Change the manifest and start again.",
            )


def _with_manifest(settings: Settings, manifest: Manifest) -> Settings:
    """The command line comes before the manifest."""
    return replace(
        settings,
        public_url=settings.public_url or manifest.settings.public_url or "",
        retention_days=settings.retention_days or manifest.settings.retention_days,
    )
