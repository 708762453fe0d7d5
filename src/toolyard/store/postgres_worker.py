"""One worker thread of the PostgreSQL store: its connection, its transactions, and trying again."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

import psycopg

from toolyard.core.errors import StoreError, StoreUnavailable
from toolyard.store.jobs import Job, Outcome, resolve, telling_waiters
from toolyard.store.postgres_connection import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Address,
    PostgresConnection,
    is_lost,
    is_retried,
    translated,
)

log = logging.getLogger("toolyard.store")

MOST_REPEATS = 10
"""Of one transaction, after deadlocks and serialization failures."""


class _Lost(Exception):
    """The connection is gone; whether a COMMIT on it happened is not known."""


class _TogetherFailed(Exception):
    """One function of a group failed: each must run alone."""


class Worker:
    """`take` waits for the next functions to commit together, and returns None at the end."""

    def __init__(
        self,
        address: Address,
        take: Callable[[], list[Job] | None],
        name: str,
        *,
        patience: float,
        read_only: bool,
        closing: threading.Event,
    ) -> None:
        self._address = address
        self._take = take
        self._patience = patience
        self._read_only = read_only
        self._closing = closing
        self._raw: psycopg.Connection | None = None
        self._lost_since: float | None = None
        self._thread = threading.Thread(target=self._run, name=f"store-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        while (batch := self._take()) is not None:
            with telling_waiters(batch):
                self._settle(batch)
        if self._raw is not None:
            self._raw.close()

    def _settle(self, batch: list[Job]) -> None:
        try:
            outcomes = self._until_decided(batch)
        except _TogetherFailed:
            for job in batch:
                self._settle([job])
            return
        except StoreUnavailable as error:
            outcomes = [(job, None, error) for job in batch]
        resolve(outcomes)

    def _until_decided(self, batch: list[Job]) -> list[Outcome]:
        """
        Raises:
            StoreUnavailable: the database stayed away for longer than our patience.
            _TogetherFailed: a function of several failed.
        """
        repeats = 0
        pause = FIRST_PAUSE
        while True:
            try:
                outcomes = self._attempt(self._connected(), batch)
                self._lost_since = None
                return outcomes
            except _Lost as error:
                self._give_up_or_wait(error.__cause__ or error, pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected) as error:
                repeats += 1
                if repeats > MOST_REPEATS:
                    return [(job, None, translated(error, self._address.shown)) for job in batch]
                self._closing.wait(random.uniform(0, FIRST_PAUSE))  # noqa: S311 - spreads the repeats

    def _attempt(self, raw: psycopg.Connection, batch: list[Job]) -> list[Outcome]:
        """All of `batch` in one transaction.

        Raises:
            _Lost, _TogetherFailed, psycopg.Error: a repeatable failure of the server's.
        """
        connection = PostgresConnection(raw, self._address.shown)
        outcomes: list[Outcome] = []
        try:
            connection.begin(read_only=self._read_only)
        except psycopg.Error as error:
            raise _Lost from error
        for job in batch:
            try:
                outcomes.append((job, job[0](connection), None))
            except BaseException as error:  # noqa: BLE001 - whatever it raised is its caller's
                outcomes.append((job, None, error))
            if connection.failure is not None or outcomes[-1][2] is not None:
                return self._failed(connection, outcomes, alone=len(batch) == 1)
        try:
            connection.commit()
        except psycopg.Error as error:
            connection.failure = error
            return self._failed(connection, [(batch[0], None, None)], alone=len(batch) == 1)
        return outcomes

    def _failed(self, connection: PostgresConnection, outcomes: list[Outcome], *, alone: bool) -> list[Outcome]:
        failure = connection.failure
        if failure is not None and is_lost(connection.raw, failure, read_only=self._read_only):
            raise _Lost from failure
        try:
            connection.rollback()
        except psycopg.Error as error:
            raise _Lost from error
        if failure is not None and is_retried(failure):
            raise failure
        if not alone:
            raise _TogetherFailed
        job, _, error = outcomes[-1]
        if error is None or isinstance(error, psycopg.Error):
            # a function that swallowed an error: PostgreSQL would have answered its COMMIT with a rollback
            error = translated(failure, self._address.shown) if failure else StoreError(str(error))
        return [(job, None, error)]

    # -- the connection -----------------------------------------------------------------------------------------------

    def _connected(self) -> psycopg.Connection:
        """
        Raises:
            _Lost: the server does not answer, or refuses us.
        """
        if self._raw is None:
            try:
                self._raw = self._address.connect()
            except psycopg.Error as error:
                raise _Lost from error
        return self._raw

    def _give_up_or_wait(self, reason: BaseException, pause: float) -> None:
        """
        Raises:
            StoreUnavailable: after our patience; at once, when the database was already away for that long.
        """
        if self._raw is not None:
            self._raw.close()
            self._raw = None
        now = time.monotonic()
        if self._lost_since is None:
            self._lost_since = now
            log.warning("The database %s is away, trying again: %s", self._address.shown, reason)
        if now - self._lost_since >= self._patience or self._closing.is_set():
            raise self._address.unreachable(reason) from reason
        self._closing.wait(pause)
