"""Calls counted as they end, and the text that Prometheus reads.

Counting is a few additions per call; `prometheus_client` is imported by the first scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolyard.core.call import CallState
from toolyard.core.errors import ErrorCode
from toolyard.durable.events import Bus, Event

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from toolyard.catalog import Snapshot
    from toolyard.providers.supervisor import ProviderStatus

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds in seconds."""
MOST_TOOLS = 10_000
UNKNOWN = "(unknown)"
OTHER = "(other)"


@dataclass(slots=True)
class _Tool:
    ended: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """By state and error code."""
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0


class Counters:
    """Of this process since its start. Names that a caller made up are counted as `(unknown)`."""

    def __init__(self, bus: Bus) -> None:
        self._tools: dict[str, _Tool] = {}
        bus.listen("call", self.count)

    def count(self, event: Event) -> None:
        data = event.data
        state, code = str(data.get("state")), str(data.get("error_code") or "")
        if state not in (CallState.COMPLETE, CallState.ERROR):
            return
        name = UNKNOWN if code == ErrorCode.NOT_FOUND else str(data.get("tool"))
        if name not in self._tools and len(self._tools) >= MOST_TOOLS:
            name = OTHER
        tool = self._tools.setdefault(name, _Tool())
        tool.ended[state, code] = tool.ended.get((state, code), 0) + 1
        duration = data.get("duration_ms")
        if isinstance(duration, int | float):
            tool.buckets[bisect_left(BUCKETS, duration / 1000)] += 1
            tool.seconds += duration / 1000

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        ended = CounterMetricFamily(
            "toolyard_calls", "Calls that ended, by tool, state and error code.", labels=("tool", "state", "code")
        )
        durations = HistogramMetricFamily(
            "toolyard_call_duration_seconds", "How long tools took to execute.", labels=("tool",)
        )
        for name, tool in self._tools.items():
            for (state, code), count in tool.ended.items():
                ended.add_metric((name, state, code), count)
            total, buckets = 0, list[tuple[str, float]]()
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), tool.buckets, strict=True):
                total += count
                buckets.append((bound, total))
            if total:
                durations.add_metric((name,), buckets, tool.seconds)
        yield ended
        yield durations


def exposition(counters: Counters, statuses: list[ProviderStatus], snapshot: Snapshot) -> bytes:
    """The text of one scrape."""
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

    class Collected:
        def collect(self) -> Iterator[Metric]:
            yield from counters.collect()
            yield from _state(statuses, snapshot)

    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(Collected())
    return generate_latest(registry)


def _state(statuses: list[ProviderStatus], snapshot: Snapshot) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    up = GaugeMetricFamily("toolyard_provider_up", "1 when the provider answers.", labels=("provider", "kind"))
    tools = GaugeMetricFamily("toolyard_provider_tools", "Tools of the provider.", labels=("provider",))
    for status in statuses:
        up.add_metric((status.id, status.kind), 1.0 if status.state == "up" else 0.0)
        tools.add_metric((status.id,), status.tool_count)
    catalog = GaugeMetricFamily("toolyard_catalog_tools", "Tools in the catalog.", labels=("available",))
    available = sum(1 for entry in snapshot.entries if entry.available)
    catalog.add_metric(("true",), available)
    catalog.add_metric(("false",), len(snapshot.entries) - available)
    yield from (up, tools, catalog)
