"""What one group commit runs, and how: everything plainly at first, each in a savepoint once something failed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import cast

from toolyard.store.base import Mergeable
from toolyard.store.jobs import Job, Outcome
from toolyard.store.sqlite_connection import SqliteConnection, of_our_tree


def until_one_fails(connection: SqliteConnection, batch: list[Job]) -> list[Outcome]:
    """Without savepoints, as nearly always nothing fails: each statement gives up the interpreter lock, and getting it
    back from a busy event loop costs more than the statement. Ends with the first error.

    Raises:
        sqlite3.Error: the whole transaction is gone (a full disk does that).
    """
    outcomes: list[Outcome] = []
    for jobs in _merged(batch):
        work = jobs[0][0]
        try:
            if isinstance(work, Mergeable):
                mergeable = cast("Mergeable[object]", work)
                mergeable.run(connection, [cast("Mergeable[object]", job[0]).item for job in jobs])
                outcomes += [(job, None, None) for job in jobs]
            else:
                outcomes.append((jobs[0], work(connection), None))
        except BaseException as error:  # whatever it raised is its caller's
            if not connection.raw.in_transaction:
                raise _cause(error) from error
            outcomes.append((jobs[0], None, of_our_tree(error)))
            break
    return outcomes


def _merged(batch: list[Job]) -> Iterator[list[Job]]:
    """Mergeable writes of one kind together, between any two plain functions; those keep their places."""
    kinds: dict[object, list[Job]] = {}
    for job in batch:
        if isinstance(job[0], Mergeable):
            kinds.setdefault(cast("Mergeable[object]", job[0]).run, []).append(job)
            continue
        yield from _by_rank(kinds)
        kinds = {}
        yield [job]
    yield from _by_rank(kinds)


def _by_rank(kinds: Mapping[object, list[Job]]) -> list[list[Job]]:
    return sorted(kinds.values(), key=lambda jobs: cast("Mergeable[object]", jobs[0][0]).rank)


def in_savepoint(connection: SqliteConnection, job: Job) -> Outcome:
    """
    Raises:
        sqlite3.Error: the whole transaction is gone.
    """
    execute = connection.raw.execute
    execute("SAVEPOINT one")
    try:
        value = job[0](connection)
    except BaseException as error:  # whatever it raised is its caller's
        if not connection.raw.in_transaction:
            raise _cause(error) from error
        execute("ROLLBACK TO one")
        execute("RELEASE one")
        return job, None, of_our_tree(error)
    execute("RELEASE one")
    return job, value, None


def _cause(error: BaseException) -> sqlite3.Error:
    cause = error if isinstance(error, sqlite3.Error) else error.__cause__
    return cause if isinstance(cause, sqlite3.Error) else sqlite3.OperationalError(str(error))
