"""What the catalog asks of a search engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from toolyard.catalog.entry import Entry
from toolyard.catalog.view import View

Wanted: TypeAlias = Callable[[Entry], bool]


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that serves a request. Hits come best first; scores compare within one answer only."""

    entry: Entry
    score: float
    reason: str
    """What matched, for people."""


class Searcher(Protocol):
    """An index over the entries of one snapshot. Called from any thread."""

    def search(
        self, query: str, *, limit: int, within: View | None, prefixes: bool, only: Wanted | None = None
    ) -> list[Hit]:
        """At most `limit` hits. `within` and `only` restrict before ranking; `prefixes` also matches beginnings of
        names."""
        ...

    @property
    def threshold(self) -> float:
        """The share of an entry, 0 to 1, that a tool has to speak of; measured on these entries."""
        ...

    def resolve(self, entry: str, *, limit: int, within: View | None, threshold: float | None = None) -> list[Hit]:
        """As `search`, for a text that says one action; nothing where no hit reaches the threshold."""
        ...


class SearcherFactory(Protocol):
    """Makes an index per snapshot, and may keep what the last one counted."""

    def __call__(self, entries: Sequence[Entry]) -> Searcher: ...
