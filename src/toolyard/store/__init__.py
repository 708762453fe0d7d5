"""One `Store` over SQLite or PostgreSQL. No SQL lives outside this room and `durable/`.

A repository module (`store/calls.py`) is a set of plain functions over a `Connection`:

```python
def add_provider(c: Connection, id: str, config: str) -> bool:
    now = c.now()
    added = c.execute("INSERT INTO providers (id, config, created, updated) VALUES (?, ?, ?, ?)"
                      " ON CONFLICT DO NOTHING", id, config, now, now).rowcount
    return added == 1

await store.tx(lambda c: add_provider(c, "crm", config))
```

The rules, because a transaction may be run again (a lost connection at COMMIT, a deadlock, a batch that failed):

- Synchronous, and quick: no await, no I/O, no lock; every other writer waits behind it on SQLite.
- Safe to run again: ids and random values are made outside; inserts are `ON CONFLICT DO NOTHING`, then compared;
  updates are conditional (`... WHERE state = 'PENDING'`, then look at `rowcount`); nothing outside is changed.
- Times that are compared between nodes come from `c.now()`.
- Return values, not `Rows`: fetch before you return. With RETURNING, look at the rows and not at `rowcount`.
- One SQL text with `?` for both engines. Beware: NULL sorts first on SQLite and last on PostgreSQL; `LIKE` ignores
  case only on SQLite (write `lower(x) LIKE ?`); PostgreSQL wants `CAST(? AS TEXT)` where nothing tells a parameter's
  type, as in `? IS NULL`. Where they must differ, ask `c.dialect`.
- Raise to take everything back; the caller of `tx` gets the exception. A row that breaks a unique constraint raises
  `Conflict`, another refused statement `StoreError`, a full disk or a lost database `StoreUnavailable`.
"""

from toolyard.store.base import Connection, Row, Rows, SqlValue, Store
from toolyard.store.open import open_store

__all__ = ["Connection", "Row", "Rows", "SqlValue", "Store", "open_store"]
