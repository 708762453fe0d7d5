"""Small values that a deployment makes once and keeps: keys, markers. All nodes share them."""

from __future__ import annotations

from toolyard.store.base import Connection


def get(connection: Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM values_kept WHERE name = ?", name).fetchone()
    return None if row is None else str(row[0])


def get_or_create(connection: Connection, name: str, value: str) -> str:
    """The value kept under `name`; `value` becomes it when there is none. Of two writers the first wins for both."""
    connection.execute("INSERT INTO values_kept (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, value)
    kept = get(connection, name)
    return value if kept is None else kept
