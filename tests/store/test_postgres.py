"""What only PostgreSQL has: connections that are lost, deadlocks, several nodes, and a server that may not be there."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer

from tests.store.postgres import PostgresServer
from tests.store.rows import Refused, names, put, put_then_raise
from toolyard.core.errors import BadInput, Conflict, StoreCorrupt, StoreError, StoreTooNew, StoreUnavailable
from toolyard.store import Connection, Store, open_store
from toolyard.store.migrate import Migration
from toolyard.store.postgres import PostgresStore
from toolyard.store.postgres_connection import in_postgres_style
from toolyard.store.postgres_worker import MOST_REPEATS

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.new_database()


@pytest.fixture
async def node(url: str) -> AsyncIterator[Store]:
    store = PostgresStore(url)
    await store.start()
    yield store
    await store.close()


async def test_connections_cut_under_load_lose_nothing_that_was_acknowledged(
    node: Store, postgres_server: PostgresServer
) -> None:
    acknowledged: list[str] = []
    submitted: list[str] = []
    stop = asyncio.Event()

    async def caller(number: int) -> None:
        written = 0
        while not stop.is_set():
            acknowledged.append(await node.tx(put(f"{number}-{written:06}")))
            submitted.append(f"submitted-{number}-{written:06}")
            node.submit(put(submitted[-1]))
            written += 1

    cut = 0
    async with asyncio.timeout(40):
        callers = asyncio.gather(*(caller(number) for number in range(16)))
        for _ in range(8):
            enough = len(acknowledged) + 60
            while len(acknowledged) < enough:
                await node.read(names)
            cut += await asyncio.to_thread(postgres_server.terminate_connections)
        stop.set()
        await callers
        await node.flush()
    assert cut >= 16
    assert sorted(acknowledged + submitted) == await node.read(names)


async def test_a_connection_cut_inside_a_function_runs_it_again(node: Store) -> None:
    runs: list[int] = []

    def die_once(c: Connection) -> str:
        runs.append(1)
        put("a")(c)
        if len(runs) == 1:
            c.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return put("b")(c)

    assert await node.tx(die_once) == "b"
    assert (len(runs), await node.read(names)) == (2, ["a", "b"])


async def test_a_deadlock_is_resolved_by_running_one_function_again(node: Store) -> None:
    await node.tx(put("a"))
    await node.tx(put("b"))
    both_hold = threading.Barrier(2)
    runs: list[str] = []

    def lock_in_turn(first: str, second: str) -> None:
        async_name = f"{first}{second}"

        def update(c: Connection) -> str:
            runs.append(async_name)
            c.execute("UPDATE values_kept SET value = ? WHERE name = ?", async_name, first)
            if runs.count(async_name) == 1:
                both_hold.wait(10)
            c.execute("UPDATE values_kept SET value = ? WHERE name = ?", async_name, second)
            return async_name

        updates.append(update)

    updates: list[Callable[[Connection], str]] = []
    lock_in_turn("a", "b")
    lock_in_turn("b", "a")
    async with asyncio.timeout(20):
        assert await asyncio.gather(*(node.tx(update) for update in updates)) == ["ab", "ba"]
    assert len(runs) == 3
    values = await node.read(lambda c: c.execute("SELECT DISTINCT value FROM values_kept").fetchall())
    assert values in ([("ab",)], [("ba",)])


def fail_with(code: str, *, times: int, runs: list[str]) -> Callable[[Connection], str]:
    """A function whose first `times` runs meet this error of the server's."""

    def work(c: Connection) -> str:
        runs.append(code)
        put("a")(c)
        if len(runs) <= times:
            c.execute(f"DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{code}'; END $$")
        return put("b")(c)

    return work


@pytest.mark.parametrize(
    "code", ["40001", "40P01", "57P01", "25006"], ids=["serialization", "deadlock", "shutdown", "standby"]
)
async def test_what_passes_by_itself_is_tried_again(node: Store, code: str) -> None:
    runs: list[str] = []
    assert await node.tx(fail_with(code, times=2, runs=runs)) == "b"
    assert (len(runs), await node.read(names)) == (3, ["a", "b"])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("53100", StoreUnavailable),
        ("53200", StoreUnavailable),
        ("XX001", StoreCorrupt),
        ("23505", Conflict),
        ("42501", StoreError),
    ],
    ids=["disk-full", "out-of-memory", "data-corrupted", "unique", "no-privilege"],
)
async def test_other_errors_are_told_at_once(node: Store, code: str, expected: type[Exception]) -> None:
    runs: list[str] = []
    with pytest.raises(expected, match="on purpose") as refusal:
        await node.tx(fail_with(code, times=99, runs=runs))
    assert type(refusal.value) is expected
    assert (len(runs), await node.read(names)) == (1, [])


async def test_a_serialization_failure_that_never_passes_is_told_in_the_end(node: Store) -> None:
    runs: list[str] = []
    with pytest.raises(StoreError, match="on purpose"):
        await node.tx(fail_with("40001", times=99, runs=runs))
    assert len(runs) == MOST_REPEATS + 1


async def test_an_error_that_a_function_swallows_fails_it_all_the_same(node: Store) -> None:
    """PostgreSQL answers the COMMIT of a failed transaction with a rollback; that must not look like success."""

    def swallow(c: Connection) -> str:
        put("a")(c)
        try:
            c.execute("INSERT INTO values_kept (name, value) VALUES ('a', '1')")
        except Conflict:
            return "never mind"
        return "not refused"

    with pytest.raises(Conflict):
        await node.tx(swallow)
    assert await node.read(names) == []


