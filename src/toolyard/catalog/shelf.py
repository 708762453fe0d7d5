"""All tools of one namespace, as one immutable part of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolyard.catalog.entry import DEFAULT_SETTINGS, Entry, Problem, ToolSettings
from toolyard.catalog.inspection import appearance_of, fault_of, printable
from toolyard.core.offer import NO_OFFERS, Offers
from toolyard.core.tool import Tool


@dataclass(frozen=True)
class Shelf:
    """`entries` are sorted by id; `reason` is the provider's, why its tools are not available."""

    namespace: str
    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...] = ()
    available: bool = True
    reason: str | None = None
    offers: Offers = NO_OFFERS
    by_id: Mapping[str, Entry] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {entry.id: entry for entry in self.entries})

    @staticmethod
    def of(
        namespace: str,
        tools: Sequence[Tool],
        settings: Mapping[str, ToolSettings],
        *,
        available: bool = True,
        reason: str | None = None,
        offers: Offers = NO_OFFERS,
    ) -> Shelf:
        """Takes every tool it can; each other one becomes a problem. Of two tools of one name the first stays."""
        taken: dict[str, Entry] = {}
        problems: list[Problem] = []
        for tool in tools:
            fault = fault_of(tool, namespace)
            if fault is None and tool.name in taken:
                fault = "The provider offers another tool of this name before it."
            appearance = ""
            if fault is None:
                try:
                    appearance = appearance_of(tool)
                except (ValueError, RecursionError) as error:
                    fault = f"Its definition cannot be written as JSON: {error}."
            if fault is None:
                decided = settings.get(tool.id, DEFAULT_SETTINGS)
                taken[tool.name] = Entry.of(tool, appearance, decided, available=available, reason=reason)
            else:
                problems.append(Problem(namespace, printable(tool.name), fault))
        entries = tuple(taken[name] for name in sorted(taken))
        return Shelf(namespace, entries, tuple(problems), available, reason, offers)

    def with_availability(self, *, available: bool, reason: str | None) -> Shelf:
        entries = tuple(
            Entry.of(entry.tool, entry.appearance, entry.settings, available=available, reason=reason)
            for entry in self.entries
        )
        return replace(self, entries=entries, available=available, reason=reason)

    def with_offers(self, offers: Offers) -> Shelf:
        return replace(self, offers=offers)

    def with_settings(self, tool_id: str, settings: ToolSettings) -> Shelf:
        changed = self.by_id[tool_id]
        fresh = Entry.of(changed.tool, changed.appearance, settings, available=self.available, reason=self.reason)
        return replace(self, entries=tuple(fresh if entry is changed else entry for entry in self.entries))

    def without(self, ids: frozenset[str]) -> Shelf:
        return replace(self, entries=tuple(entry for entry in self.entries if entry.id not in ids))

    def holds_the_same(self, other: Shelf) -> bool:
        """Whether publishing `other` in place of this one would change nothing that anybody could notice."""
        return (
            (self.available, self.reason, self.problems) == (other.available, other.reason, other.problems)
            and self.offers == other.offers
            and len(self.entries) == len(other.entries)
            and all(_same(mine, theirs) for mine, theirs in zip(self.entries, other.entries, strict=True))
        )


def _same(mine: Entry, theirs: Entry) -> bool:
    """Components are compared by identity: equal ones of a new import replace the old, which then can be freed."""
    one, two = mine.tool, theirs.tool
    return one is two or (
        mine.appearance == theirs.appearance
        and one.input_schema.components is two.input_schema.components
        and (one.name, one.description, one.kind, one.cluster, one.tags, one.origin, one.time_limit)
        == (two.name, two.description, two.kind, two.cluster, two.tags, two.origin, two.time_limit)
    )
