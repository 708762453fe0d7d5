"""Full-text search over calls, off the write path.

`index_some` runs now and then, never in a call's own transaction: it walks `calls` by row number from a watermark and
puts text into `call_texts` (FTS5, or a tsvector with a GIN index). What is newer than the watermark is found by a plain
substring scan, so a search never misses a call.
"""

from __future__ import annotations

import re
from typing import cast

from toolyard.store.base import Connection, Row, SqlValue

_WATERMARK = "calls_indexed_to"
_LONGEST_TEXT = 8_000
_WORD = re.compile(r"\w+", re.UNICODE)
_TEXT = "tool, principal, arguments, preview, result, error"


def index_some(c: Connection, *, at_most: int = 500, older_than: float) -> int:
    """Index up to `at_most` calls begun before `older_than`; returns how many rows were looked at.

    The age limit keeps clear of row numbers that other writers have taken but not yet committed.
    """
    start = _watermark(c)
    rows = c.execute(
        f"SELECT rid, state, {_TEXT} FROM calls WHERE rid > ? AND created < ? ORDER BY rid LIMIT ?",  # noqa: S608
        start,
        older_than,
        at_most,
    ).fetchall()
    for row in rows:
        if row[1] in ("COMPLETE", "ERROR"):
            _put(c, row)
        else:
            c.execute("INSERT INTO calls_to_index (rid) VALUES (?) ON CONFLICT DO NOTHING", row[0])
    if rows:
        _set_watermark(c, cast("int", rows[-1][0]))
    return len(rows) + _index_those_that_ended(c, at_most)


def matching(c: Connection, q: str) -> tuple[str, list[SqlValue]]:
    """A WHERE clause for calls that hold every word of `q`, by prefix, and its values."""
    words = [word.lower() for word in _WORD.findall(q)][:12]
    start = _watermark(c)
    recent = " AND ".join(
        "LOWER(tool || ' ' || principal || ' ' || COALESCE(arguments, '') || ' ' || COALESCE(preview, '') || ' ' || "
        "COALESCE(result, '') || ' ' || COALESCE(error, '')) LIKE ?"
        for _ in words
    )
    likes: list[SqlValue] = [f"%{word}%" for word in words]
    if not words:
        return "1 = 0", []
    open_calls = "rid IN (SELECT rid FROM calls_to_index)"
    if c.dialect == "sqlite":
        indexed = "rid IN (SELECT rowid FROM call_texts WHERE call_texts MATCH ?)"
        query = " ".join(f'"{word}"*' for word in words)
    else:
        indexed = "rid IN (SELECT rid FROM call_texts WHERE body @@ to_tsquery('simple', ?))"
        query = " & ".join(f"'{word}':*" for word in words)
    return f"({indexed} OR ((rid > ? OR {open_calls}) AND {recent}))", [query, start, *likes]


def _index_those_that_ended(c: Connection, at_most: int) -> int:
    rows = c.execute(
        f"SELECT rid, state, {_TEXT} FROM calls WHERE rid IN (SELECT rid FROM calls_to_index) "  # noqa: S608
        "AND state IN ('COMPLETE', 'ERROR') LIMIT ?",
        at_most,
    ).fetchall()
    for row in rows:
        _put(c, row)
        c.execute("DELETE FROM calls_to_index WHERE rid = ?", row[0])
    return len(rows)


def _put(c: Connection, row: Row) -> None:
    text = " ".join(str(part)[:_LONGEST_TEXT] for part in row[2:] if part)[:_LONGEST_TEXT]
    if c.dialect == "sqlite":
        c.execute("INSERT OR REPLACE INTO call_texts (rowid, body) VALUES (?, ?)", row[0], text)
    else:
        c.execute(
            "INSERT INTO call_texts (rid, body) VALUES (?, to_tsvector('simple', ?)) ON CONFLICT DO NOTHING",
            row[0],
            text.replace("\x00", " "),
        )


def _watermark(c: Connection) -> int:
    row = c.execute("SELECT value FROM values_kept WHERE name = ?", _WATERMARK).fetchone()
    return int(str(row[0])) if row else 0


def _set_watermark(c: Connection, rid: int) -> None:
    c.execute(
        "INSERT INTO values_kept (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        _WATERMARK,
        str(rid),
    )
