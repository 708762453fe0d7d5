"""What every store promises, on both engines."""

from __future__ import annotations

import asyncio
import logging
import threading
import time

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.rows import Refused, names, put, put_then_raise
from toolyard.core.errors import Conflict, StoreError, StoreUnavailable
from toolyard.store import Connection, Row, Store, open_store


async def test_a_transaction_answers_its_functions_value_and_its_rows_stay(store: Store) -> None:
    assert await store.tx(put("a", "1")) == "a"
    assert await store.read(names) == ["a"]


async def test_what_a_function_raises_reaches_its_caller_and_its_rows_are_taken_back(store: Store) -> None:
    with pytest.raises(Refused, match="a"):
        await store.tx(put_then_raise("a"))
    assert await store.read(names) == []


async def test_a_function_that_fails_takes_nothing_of_its_neighbours_back(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(store.tx(put_then_raise(f"{n:03}") if n % 3 == 0 else put(f"{n:03}")) for n in range(300)),
        return_exceptions=True,
    )
    kept = [f"{n:03}" for n in range(300) if n % 3]
    assert [outcome for outcome in outcomes if isinstance(outcome, str)] == kept
    assert [str(outcome) for outcome in outcomes if isinstance(outcome, Refused)] == [
        f"{n:03}" for n in range(0, 300, 3)
    ]
    assert await store.read(names) == kept


async def test_nobody_sees_half_a_transaction(store: Store) -> None:
    halfway, go_on = threading.Event(), threading.Event()

    def write_both(c: Connection) -> None:
        put("a")(c)
        halfway.set()
        assert go_on.wait(10)
        put("b")(c)

    writing = asyncio.create_task(store.tx(write_both))
    await asyncio.to_thread(halfway.wait, 10)
    before = await store.read(names)
    go_on.set()
    await writing
    assert (before, await store.read(names)) == ([], ["a", "b"])


async def test_a_read_sees_one_state_however_many_statements_it_has(store: Store) -> None:
    looked, go_on = threading.Event(), threading.Event()

    def look_twice(c: Connection) -> tuple[list[str], list[str]]:
        first = names(c)
        looked.set()
        assert go_on.wait(10)
        return first, names(c)

    reading = asyncio.create_task(store.read(look_twice))
    await asyncio.to_thread(looked.wait, 10)
    await store.tx(put("a"))
    go_on.set()
    assert await reading == ([], [])
    assert await store.read(names) == ["a"]


async def test_several_readers_read_at_the_same_time_as_a_writer_writes(store: Store) -> None:
    together = threading.Barrier(3, timeout=10)

    def meet(c: Connection) -> int:
        found = len(names(c))
        together.wait()
        return found

    assert await asyncio.gather(store.read(meet), store.read(meet), store.tx(meet)) == [0, 0, 0]


async def test_a_read_cannot_write(store: Store) -> None:
    with pytest.raises(StoreError):
        await store.read(put("a"))
    assert await store.read(names) == []
    assert await store.tx(put("b")) == "b"


async def test_what_one_caller_awaits_in_turn_happens_in_turn(store: Store) -> None:
    await store.tx(put("counter", "0"))

    def increment(c: Connection) -> int:
        c.execute("UPDATE values_kept SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE name = 'counter'")
        row = c.execute("SELECT value FROM values_kept WHERE name = 'counter'").fetchone()
        return int(str(row[0])) if row else -1

    async def caller() -> list[int]:
        return [await store.tx(increment) for _ in range(20)]

    by_caller = await asyncio.gather(*(caller() for _ in range(8)))
    assert all(seen == sorted(seen) for seen in by_caller)
    assert sorted(n for seen in by_caller for n in seen) == list(range(1, 161))


async def test_what_was_submitted_happens_in_order_and_flush_waits_for_all_of_it(store: Store) -> None:
    seen: list[int] = []

    def remember(n: int) -> None:
        def write(c: Connection) -> None:
            put(f"{n:04}")(c)
            seen.append(n)

        store.submit(write)

    for n in range(600):
        remember(n)
    await store.flush()
    assert seen == list(range(600))
    assert await store.read(names) == [f"{n:04}" for n in range(600)]


async def test_a_submitted_function_that_fails_is_logged_and_takes_no_other_with_it(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "toolyard.store"):
        store.submit(put("a"))
        store.submit(put_then_raise("b"))
        store.submit(put("c"))
        await store.flush()
    assert await store.read(names) == ["a", "c"]
    assert [record.getMessage() for record in caplog.records] == ["A queued write failed: b"]


async def test_a_transaction_is_carried_out_although_its_caller_went_away(store: Store) -> None:
    started, go_on = threading.Event(), threading.Event()

    def wait_then_write(c: Connection) -> None:
        started.set()
        assert go_on.wait(10)
        put("a")(c)

    task = asyncio.create_task(store.tx(wait_then_write))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    async with asyncio.timeout(10):
        while await store.read(names) != ["a"]:
            await store.tx(names)


async def test_closing_finishes_what_was_queued_and_refuses_what_comes_later(database: str) -> None:
    store = open_store(database)
    await store.start()
    writing = [asyncio.create_task(store.tx(put(f"tx-{n}"))) for n in range(50)]
    await asyncio.sleep(0)
    for n in range(50):
        store.submit(put(f"submitted-{n}"))
    await store.close()
    assert [await task for task in writing] == [f"tx-{n}" for n in range(50)]
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.tx(names)
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.read(names)
    with pytest.raises(StoreUnavailable, match="closed"):
        store.submit(names)
    await store.close()

    again = open_store(database)
    await again.start()
    assert len(await again.read(names)) == 100
    await again.close()


