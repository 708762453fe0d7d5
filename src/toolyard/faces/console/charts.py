"""The overview's chart: numbers for a drawing on the server, and for the table that says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolyard.core.record import MinuteCount

MINUTES = 60
HEIGHT = 96
_STEP = 10
_BAR = 7


@dataclass(frozen=True, slots=True)
class Bar:
    minute: int
    calls: int
    failed: int
    x: float
    good_y: float
    good_height: float
    failed_y: float
    failed_height: float


@dataclass(frozen=True, slots=True)
class Chart:
    bars: tuple[Bar, ...]
    top: int
    """The value at the upper edge."""
    width: int
    height: int
    bar: int
    busiest: Bar | None


def minutes_chart(counts: Sequence[MinuteCount], now: float) -> Chart:
    """The last hour, one bar a minute, failures on top."""
    last = int(now // 60) * 60
    by_minute = {count.minute: count for count in counts}
    top = _round_up(max((count.calls for count in counts), default=0))
    bars: list[Bar] = []
    for index in range(MINUTES):
        minute = last - (MINUTES - 1 - index) * 60
        count = by_minute.get(minute, MinuteCount(minute, 0, 0))
        failed = count.failed / top * HEIGHT
        good = (count.calls - count.failed) / top * HEIGHT
        bars.append(
            Bar(
                minute=minute,
                calls=count.calls,
                failed=count.failed,
                x=index * _STEP,
                good_y=round(HEIGHT - good, 2),
                good_height=round(good, 2),
                failed_y=round(HEIGHT - good - failed, 2),
                failed_height=round(failed, 2),
            )
        )
    busiest = max(bars, key=lambda bar: bar.calls)
    return Chart(tuple(bars), top, MINUTES * _STEP, HEIGHT, _BAR, busiest if busiest.calls else None)


def _round_up(value: int) -> int:
    """To 1, 2 or 5 times a power of ten, and at least 5."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step >= max(value, 5):
                return factor * step
        step *= 10


def percentile(durations: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile, None of nothing."""
    if not durations:
        return None
    ordered = sorted(durations)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]
