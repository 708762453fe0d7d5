"""The statements that the store's tests write and read: plain rows of `values_kept`."""

from __future__ import annotations

from collections.abc import Callable

from toolyard.store import Connection


def put(name: str, value: str = "") -> Callable[[Connection], str]:
    """Insert one row, and answer its name."""

    def write(c: Connection) -> str:
        c.execute("INSERT INTO values_kept (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, value)
        return name

    return write


def names(c: Connection) -> list[str]:
    return [str(name) for (name,) in c.execute("SELECT name FROM values_kept ORDER BY name").fetchall()]


class Refused(Exception):
    """What a function of a test raises on purpose."""


def put_then_raise(name: str) -> Callable[[Connection], None]:
    def write(c: Connection) -> None:
        put(name)(c)
        raise Refused(name)

    return write