async def test_a_second_row_with_the_same_key_is_a_conflict(store: Store) -> None:
    def insert(c: Connection) -> None:
        c.execute("INSERT INTO values_kept (name, value) VALUES (?, ?)", "a", "1")

    await store.tx(insert)
    with pytest.raises(Conflict, match="same key"):
        await store.tx(insert)
    assert await store.read(names) == ["a"]


@pytest.mark.parametrize(
    "sql",
    ["INSERT INTO values_kept (name, value) VALUES ('a', NULL)", "SELECT nothing FROM values_kept", "SELEC 1"],
    ids=["not-null", "no-such-column", "no-sql"],
)
async def test_a_statement_that_the_engine_refuses_is_a_store_error(store: Store, sql: str) -> None:
    with pytest.raises(StoreError, match="statement was refused"):
        await store.tx(lambda c: c.execute(sql))
    assert await store.tx(put("b")) == "b"


async def test_values_come_back_as_they_went_in(store: Store) -> None:
    def there_and_back(c: Connection) -> Row | None:
        c.execute(
            "INSERT INTO calls (id, tool, namespace, principal, origin, state, arguments, created, input_bytes, tokens)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            "id", "a:b", "a", "ключ 🔑", "mcp", "PENDING", '{"a": "50%?"}', 1763636400.123456, 2**53 + 1, None,
        )  # fmt: skip
        return c.execute(
            "SELECT principal, arguments, created, input_bytes, tokens, '100%', 'why?' FROM calls WHERE id = ?", "id"
        ).fetchone()

    assert await store.tx(there_and_back) == (
        "ключ 🔑", '{"a": "50%?"}', 1763636400.123456, 2**53 + 1, None, "100%", "why?",
    )  # fmt: skip


async def test_flags_sums_and_averages_are_plain_numbers_on_both_engines(store: Store) -> None:
    def numbers(c: Connection) -> Row | None:
        c.executemany(
            "INSERT INTO tool_settings (tool, enabled, time_limit, updated) VALUES (?, ?, ?, ?)",
            [("a", True, 1.5, 0.0), ("b", False, 2, 0.0), ("c", 1, None, 0.0)],
        )
        return c.execute(
            "SELECT SUM(enabled), AVG(time_limit), COUNT(*), SUM(enabled) * 1.0 / 4, MAX(time_limit) FROM tool_settings"
        ).fetchone()

    row = await store.tx(numbers)
    assert row == (2, 1.75, 3, 0.5, 2.0)
    assert [type(value) for value in row or ()] == [int, float, int, float, float]


async def test_a_statement_says_how_many_rows_it_changed_and_answers_none_where_there_are_none(store: Store) -> None:
    def outcomes(c: Connection) -> list[object]:
        inserted = c.execute("INSERT INTO values_kept (name, value) VALUES ('a', '1') ON CONFLICT DO NOTHING")
        repeated = c.execute("INSERT INTO values_kept (name, value) VALUES ('a', '2') ON CONFLICT DO NOTHING")
        updated = c.execute("UPDATE values_kept SET value = '3' WHERE name = 'b'")
        returned = c.execute("UPDATE values_kept SET value = '4' WHERE name = 'a' RETURNING value").fetchall()
        return [
            inserted.rowcount,
            repeated.rowcount,
            updated.rowcount,
            updated.fetchone(),
            updated.fetchall(),
            [*returned],
        ]

    assert await store.tx(outcomes) == [1, 0, 0, None, [], [("4",)]]


async def test_the_databases_clock_tells_the_time(store: Store) -> None:
    before = time.time()
    told = await store.tx(lambda c: (c.now(), c.now()))
    assert before - 1 <= told[0] <= told[1] <= time.time() + 1


async def test_callers_of_several_event_loops_share_one_store(store: Store) -> None:
    def own_loop(name: str) -> str:
        return asyncio.run(store.tx(put(name)))

    answers = await asyncio.gather(*(asyncio.to_thread(own_loop, f"loop-{n}") for n in range(4)))
    assert answers == await store.read(names) == [f"loop-{n}" for n in range(4)]


async def test_a_store_works_on_uvloop_which_serves_in_production(store: Store) -> None:
    async def work() -> list[str]:
        store.submit(put("submitted"))
        written = await asyncio.gather(*(store.tx(put(f"{n}")) for n in range(5)))
        await store.flush()
        return [*written, *await store.read(names)]

    numbers = [f"{n}" for n in range(5)]
    assert await asyncio.to_thread(uvloop.run, work()) == [*numbers, *numbers, "submitted"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40))
async def test_any_text_survives_both_engines(store: Store, text: str) -> None:
    def there_and_back(c: Connection) -> Row | None:
        c.execute("DELETE FROM values_kept")
        c.execute("INSERT INTO values_kept (name, value) VALUES (?, ?)", "text", text)
        return c.execute("SELECT value FROM values_kept WHERE value = ?", text).fetchone()

    assert await store.tx(there_and_back) == (text,)
