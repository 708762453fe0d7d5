"""What the catalog asks of a search engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from toolyard.catalog.entry import Entry
from toolyard.catalog.view import View


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that serves a request. Hits come best first; scores compare within one answer only."""

    entry: Entry
    score: float
    reason: str
    """What matched, for people."""


class Searcher(Protocol):
    """An index over the entries of one snapshot. Called from any thread."""

    def search(self, query: str, *, limit: int, within: View | None, prefixes: bool) -> list[Hit]:
        """At most `limit` hits. `within` restricts before ranking; `prefixes` also matches beginnings of names."""
        ...

    def resolve(self, entry: str, *, limit: int, within: View | None) -> list[Hit]:
        """As `search`, for a text that says one action; nothing where even the best hit does not serve it."""
        ...


class SearcherFactory(Protocol):
    """Makes an index per snapshot, and may keep what the last one counted."""

    def __call__(self, entries: Sequence[Entry]) -> Searcher: ...
