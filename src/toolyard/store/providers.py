"""Providers and servers that were made at run time (those of the manifest live in the manifest), and tool settings."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from toolyard.core.approval import AutoApprove
from toolyard.core.json import JsonObject
from toolyard.store.base import Connection


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """`document_ref` names the blob of an imported API."""

    id: str
    config: JsonObject
    document_ref: str | None


@dataclass(frozen=True, slots=True)
class ToolSettingsRow:
    tool: str
    enabled: bool
    approval: str | None
    time_limit: float | None
    description: str | None
    approval_timeout: float | None = None
    task: str | None = None


def save_provider(c: Connection, row: ProviderRow) -> None:
    now = c.now()
    c.execute(
        "INSERT INTO providers (id, config, document_ref, created, updated) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) "
        "DO UPDATE SET config = excluded.config, document_ref = excluded.document_ref, updated = excluded.updated",
        row.id,
        orjson.dumps(row.config).decode(),
        row.document_ref,
        now,
        now,
    )


def delete_provider(c: Connection, provider_id: str) -> None:
    c.execute("DELETE FROM providers WHERE id = ?", provider_id)


def providers(c: Connection) -> list[ProviderRow]:
    rows = c.execute("SELECT id, config, document_ref FROM providers ORDER BY id").fetchall()
    return [ProviderRow(str(row[0]), orjson.loads(str(row[1])), str(row[2]) if row[2] else None) for row in rows]


def save_server(c: Connection, server_id: str, config: JsonObject) -> None:
    now = c.now()
    c.execute(
        "INSERT INTO servers (id, config, created, updated) VALUES (?, ?, ?, ?) ON CONFLICT (id) "
        "DO UPDATE SET config = excluded.config, updated = excluded.updated",
        server_id,
        orjson.dumps(config).decode(),
        now,
        now,
    )


def delete_server(c: Connection, server_id: str) -> None:
    c.execute("DELETE FROM servers WHERE id = ?", server_id)


def servers(c: Connection) -> list[tuple[str, JsonObject]]:
    rows = c.execute("SELECT id, config FROM servers ORDER BY id").fetchall()
    return [(str(row[0]), orjson.loads(str(row[1]))) for row in rows]


def save_tool_settings(c: Connection, row: ToolSettingsRow) -> None:
    c.execute(
        "INSERT INTO tool_settings (tool, enabled, approval, time_limit, description, approval_timeout, task, updated) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tool) DO UPDATE SET enabled = excluded.enabled, "
        "approval = excluded.approval, time_limit = excluded.time_limit, description = excluded.description, "
        "approval_timeout = excluded.approval_timeout, task = excluded.task, updated = excluded.updated",
        row.tool,
        int(row.enabled),
        row.approval,
        row.time_limit,
        row.description,
        row.approval_timeout,
        row.task,
        c.now(),
    )


def tool_settings(c: Connection) -> list[ToolSettingsRow]:
    rows = c.execute(
        "SELECT tool, enabled, approval, time_limit, description, approval_timeout, task FROM tool_settings"
    ).fetchall()
    return [
        ToolSettingsRow(
            tool=str(tool),
            enabled=enabled != 0,
            approval=None if approval is None else str(approval),
            time_limit=None if time_limit is None else float(time_limit),
            description=None if description is None else str(description),
            approval_timeout=None if approval_timeout is None else float(approval_timeout),
            task=None if task is None else str(task),
        )
        for tool, enabled, approval, time_limit, description, approval_timeout, task in rows
    ]


def save_cluster_policy(c: Connection, cluster: str, auto_approve: AutoApprove | None) -> None:
    """Keep a cluster's approval policy; None forgets it."""
    if auto_approve is None:
        c.execute("DELETE FROM cluster_settings WHERE cluster = ?", cluster)
        return
    c.execute(
        "INSERT INTO cluster_settings (cluster, auto_approve, updated) VALUES (?, ?, ?) ON CONFLICT (cluster) "
        "DO UPDATE SET auto_approve = excluded.auto_approve, updated = excluded.updated",
        cluster,
        _POLICY_TEXTS[auto_approve],
        c.now(),
    )


def cluster_policies(c: Connection) -> dict[str, AutoApprove]:
    texts: dict[str, AutoApprove] = {"true": True, "false": False, "read_only": "read_only"}
    rows = c.execute("SELECT cluster, auto_approve FROM cluster_settings").fetchall()
    return {str(cluster): texts[str(text)] for cluster, text in rows}


_POLICY_TEXTS: dict[AutoApprove, str] = {True: "true", False: "false", "read_only": "read_only"}
