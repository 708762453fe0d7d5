"""What the rest of the house knows of a store: `await store.tx(fn)` with a synchronous `fn` over a thin connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

SqlValue: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = tuple[SqlValue, ...]
T = TypeVar("T")
Item = TypeVar("Item")


class Rows(Protocol):
    """The outcome of one statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Row | None: ...
    def fetchall(self) -> Sequence[Row]: ...


class Connection(Protocol):
    """Inside a transaction. SQL is written once, with `?` placeholders, for both engines."""

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgres`, for the few statements that must differ."""
        ...

    def execute(self, sql: str, *parameters: SqlValue) -> Rows: ...
    def executemany(self, sql: str, rows: Sequence[Sequence[SqlValue]]) -> None: ...
    def now(self) -> float:
        """Epoch seconds by the database's clock."""
        ...


class Mergeable(Generic[Item]):
    """A write for `tx` or `submit` that can share one statement with others of its kind in one group commit.

    `run` takes any number of items, must treat each alone, and returns nothing. Of a group of writes, those with a
    lower `rank` run first. Called by itself it is a plain function over a connection.
    """

    __slots__ = ("item", "rank", "run")

    def __init__(self, run: Callable[[Connection, Sequence[Item]], None], item: Item, *, rank: int = 0) -> None:
        self.run = run
        self.item = item
        self.rank = rank

    def __call__(self, c: Connection) -> None:
        self.run(c, [self.item])


class Store(Protocol):
    """
    `fn` must be safe to run again: ids are made outside it, inserts are `ON CONFLICT DO NOTHING` and then compared,
    updates are conditional. A COMMIT whose connection is lost has an unknown outcome and is repeated.
    """

    @property
    def dialect(self) -> str: ...
    @property
    def location(self) -> str:
        """For people: a path, or a URL without its password."""
        ...

    async def start(self) -> None:
        """Open, check and migrate. Raises `StoreError` with what to do."""
        ...

    async def tx(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn` in a transaction; return its value only when it is durable. Raises what `fn` raises."""
        ...

    def submit(self, fn: Callable[[Connection], object]) -> None:
        """Queue `fn` like `tx` and do not wait. A failure is logged; `flush` waits for all that was queued."""
        ...

    async def flush(self) -> None: ...

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """Run a read-only `fn` beside the writers."""
        ...

    async def close(self) -> None:
        """Finish what was queued, then close."""
        ...