async def test_two_nodes_write_into_one_database(url: str) -> None:
    nodes = [PostgresStore(url), PostgresStore(url)]
    await asyncio.gather(*(node.start() for node in nodes))  # both migrate at the same time
    await asyncio.gather(*(nodes[n % 2].tx(put(f"{n:02}")) for n in range(50)))
    assert [await node.read(names) for node in nodes] == [[f"{n:02}" for n in range(50)]] * 2
    await asyncio.gather(*(node.close() for node in nodes))


async def test_what_was_submitted_is_committed_in_groups(node: Store) -> None:
    """All rows of one transaction have one transaction number."""
    for n in range(100):
        node.submit(put(f"{n:03}"))
    await node.flush()
    row = await node.read(
        lambda c: c.execute("SELECT COUNT(*), COUNT(DISTINCT xmin::text) FROM values_kept").fetchone()
    )
    assert row is not None
    assert row[0] == 100
    assert int(str(row[1])) <= 10


async def test_a_group_with_a_failing_function_keeps_the_others(node: Store) -> None:
    for n in range(40):
        node.submit(put_then_raise(f"{n:03}") if n == 17 else put(f"{n:03}"))
    await node.flush()
    assert await node.read(names) == [f"{n:03}" for n in range(40) if n != 17]
    with pytest.raises(Refused):
        await node.tx(put_then_raise("x"))


async def test_commits_wait_for_the_disk_even_where_the_server_is_set_not_to(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    database = url.partition("@/")[2].partition("?")[0]
    postgres_server.admin(f"ALTER DATABASE {database} SET synchronous_commit = off")
    node = PostgresStore(url)
    await node.start()
    assert await node.tx(lambda c: c.execute("SHOW synchronous_commit").fetchone()) == ("on",)
    await node.close()


# -- refusals ---------------------------------------------------------------------------------------------------------


async def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    store = open_store("postgresql://ada:s3cret@127.0.0.1:1/toolyard?password=s3cret2")
    began = time.monotonic()
    with pytest.raises(StoreUnavailable) as refusal:
        await store.start()
    assert time.monotonic() - began < 5
    message = str(refusal.value)
    assert "postgresql://ada@127.0.0.1:1/toolyard cannot be reached" in message
    assert "refused" in message
    assert "s3cret" not in message + store.location


async def test_callers_hear_of_a_server_that_stays_away_after_our_patience(
    postgres_server: PostgresServer, url: str
) -> None:
    node = PostgresStore(url, patience=0.3)
    await node.start()
    assert await node.tx(put("a")) == "a"
    database = url.partition("@/")[2].partition("?")[0]
    postgres_server.admin(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
    postgres_server.terminate_connections()
    async with asyncio.timeout(20):
        outcomes = await asyncio.gather(*(node.tx(put(f"b{n}")) for n in range(30)), return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
        postgres_server.admin(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")
        assert await node.tx(put("c")) == "c"  # and it comes back by itself
        assert await node.read(names) == ["a", "c"]
    await node.close()


async def test_closing_does_not_wait_for_a_server_that_stays_away(
    postgres_server: PostgresServer, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    node = PostgresStore(url)
    await node.start()
    await node.tx(put("a"))
    database = url.partition("@/")[2].partition("?")[0]
    postgres_server.admin(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
    postgres_server.terminate_connections()
    node.submit(put("lost"))
    waiting = asyncio.create_task(node.tx(put("refused")))
    await asyncio.sleep(0)  # it is queued
    async with asyncio.timeout(5):
        await node.close()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await waiting
    assert [record.levelname for record in caplog.records if "A queued write failed" in record.message] == ["ERROR"]


async def test_a_missing_database_is_named(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreUnavailable, match='"nowhere" does not exist'):
        await PostgresStore(postgres_server.url("nowhere")).start()


async def test_a_database_that_is_not_utf_8_is_refused(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database("ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreError, match="encoded as SQL_ASCII"):
        await PostgresStore(url).start()


async def test_a_newer_schema_is_refused(url: str) -> None:
    versions = [Migration(n, f"step_{n}", f"CREATE TABLE t{n} (id TEXT)") for n in (1, 2)]
    newer = PostgresStore(url, migrations=versions)
    await newer.start()
    await newer.close()
    with pytest.raises(StoreTooNew, match="schema version 2"):
        await PostgresStore(url, migrations=versions[:1]).start()


def test_a_url_that_cannot_be_read_is_bad_input() -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        open_store("postgresql://localhost/toolyard?no_such_option=1")


# -- placeholders -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT ? + ?", "SELECT %s + %s"),
        ("SELECT '?', \"?\", ? -- ?\n, ?", "SELECT '?', \"?\", %s -- ?\n, %s"),
        ("SELECT /* ? */ ?", "SELECT /* ? */ %s"),
        ("SELECT 'it''s ?', ?", "SELECT 'it''s ?', %s"),
        ("SELECT a % 2, 'x%' WHERE b LIKE ?", "SELECT a %% 2, 'x%%' WHERE b LIKE %s"),
        ("SELECT '?", "SELECT '?"),
    ],
)
def test_placeholders_are_translated_outside_of_quotes(sql: str, expected: str) -> None:
    assert in_postgres_style(sql) == expected


@given(st.text(alphabet="?%'\"-/*a \n", max_size=30))
def test_the_translation_takes_exactly_the_placeholders_that_postgres_would_see(sql: str) -> None:
    """psycopg's own parser must find one parameter for each `?` outside of quotes, and undo the doubling."""
    translated = in_postgres_style(sql)
    query = PostgresQuery(Transformer())
    query.convert(translated, ["1"] * translated.replace("%%", "").count("%s"))
    restored = query.query.decode()
    for number in range(translated.replace("%%", "").count("%s"), 0, -1):
        restored = restored.replace(f"${number}", "?")
    assert restored == sql
