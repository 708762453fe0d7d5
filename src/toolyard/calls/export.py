"""Records as JSON, JSON Lines and CSV."""

from __future__ import annotations

import csv
import io

import orjson

from toolyard.core.clock import rfc3339
from toolyard.core.json import JsonValue, dumps
from toolyard.core.record import CallRecord

_COLUMNS = (
    "id",
    "tool",
    "state",
    "principal",
    "origin",
    "server",
    "created",
    "started",
    "finished",
    "duration_ms",
    "error_code",
    "error",
    "input_bytes",
    "output_bytes",
    "tokens",
    "preview",
    "idempotency_key",
)


def to_wire(record: CallRecord) -> dict[str, JsonValue]:
    """A record as the API shows it, without its arguments and result."""
    return {
        "id": record.id,
        "tool": record.tool,
        "state": record.state.value,
        "principal": record.principal,
        "origin": record.origin.value,
        "server": record.server,
        "created": rfc3339(record.created),
        "started": None if record.started is None else rfc3339(record.started),
        "finished": None if record.finished is None else rfc3339(record.finished),
        "duration_ms": None if record.duration is None else round(record.duration * 1000, 3),
        "error_code": record.error_code.value if record.error_code else None,
        "error": record.error,
        "suggestion": record.suggestion,
        "preview": record.preview,
        "details": record.details,
        "input_bytes": record.input_bytes,
        "output_bytes": record.output_bytes,
        "tokens": record.tokens,
        "idempotency_key": record.idempotency_key and record.idempotency_key.partition("|")[2],
        "session": record.session_id,
    }


def json_line(record: CallRecord, arguments: bytes, result: bytes | None) -> bytes:
    """One line: the record with whole arguments and result, spliced in as they were stored."""
    head = dumps(to_wire(record))
    return b"".join((head[:-1], b',"arguments":', arguments, b',"result":', result or b"null", b"}\n"))


def csv_header() -> bytes:
    return _csv([*_COLUMNS, "arguments"])


def csv_row(record: CallRecord, arguments: bytes) -> bytes:
    wire = to_wire(record)
    return _csv([_cell(wire[column]) for column in _COLUMNS] + [_cell(arguments.decode())])


def _cell(value: JsonValue) -> str:
    """A spreadsheet must not run what a tool or a caller wrote: text that looks like a formula gets an apostrophe."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return f"'{text}" if isinstance(value, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _csv(cells: list[str]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue().encode()
