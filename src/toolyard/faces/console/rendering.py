"""Jinja2, and how times, sizes and JSON are shown to people."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from toolyard.core.clock import SystemClock
from toolyard.faces.console.forms import Node, harvest
from toolyard.faces.console.forms.sources import Absent, pretty

HERE = Path(__file__).parent
_CLOCK = SystemClock()
NOTHING = "\N{EN DASH}"


def render(template: str, context: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    shown: tuple[Callable[..., str], ...]
    shown = (ago, left, moment, stamp, ms, seconds, size, count, percent, tool_url, path_part, shown_json)
    environment.filters |= {function.__name__: function for function in (*shown, lines, filled)}  # pyright: ignore[reportUnknownMemberType]
    environment.globals |= {"static": static_url, "link": link, "icon": icon}  # pyright: ignore[reportUnknownMemberType]
    return environment


def icon(name: str) -> Markup:
    """A drawing of our own sprite, hidden from screen readers: the text beside it says the same."""
    return Markup('<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>').format(
        static_url("icons.svg"), name
    )


@cache
def static_url(name: str) -> str:
    """With the content's hash, so that it can be cached for good."""
    digest = hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


def link(path: str, **query: object) -> str:
    """`path` with those query parameters that are set."""
    kept = {key: str(value) for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(kept)}" if kept else path


def path_part(text: str) -> str:
    return quote(text, safe=":")


def tool_url(tool_id: str) -> str:
    return f"/tools/{path_part(tool_id)}"


def moment(at: float) -> str:
    """For `<time datetime>`."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def stamp(at: float) -> str:
    """`2026-03-01 09:15:02 UTC`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(at: float) -> str:
    """`12 s ago`, or `in 5 s`."""
    passed = _CLOCK.now() - at
    if passed < -1:
        return f"in {_rough(-passed)}"
    return "just now" if passed < 2 else f"{_rough(passed)} ago"


def left(span: float) -> str:
    """`4 min 12 s left`, in steps that a page can keep up with."""
    whole = int(span)
    if whole <= 0:
        return "Time is up"
    if whole < 60:
        return f"{whole} s left"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s left"
    return f"{whole // 3600} h {whole % 3600 // 60} min left" if whole < 172_800 else f"{whole // 86_400} days left"


def _rough(span: float) -> str:
    for limit, unit, name in ((90, 1, "s"), (5400, 60, "min"), (129_600, 3600, "h")):
        if span < limit:
            return f"{round(span / unit)} {name}"
    return f"{round(span / 86_400)} days"


def ms(value: float | None) -> str:
    """Milliseconds in the unit a person would choose."""
    if value is None:
        return NOTHING
    if value < 0.05:
        return "< 0.1 ms"
    if value < 10:
        return f"{value:.1f} ms"
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.2f} s"


def seconds(value: float | None) -> str:
    return ms(None if value is None else value * 1000)


def size(value: int | None) -> str:
    if value is None:
        return NOTHING
    if value < 1000:
        return f"{value} B"
    step = min(int(math.log(value, 1000)), 3)
    return f"{value / 1000**step:.1f} {('B', 'kB', 'MB', 'GB')[step]}"


def count(value: int) -> str:
    return f"{value:,}"


def percent(value: float) -> str:
    return f"{value:.0%}" if value in (0, 1) else f"{value:.1%}"


def shown_json(value: Any) -> str:
    """Indented; text that is JSON is indented too, other text stays as it is."""
    if isinstance(value, str | bytes):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return value.decode(errors="replace") if isinstance(value, bytes) else value
    return value if isinstance(value, str) else pretty(value)


def filled(node: Node) -> bool:
    """Whether anything in this part of a form would be sent."""
    return not isinstance(harvest(node).value, Absent)


def lines(text: str) -> int:
    return text.count("\n") + 1
