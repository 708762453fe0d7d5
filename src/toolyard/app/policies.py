"""What operators decided about approvals: loaded once, kept when it changes, read for each call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from toolyard.calls.approve import PolicyBook, ProviderPolicy
from toolyard.catalog import Catalog, Server, ToolSettings
from toolyard.core.approval import AutoApprove
from toolyard.core.errors import BadInput, NotFound
from toolyard.core.tool import TASK_MODES, TaskMode
from toolyard.manifest import ProviderConfig
from toolyard.store import providers as rows
from toolyard.store.base import Store

APPROVAL_SETTINGS = (None, "ask", "never")


class Policies:
    def __init__(
        self, store: Store, catalog: Catalog, servers: dict[str, Server], *, changed: Callable[[], None]
    ) -> None:
        """`changed` is called after each change, for the other nodes."""
        self._store = store
        self._catalog = catalog
        self._changed = changed
        self._providers: dict[str, ProviderPolicy] = {}
        self.clusters: dict[str, AutoApprove] = {}
        self.book = PolicyBook(providers=self._providers.get, clusters=self.clusters, servers=servers)

    async def load(self) -> None:
        for row in await self._store.read(rows.tool_settings):
            settings = ToolSettings(
                enabled=row.enabled,
                approval=row.approval,
                time_limit=row.time_limit,
                description=row.description,
                approval_timeout=row.approval_timeout,
                task=cast("TaskMode | None", row.task),
            )
            self._catalog.apply_settings(row.tool, settings)
        clusters = await self._store.read(rows.cluster_policies)
        self.clusters.clear()
        self.clusters.update(clusters)

    def remember(self, config: ProviderConfig) -> None:
        self._providers[config.id] = ProviderPolicy(config.auto_approve, config.approval_timeout)

    def forget(self, provider_id: str) -> None:
        self._providers.pop(provider_id, None)

    async def set_tool(self, tool_id: str, settings: ToolSettings) -> None:
        """
        Raises:
            NotFound: there is no such tool.
            BadInput: an approval or task setting that is none.
        """
        if self._catalog.snapshot.get(tool_id) is None:
            raise NotFound(f"There is no tool {tool_id!r}.")
        if settings.approval not in (*APPROVAL_SETTINGS, "auto"):
            raise BadInput(
                f"{settings.approval!r} is no approval setting.",
                where="approval",
                suggestion="Use 'ask', 'never', or none to leave it to the policies of its cluster and provider.",
            )
        if settings.task is not None and settings.task not in TASK_MODES:
            raise BadInput(
                f"{settings.task!r} is no task setting.",
                where="task",
                suggestion="Use 'never', 'auto', 'always', or none to leave it to the tool.",
            )
        row = rows.ToolSettingsRow(
            tool_id,
            settings.enabled,
            settings.approval,
            settings.time_limit,
            settings.description,
            settings.approval_timeout,
            settings.task,
        )
        await self._store.tx(partial(rows.save_tool_settings, row=row))
        self._catalog.apply_settings(tool_id, settings)
        self._changed()

    async def set_cluster(self, name: str, auto_approve: AutoApprove | None) -> None:
        """Whether calls of a cluster's tools are asked for; None leaves it to each provider.

        Raises:
            NotFound: there is no such cluster.
        """
        if all(cluster.name != name for cluster in self._catalog.snapshot.clusters()):
            raise NotFound(f"There is no cluster {name!r}.")
        await self._store.tx(partial(rows.save_cluster_policy, cluster=name, auto_approve=auto_approve))
        if auto_approve is None:
            self.clusters.pop(name, None)
        else:
            self.clusters[name] = auto_approve
        self._changed()
