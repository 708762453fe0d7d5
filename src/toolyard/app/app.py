"""The yard itself: every room built once, wired together, started and stopped in order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from toolyard.app.approval_news import ApprovalNews
from toolyard.app.builtins import builtin_provider
from toolyard.app.housekeeping import Housekeeping
from toolyard.app.imports import Imports
from toolyard.app.in_step import InStep
from toolyard.app.notices import Notices
from toolyard.app.policies import Policies
from toolyard.app.providing import Providing
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
from toolyard.core.errors import Conflict, NotFound
from toolyard.core.record import CallEvent
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
)
from toolyard.notify import Notifier, channels_of
from toolyard.providers.supervisor import ProviderStatus, Supervisor
from toolyard.skills import Library
from toolyard.store import providers as rows
from toolyard.store.blobs import Blobs
from toolyard.store.open import open_store

_log = structlog.get_logger("toolyard.app")


class App(Providing):
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
        self.catalog = Catalog(threshold=self.manifest.settings.resolve_threshold)
        self.supervisor = Supervisor(
            publish=self._publish,
            publish_offers=self.catalog.publish_offers,
            set_availability=self._set_availability,
            forget=self._forget,
            events=self._provider_changed,
            clock=self.clock,
        )
        self.servers: dict[str, Server] = {DEFAULT_SERVER.id: DEFAULT_SERVER}
        self.engine = Engine(self.store, bus=self.bus, url=self.settings.url, ttl=self.settings.node_lease_seconds)
        self._in_step = InStep(self.engine, self.clock, self._read_settings_again)
        self.skills = Library(self.store, self._in_step.tell)
        super().__init__(self.settings.manifest_dir, self._in_step.tell)
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
            pick_up_timeout=self.settings.pick_up_limit,
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
        await self.skills.declare(_within(self.settings.manifest_dir, folder) for folder in self.manifest.skills)
        await self.skills.load()
        self.supervisor.add(builtin_provider(self.calls))
        await self.add_known_providers()
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
        await self.skills.load()
        before = dict(self.servers)
        await self._load_servers()
        if self.servers != before:
            for callback in self._server_watchers:
                callback()
        await self.follow_providers()

    # -- servers and tools

    def declares_server(self, server_id: str) -> bool:
        """Whether the manifest declares this server, so that it is changed there."""
        return any(config.id == server_id for config in self.manifest.servers)

    async def save_server(self, server: Server) -> None:
        """
        Raises:
            Conflict: it is declared in the manifest.
        """
        if self.declares_server(server.id):
            raise Conflict(
                f"The server {server.id!r} is declared in the manifest.",
                suggestion="Change it there and start again.",
            )
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
        declared = self.declares_server(server_id)
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

    def _set_availability(self, namespace: str, available: bool, reason: str | None) -> None:  # noqa: FBT001
        self.catalog.set_availability(namespace, available, reason)

    def _is_coming(self, namespace: str) -> bool:
        return self.supervisor.provider(namespace) is not None and self.supervisor.status(namespace).state != "up"

    def _provider_changed(self, status: ProviderStatus) -> None:
        self.bus.publish("provider", {"id": status.id, "state": status.state, "last_error": status.last_error})

    def _catalog_changed(self, snapshot: Snapshot) -> None:
        self.bus.publish("catalog", {"version": snapshot.version, "tools": len(snapshot.entries)})

    def _call_changed(self, event: CallEvent) -> None:
        if event.state.is_final or self.bus.is_watched("call"):
            self.bus.publish("call", event.to_wire())


def _with_manifest(settings: Settings, manifest: Manifest) -> Settings:
    """The command line comes before the manifest."""
    declared = manifest.settings
    return replace(
        settings,
        public_url=settings.public_url or declared.public_url or "",
        retention_days=settings.retention_days or declared.retention_days,
        blobs=settings.blobs or declared.blobs or "",
        hold_seconds=_first(settings.hold_seconds, declared.hold_seconds),
        task_after_seconds=_first(settings.task_after_seconds, declared.task_after_seconds),
        node_lease_seconds=_first(settings.node_lease_seconds, declared.node_lease_seconds),
        pick_up_seconds=_first(settings.pick_up_seconds, declared.pick_up_seconds),
    )


def _first(given: float | None, declared: float | None) -> float | None:
    """What was given, also when it is 0 or the usual; else what the manifest declares."""
    return declared if given is None else given


def _within(manifest_dir: Path | None, folder: str) -> Path:
    return (manifest_dir or Path.cwd()) / folder
