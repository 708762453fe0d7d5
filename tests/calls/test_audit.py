from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.calls.yard import yard
from toolyard.app.housekeeping import Housekeeping
from toolyard.core.call import CallState, Origin
from toolyard.core.errors import BadInput, ErrorCode, NotFound
from toolyard.core.record import CallFilter, CallRecord
from toolyard.durable import nodes
from toolyard.store import calls as rows
from toolyard.store import open_calls
from toolyard.store.base import Connection, Store
from toolyard.store.blobs import Blobs
from toolyard.store.call_texts import index_some

DAY = 86_400.0


def record(n: int, **changes: object) -> CallRecord:
    base = CallRecord(
        id=f"call_{n:04d}",
        tool="pets:list",
        principal="key:ci",
        origin=Origin.MCP,
        server="default",
        state=CallState.COMPLETE,
        arguments='{"limit":3}',
        arguments_ref=None,
        result='{"content":[]}',
        result_ref=None,
        preview="three pets",
        error=None,
        error_code=None,
        suggestion=None,
        details={"status": 200},
        idempotency_key=None,
        request_hash=None,
        created=1_000_000.0 + n,
        started=1_000_000.0 + n,
        finished=1_000_000.5 + n,
        input_bytes=11,
        output_bytes=14,
        tokens=3,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


async def put(store: Store, *records: CallRecord) -> None:
    def write(c: Connection) -> None:
        for item in records:
            rows.insert(c, item)

    await store.tx(write)


async def test_a_record_comes_back_as_it_was_written(store: Store) -> None:
    written = record(
        1,
        state=CallState.ERROR,
        error="Schlüssel fehlt \u0007",
        error_code=ErrorCode.UPSTREAM,
        suggestion="Try again.",
        idempotency_key="key:k1|a",
        request_hash="ff",
    )
    await put(store, written)
    assert await store.read(lambda c: rows.get(c, "call_0001")) == written


async def test_a_call_is_settled_once(store: Store) -> None:
    await put(store, record(1, state=CallState.PROCESSING, finished=None))
    ended = record(1)
    assert await store.tx(lambda c: rows.settle(c, ended))
    assert not await store.tx(lambda c: rows.settle(c, replace(ended, state=CallState.ERROR)))
    found = await store.read(lambda c: rows.get(c, "call_0001"))
    assert found is not None
    assert found.state is CallState.COMPLETE


async def test_pages_go_through_everything_once_newest_first(store: Store) -> None:
    await put(store, *(record(n, created=1_000_000.0 + n // 4) for n in range(23)))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        items, cursor = await store.read(lambda c, at=cursor: rows.page(c, CallFilter(), limit=5, cursor=at))
        seen += [item.id for item in items]
        if cursor is None:
            break
    assert seen == [f"call_{n:04d}" for n in reversed(range(23))]


async def test_a_foreign_cursor_is_refused(store: Store) -> None:
    for cursor in ("nonsense", "", "W10", "eyJhIjoxfQ"):
        with pytest.raises(BadInput, match="cursor"):
            await store.read(lambda c, at=cursor: rows.page(c, CallFilter(), limit=5, cursor=at))


async def test_filters_narrow_the_log(store: Store) -> None:
    await put(
        store,
        record(1),
        record(2, tool="crm:find", principal="operator:ann", origin=Origin.CONSOLE),
        record(3, state=CallState.ERROR, error_code=ErrorCode.TIMEOUT, error="too slow"),
    )

    async def ids(wanted: CallFilter) -> list[str]:
        items, _ = await store.read(lambda c: rows.page(c, wanted, limit=10))
        return [item.id[-1] for item in items]

    assert await ids(CallFilter(tool="crm:find")) == ["2"]
    assert await ids(CallFilter(namespace="pets")) == ["3", "1"]
    assert await ids(CallFilter(state=CallState.ERROR)) == ["3"]
    assert await ids(CallFilter(error_code=ErrorCode.TIMEOUT)) == ["3"]
    assert await ids(CallFilter(principal="operator:ann")) == ["2"]
    assert await ids(CallFilter(origin=Origin.MCP)) == ["3", "1"]
    assert await ids(CallFilter(since=1_000_002.0)) == ["3", "2"]
    assert await ids(CallFilter(until=1_000_002.0)) == ["1"]


@pytest.mark.parametrize("indexed", [False, True])
async def test_full_text_search_finds_words_before_and_after_indexing(store: Store, indexed: bool) -> None:
    await put(
        store,
        record(1, arguments='{"name":"Rex the brave"}'),
        record(2, state=CallState.PROCESSING, finished=None, arguments='{"name":"Bella"}'),
        record(3, state=CallState.ERROR, error="the kennel is closed", error_code=ErrorCode.UPSTREAM),
    )
    if indexed:
        while await store.tx(lambda c: index_some(c, at_most=2, older_than=2_000_000.0)):
            pass
        await store.tx(lambda c: rows.settle(c, record(2, preview="Bella found in the garden")))

    async def ids(q: str) -> list[str]:
        items, _ = await store.read(lambda c: rows.page(c, CallFilter(q=q), limit=10))
        return [item.id[-1] for item in items]

    assert await ids("rex") == ["1"]
    assert await ids("brave REX") == ["1"]
    assert await ids("bel") == ["2"]
    assert await ids("kennel") == ["3"]
    assert await ids("rex kennel") == []
    assert await ids("100% 'quoted\" OR") == []
    assert await ids("***") == []
    if indexed:
        assert await ids("garden") == ["2"]
        assert await store.tx(lambda c: index_some(c, at_most=9, older_than=2_000_000.0)) == 1
        assert await ids("garden") == ["2"]


async def test_percentiles_and_rates_are_those_of_the_rows(store: Store) -> None:
    timed = [record(n, finished=1_000_000.0 + n + (n + 1) / 100) for n in range(100)]
    refused = record(200, state=CallState.ERROR, started=None, error_code=ErrorCode.DENIED, tokens=None)
    await put(store, *timed, refused)
    (metrics,) = await store.read(lambda c: rows.tool_metrics(c, 0.0))
    assert (metrics.tool, metrics.calls, metrics.failed, metrics.result_tokens) == ("pets:list", 101, 1, 300)
    assert metrics.p50_ms == pytest.approx(500, abs=1)
    assert metrics.p95_ms == pytest.approx(950, abs=1)
    assert metrics.success_rate == pytest.approx(100 / 101)


async def test_minutes_are_counted_at_their_beginning(store: Store) -> None:
    await put(store, record(1, created=59.9), record(2, created=60.0, state=CallState.ERROR), record(3, created=61.0))
    counts = await store.read(lambda c: rows.per_minute(c, 0.0))
    assert [(item.minute, item.calls, item.failed) for item in counts] == [(0, 1, 0), (60, 2, 1)]


async def test_retention_deletes_rows_texts_and_blobs_of_old_days(store: Store, tmp_path: Path) -> None:
    class Later:
        def now(self) -> float:
            return 1_000_000.0 + 40 * DAY

        def monotonic(self) -> float:
            return 0.0

    blobs = Blobs(str(tmp_path / "blobs"))
    await put(store, record(1), record(2, created=1_000_000.0 + 39 * DAY))
    await blobs.put("calls/1970-01-12/call_0001-result.json", b"{}")
    await blobs.put("calls/1970-02-20/call_0002-result.json", b"{}")
    keeping = Housekeeping(store, blobs, Later(), retention_days=30)
    await keeping.index()
    await keeping.retain()
    items, _ = await store.read(lambda c: rows.page(c, CallFilter(), limit=10))
    assert [item.id for item in items] == ["call_0002"]
    assert await blobs.names("calls") == ["calls/1970-02-20/call_0002-result.json"]


async def test_a_node_that_died_leaves_interrupted_calls_and_a_living_one_keeps_its_own(store: Store) -> None:
    theirs = {
        "dead": replace(record(1, state=CallState.PROCESSING, finished=None), owner="node_dead"),
        "alive": replace(record(2, state=CallState.PROCESSING, finished=None), owner="node_alive"),
        "of nobody": record(3, state=CallState.PROCESSING, finished=None),
    }
    await put(store, *theirs.values(), record(4))
    await store.tx(lambda c: nodes.renew(c, "node_alive", 60.0, None))
    await store.tx(lambda c: nodes.renew(c, "node_dead", -1.0, None))
    settled = await store.tx(lambda c: open_calls.interrupt_orphans(c, now=5.0))
    assert [r.id for r in settled] == [theirs["dead"].id, theirs["of nobody"].id]
    assert {(r.state, r.error_code, r.finished) for r in settled} == {(CallState.ERROR, ErrorCode.INTERRUPTED, 5.0)}
    assert await store.tx(lambda c: open_calls.interrupt_orphans(c, now=6.0)) == []


async def test_a_result_that_comes_after_the_end_changes_nothing_and_is_kept_as_late(store: Store) -> None:
    begun = replace(record(1, state=CallState.PROCESSING, finished=None), owner="node_dead", details=None)
    others = [replace(record(n, state=CallState.PROCESSING, finished=None), owner="node_dead") for n in (2, 3)]
    await put(store, begun, *others)
    await store.tx(lambda c: open_calls.interrupt_orphans(c, now=5.0))
    late = replace(begun, state=CallState.COMPLETE, finished=9.0, preview="done after all")
    await store.tx(lambda c: rows.settle_many(c, [late]))
    await store.tx(
        lambda c: rows.settle_many(c, [replace(other, state=CallState.COMPLETE, finished=9.0) for other in others])
    )
    found = await store.read(lambda c: rows.get(c, begun.id))
    assert found is not None
    assert (found.state, found.error_code, found.finished) == (CallState.ERROR, ErrorCode.INTERRUPTED, 5.0)
    assert found.details is not None
    assert found.details["late"] == {
        "state": "COMPLETE",
        "at": 9.0,
        "preview": "done after all",
        "error": None,
        "code": None,
    }
    assert not await store.tx(lambda c: rows.keep_late(c, late)), "once is enough"


async def lines(source: AsyncIterator[bytes]) -> bytes:
    return b"".join([line async for line in source])


async def test_exports_hold_whole_arguments_and_results(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        await y.call("pets:write", {"text": "=HYPERLINK(1)"})
        await y.call("pets:read", {"text": "x" * 20_000})
        await y.call("pets:read", {"txt": 1})
        exported = [json.loads(line) for line in (await lines(y.calls.export(CallFilter(), "jsonl"))).splitlines()]
        assert [(item["state"], item["error_code"]) for item in exported] == [
            ("ERROR", "invalid_arguments"),
            ("COMPLETE", None),
            ("COMPLETE", None),
        ]
        assert exported[1]["arguments"] == {"text": "x" * 20_000}
        assert exported[1]["result"] == {"content": [{"type": "text", "text": "x" * 20_000}]}
        assert exported[0]["result"] is None
        table = list(csv.DictReader(io.StringIO((await lines(y.calls.export(CallFilter(), "csv"))).decode())))
        assert [row["tool"] for row in table] == ["pets:read", "pets:read", "pets:write"]
        assert table[2]["preview"] == "'=HYPERLINK(1)"
        assert json.loads(table[2]["arguments"]) == {"text": "=HYPERLINK(1)"}


async def test_a_call_without_a_result_says_why(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        outcome = await y.call("pets:read", {"txt": 1})
        with pytest.raises(NotFound, match="failed before"):
            await y.calls.full_result(outcome.call_id)
