"""Rows of `calls`: written by the record step, read by the audit log."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal, cast

import orjson

from toolyard.core.call import CallState, Origin
from toolyard.core.errors import BadInput, ErrorCode
from toolyard.core.json import JsonObject
from toolyard.core.record import CallFilter, CallRecord, MinuteCount, ToolMetrics
from toolyard.store.base import Connection, Row, SqlValue
from toolyard.store.call_texts import matching

_COLUMNS = (
    "id, tool, principal, origin, server, state, arguments, arguments_ref, result, result_ref, preview, error, "
    "error_code, suggestion, details, idempotency_key, request_hash, created, started, finished, input_bytes, "
    "output_bytes, tokens, session_id, owner"
)
SELECTED = f"{_COLUMNS}, job_id, run_job, execution, epoch, deadline, waiting"
_WIDTH = 26
_INSERT = f"INSERT INTO calls (namespace, {_COLUMNS}) VALUES"
_ROW = f"({', '.join('?' * _WIDTH)})"
_SETTLE = (
    "UPDATE calls SET state = ?, result = ?, result_ref = ?, preview = ?, error = ?, error_code = ?, suggestion = ?, "
    "details = ?, finished = ?, output_bytes = ?, tokens = ? WHERE id = ? AND state IN ('PENDING', 'PROCESSING')"
)
_SETTLE_MANY = (
    "UPDATE calls SET state = column1, result = column2, result_ref = column3, preview = column4, error = column5, "
    "error_code = column6, suggestion = column7, details = column8, finished = column9, output_bytes = column10, "
    "tokens = column11 FROM (VALUES {rows}) WHERE id = column12 AND calls.state IN ('PENDING', 'PROCESSING')"
)
_MOST_TOGETHER = 64
_FINAL = ("COMPLETE", "ERROR")


def insert(c: Connection, record: CallRecord) -> bool:
    """Put a call on record; False when its id or its idempotency key is there already."""
    return c.execute(f"{_INSERT} {_ROW} ON CONFLICT DO NOTHING", *_values(record)).rowcount == 1


def insert_many(c: Connection, records: Sequence[CallRecord]) -> None:
    """`insert` for calls without idempotency keys, in as few statements as the engine allows."""
    for some in _in_powers_of_two(records):
        rows = ", ".join([_ROW] * len(some))
        c.execute(f"{_INSERT} {rows} ON CONFLICT DO NOTHING", *chain.from_iterable(map(_values, some)))


def settle(c: Connection, record: CallRecord, *, epoch: int | None = None) -> bool:
    """Move an open call to its end, with `epoch` only for the run that has it; False when it had ended already."""
    if epoch is not None:
        return c.execute(f"{_SETTLE} AND epoch = ?", *_end_values(record), epoch).rowcount == 1
    return c.execute(_SETTLE, *_end_values(record)).rowcount == 1


def settle_many(c: Connection, records: Sequence[CallRecord]) -> set[str]:
    """`settle` in as few statements as the engine allows; the calls that had ended otherwise, where it came too late.
    PostgreSQL wants types for VALUES, so one each there."""
    late: set[str] = set()
    if c.dialect != "sqlite" or len(records) == 1:
        for record in records:
            if not settle(c, record) and ended_otherwise(c, record):
                late.add(record.id)
        return late
    for some in _in_powers_of_two(records):
        rows = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * len(some))
        settled = c.execute(_SETTLE_MANY.format(rows=rows), *chain.from_iterable(map(_end_values, some))).rowcount
        if settled != len(some):
            late |= {record.id for record in some if ended_otherwise(c, record)}
    return late


def ended_otherwise(c: Connection, record: CallRecord) -> bool:
    """Whether a call had ended before `record` could settle it; then that is kept as `late`."""
    present = get(c, record.id)
    if present is None or _same_end(present, record):  # the same transaction, run twice
        return False
    keep_late(c, record)
    return True


def keep_late(c: Connection, record: CallRecord) -> bool:
    """Keep under `late` in the details what came after a call had ended otherwise: its effect may have happened.

    False when it ended just like this (a transaction that ran twice), or has such a note already.
    """
    present = get(c, record.id)
    if present is None or not present.state.is_final or _same_end(present, record):
        return False
    if present.details is not None and "late" in present.details:
        return False
    late: JsonObject = {
        "state": record.state.value,
        "at": record.finished,
        "preview": record.preview,
        "error": record.error,
        "code": record.error_code.value if record.error_code else None,
    }
    details = orjson.dumps({**(present.details or {}), "late": late}).decode()
    c.execute("UPDATE calls SET details = ? WHERE id = ?", details, record.id)
    return True


def _same_end(one: CallRecord, other: CallRecord) -> bool:
    return (one.state, one.finished, one.error_code) == (other.state, other.finished, other.error_code)


def get(c: Connection, call_id: str) -> CallRecord | None:
    row = c.execute(f"SELECT {SELECTED} FROM calls WHERE id = ?", call_id).fetchone()  # noqa: S608
    return record_of(row) if row else None


def origins(c: Connection, call_ids: Sequence[str]) -> dict[str, Origin]:
    """Where calls came from; those that are no longer on record are missing."""
    if not call_ids:
        return {}
    rows = c.execute(
        f"SELECT id, origin FROM calls WHERE id IN ({', '.join('?' * len(call_ids))})",  # noqa: S608
        *call_ids,
    ).fetchall()
    return {str(row[0]): Origin(str(row[1])) for row in rows}


def by_idempotency_key(c: Connection, principal: str, key: str) -> CallRecord | None:
    row = c.execute(
        f"SELECT {SELECTED} FROM calls WHERE principal = ? AND idempotency_key = ?",  # noqa: S608
        principal,
        key,
    ).fetchone()
    return record_of(row) if row else None


def page(
    c: Connection, wanted: CallFilter, *, limit: int, cursor: str | None = None
) -> tuple[list[CallRecord], str | None]:
    """Newest first, `limit` at a time.

    Raises:
        BadInput: the cursor is not one of ours.
    """
    where, values = _where(c, wanted)
    if cursor is not None:
        created, rid = _read_cursor(cursor)
        where.append("(created < ? OR (created = ? AND rid < ?))")
        values += [created, created, rid]
    clause = f"WHERE {' AND '.join(where)}" if where else ""
    rows = c.execute(
        f"SELECT {SELECTED}, rid FROM calls {clause} ORDER BY created DESC, rid DESC LIMIT ?",  # noqa: S608
        *values,
        limit + 1,
    ).fetchall()
    records = [record_of(row) for row in rows[:limit]]
    more = len(rows) > limit
    return records, _write_cursor(records[-1].created, cast("int", rows[limit - 1][-1])) if more else None


def delete_before(c: Connection, limit: float, *, at_most: int = 500) -> int:
    """Delete up to `at_most` ended calls that are older than `limit`; returns how many went."""
    rows = c.execute(
        "SELECT rid, id FROM calls WHERE created < ? AND state IN ('COMPLETE', 'ERROR') ORDER BY created LIMIT ?",
        limit,
        at_most,
    ).fetchall()
    key = "rowid" if c.dialect == "sqlite" else "rid"
    for rid, call_id in rows:
        c.execute("DELETE FROM questions WHERE call_id = ?", call_id)
        c.execute(f"DELETE FROM call_texts WHERE {key} = ?", rid)  # noqa: S608
        c.execute("DELETE FROM calls_to_index WHERE rid = ?", rid)
        c.execute("DELETE FROM calls WHERE rid = ?", rid)
    return len(rows)


def tool_metrics(c: Connection, since: float) -> list[ToolMetrics]:
    """Per tool, busiest first; percentiles by nearest rank over executed calls."""
    rows = c.execute(
        """
        WITH timed AS (
          SELECT tool, (finished - started) * 1000.0 AS ms,
                 ROW_NUMBER() OVER (PARTITION BY tool ORDER BY finished - started) AS nth,
                 COUNT(*) OVER (PARTITION BY tool) AS n
          FROM calls WHERE created >= ? AND started IS NOT NULL AND finished IS NOT NULL
        ), ranked AS (
          SELECT tool, MIN(CASE WHEN nth * 2 >= n THEN ms END) AS p50,
                 MIN(CASE WHEN nth * 20 >= n * 19 THEN ms END) AS p95
          FROM timed GROUP BY tool
        ), counted AS (
          SELECT tool, COUNT(*) AS calls, SUM(CASE WHEN state = 'ERROR' THEN 1 ELSE 0 END) AS failed,
                 COALESCE(SUM(tokens), 0) AS tokens
          FROM calls WHERE created >= ? GROUP BY tool
        )
        SELECT counted.tool, counted.calls, counted.failed, ranked.p50, ranked.p95, counted.tokens
        FROM counted LEFT JOIN ranked ON ranked.tool = counted.tool ORDER BY counted.calls DESC, counted.tool
        """,
        since,
        since,
    ).fetchall()
    return [
        ToolMetrics(str(tool), _int(calls), _int(failed), _float(p50), _float(p95), _int(tokens))
        for tool, calls, failed, p50, p95, tokens in rows
    ]


def per_minute(c: Connection, since: float) -> list[MinuteCount]:
    """Only minutes with calls, oldest first."""
    minute = "CAST(created / 60 AS INTEGER)" if c.dialect == "sqlite" else "CAST(FLOOR(created / 60) AS BIGINT)"
    rows = c.execute(
        f"SELECT minute, COUNT(*), SUM(failed) FROM (SELECT {minute} * 60 AS minute, "  # noqa: S608
        "CASE WHEN state = 'ERROR' THEN 1 ELSE 0 END AS failed FROM calls WHERE created >= ?) AS t "
        "GROUP BY minute ORDER BY minute",
        since,
    ).fetchall()
    return [MinuteCount(_int(minute), _int(calls), _int(failed)) for minute, calls, failed in rows]


def _where(c: Connection, wanted: CallFilter) -> tuple[list[str], list[SqlValue]]:
    equal: Sequence[tuple[str, SqlValue]] = (
        ("tool", wanted.tool),
        ("namespace", wanted.namespace),
        ("state", wanted.state.value if wanted.state else None),
        ("error_code", wanted.error_code.value if wanted.error_code else None),
        ("principal", wanted.principal),
        ("origin", wanted.origin.value if wanted.origin else None),
        ("server", wanted.server),
        ("session_id", wanted.session),
    )
    where = [f"{column} = ?" for column, value in equal if value is not None]
    values: list[SqlValue] = [value for _, value in equal if value is not None]
    for comparison, value in (("created >= ?", wanted.since), ("created < ?", wanted.until)):
        if value is not None:
            where.append(comparison)
            values.append(value)
    if wanted.q and wanted.q.strip():
        clause, found = matching(c, wanted.q)
        where.append(clause)
        values += found
    return where, values


def _write_cursor(created: float, rid: int) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([created, rid])).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[float, int]:
    try:
        created, rid = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return float(created), int(rid)
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadInput(
            "This cursor is not one that we gave out.", where="cursor", suggestion="Start again without a cursor."
        ) from error


def _values(record: CallRecord) -> tuple[SqlValue, ...]:
    return (
        record.namespace,
        record.id,
        record.tool,
        record.principal,
        record.origin.value,
        record.server,
        record.state.value,
        record.arguments,
        record.arguments_ref,
        record.result,
        record.result_ref,
        record.preview,
        record.error,
        record.error_code.value if record.error_code else None,
        record.suggestion,
        _details(record),
        record.idempotency_key,
        record.request_hash,
        record.created,
        record.started,
        record.finished,
        record.input_bytes,
        record.output_bytes,
        record.tokens,
        record.session_id,
        record.owner,
    )


def _end_values(record: CallRecord) -> tuple[SqlValue, ...]:
    return (
        record.state.value,
        record.result,
        record.result_ref,
        record.preview,
        record.error,
        record.error_code.value if record.error_code else None,
        record.suggestion,
        _details(record),
        record.finished,
        record.output_bytes,
        record.tokens,
        record.id,
    )


def _in_powers_of_two(records: Sequence[CallRecord]) -> Iterator[Sequence[CallRecord]]:
    """Parts of few different lengths, so that few different statements are prepared and kept."""
    at = 0
    while at < len(records):
        size = min(1 << ((len(records) - at).bit_length() - 1), _MOST_TOGETHER)
        yield records[at : at + size]
        at += size


def _details(record: CallRecord) -> str | None:
    return orjson.dumps(record.details).decode() if record.details else None


def record_of(row: Row) -> CallRecord:
    text = cast("Sequence[str | None]", row)
    numbers = cast("Sequence[float | None]", row)
    return CallRecord(
        id=str(row[0]),
        tool=str(row[1]),
        principal=str(row[2]),
        origin=Origin(row[3]),
        server=text[4],
        state=CallState(row[5]),
        arguments=text[6],
        arguments_ref=text[7],
        result=text[8],
        result_ref=text[9],
        preview=text[10],
        error=text[11],
        error_code=ErrorCode(row[12]) if row[12] else None,
        suggestion=text[13],
        details=cast("JsonObject", orjson.loads(str(row[14]))) if row[14] else None,
        idempotency_key=text[15],
        request_hash=text[16],
        created=_float(row[17]) or 0.0,
        started=numbers[18],
        finished=numbers[19],
        input_bytes=_int(row[20]),
        output_bytes=None if row[21] is None else _int(row[21]),
        tokens=None if row[22] is None else _int(row[22]),
        session_id=text[23],
        owner=text[24],
        job_id=text[25],
        run_job=text[26],
        execution="client" if row[27] == "client" else "node",
        epoch=None if row[28] is None else _int(row[28]),
        deadline=numbers[29],
        waiting=None if row[5] in _FINAL else cast("Literal['approval', 'client'] | None", row[30]),
    )


def _int(value: SqlValue) -> int:
    return int(value) if value is not None else 0


def _float(value: SqlValue) -> float | None:
    return None if value is None else float(value)
