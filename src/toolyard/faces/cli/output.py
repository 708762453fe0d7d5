"""What commands print: tables for people, tab-separated lines for pipes, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

import orjson

from toolyard.core.json import JsonObject, JsonValue

_CONTROL = dict.fromkeys([*range(32), *range(127, 160)], " ")
_CONTROL_BUT_LINES = {code: text for code, text in _CONTROL.items() if code not in (9, 10)}


def print_json(value: object) -> None:
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode() + "\n")


def print_text(text: str) -> None:
    """Text from elsewhere: what could steer a terminal is left out."""
    sys.stdout.write(text.translate(_CONTROL_BUT_LINES) + "\n")


def note(text: str) -> None:
    """To stderr, so that stdout holds results only."""
    print(text, file=sys.stderr)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """`empty` is said on stderr when there are no rows. Every cell takes one line."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    if not cells:
        note(empty)
    elif not sys.stdout.isatty():
        for row in cells:
            sys.stdout.write("\t".join(row) + "\n")
    else:
        _print_for_people(columns, cells)


def print_fields(fields: Mapping[str, object]) -> None:
    """`name  value` lines; nested values as JSON."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        if value is not None and value not in ("", [], {}):
            print_text(f"{name:<{width}}  {_shown(value)}")


def one_line(value: object) -> str:
    return " ".join(_shown(value).translate(_CONTROL).split())


def first_line(text: object, width: int = 100) -> str:
    line = next(iter(str(text or "").strip().splitlines()), "")
    return line if len(line) <= width else f"{line[: width - 3]}..."


def texts(value: JsonValue) -> str:
    """`a, b` from a list of words."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")


def seconds(value: JsonValue) -> str:
    if not isinstance(value, int | float):
        return ""
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def objects(value: JsonValue) -> list[JsonObject]:
    """The objects in a list; anything else is left out."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict | list):
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    return str(value)


def _print_for_people(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        last = index == len(columns) - 1
        table.add_column(column, overflow="ellipsis" if last else "fold", no_wrap=last)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
