"""An empty database made ready: keys for the clients, and triggers that record every move of a row.

The triggers are the checker's own eyes: a node cannot make a move that they do not see, and what they see is in the
same transaction as the move.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolyard.core.clock import SystemClock
from toolyard.core.principal import Scope
from toolyard.identity.keys import Keys
from toolyard.store import Connection, open_store

FINAL = ("COMPLETE", "ERROR")
_CHANGED = {"sqlite": "IS NOT", "postgres": "IS DISTINCT FROM"}
_WATCHED = (
    ("calls", "state", "state, result, error_code", "{moved} OR OLD.state IN ('COMPLETE', 'ERROR')"),
    ("approvals", "decision", "decision, decided_by, edited_arguments", "{moved} OR OLD.decision IS NOT NULL"),
    ("jobs", "state", "state, epoch", "{moved} OR OLD.epoch <> NEW.epoch"),
)
"""Table, the column whose moves are recorded, the columns that may move it, and when it counts as a move."""


@dataclass(frozen=True, slots=True)
class Access:
    """Keys: one that calls, and two that decide."""

    caller: str
    approvers: tuple[str, str]


async def make_ready(database: str) -> Access:
    store = open_store(database)
    await store.start()
    try:
        await store.tx(_watch)
        keys = Keys(store, SystemClock())
        _, caller = await keys.create("agent", [Scope.CALL])
        _, alice = await keys.create("alice", [Scope.CALL, Scope.READ, Scope.MANAGE])
        _, bob = await keys.create("bob", [Scope.CALL, Scope.READ, Scope.MANAGE])
    finally:
        await store.close()
    return Access(caller, (alice, bob))


def _watch(c: Connection) -> None:
    serial = "INTEGER PRIMARY KEY AUTOINCREMENT" if c.dialect == "sqlite" else "BIGSERIAL PRIMARY KEY"
    c.execute(f"CREATE TABLE chaos_moves (n {serial}, what TEXT, id TEXT, old TEXT, new TEXT, epoch BIGINT)")
    c.execute("CREATE TABLE chaos_woken (id TEXT PRIMARY KEY)")
    for table, column, columns, condition in _WATCHED:
        moved = condition.format(moved=f"OLD.{column} {_CHANGED[c.dialect]} NEW.{column}")
        _trigger(c, f"chaos_{table}_insert", f"AFTER INSERT ON {table} FOR EACH ROW", _write(table, "NULL", column))
        _trigger(
            c,
            f"chaos_{table}_update",
            f"AFTER UPDATE OF {columns} ON {table} FOR EACH ROW WHEN ({moved})",
            _write(table, f"OLD.{column}", column),
        )


def _write(table: str, old: str, column: str) -> str:
    epoch = "NULL" if table == "approvals" else "NEW.epoch"
    return (
        f"INSERT INTO chaos_moves (what, id, old, new, epoch) VALUES ('{table}', NEW.id, {old}, NEW.{column}, {epoch})"
    )


def _trigger(c: Connection, name: str, when: str, write: str) -> None:
    if c.dialect == "sqlite":
        c.execute(f"CREATE TRIGGER {name} {when} BEGIN {write}; END")
        return
    c.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN {write}; RETURN NULL; END $body$"
    )
    c.execute(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {name}()")
