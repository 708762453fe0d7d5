"""From entries, each of which says one action, to the tools that serve them (seed s0's RESOLVE_ACTIONS).

Each entry is searched alone, so that none takes the places of another, and the answers are interleaved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolyard.catalog.search.protocol import Hit, Searcher
from toolyard.catalog.slim import slim_schema
from toolyard.catalog.view import View
from toolyard.core.json import JsonObject
from toolyard.core.tool import Kind

MOST_ENTRIES = 20
LONGEST_ENTRY = 300
"""Characters of an entry that are read."""
FEW_ENTRIES = 2
PER_FEW = 5
PER_MANY = 3
"""Candidates per entry: five up to two entries, three beyond. The needed action is first in 4 of 10 cases only."""
_LONG = 12
"""Words; an entry that is longer seldom says one action."""
_MOST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Resolution:
    """What the entries found."""

    hits: tuple[Hit, ...]
    """The first of each entry, then the second of each, and so on; none twice."""
    unmatched: tuple[str, ...] = ()
    """Entries that nothing serves."""
    remarks: tuple[str, ...] = ()
    """What the caller should know besides the list, as sentences."""

    @property
    def sentence(self) -> str:
        """In place of a list. The same for an app that does not exist and for one that the caller may not see."""
        named = ", ".join(repr(_shown(entry)) for entry in self.unmatched)
        return (
            f"Couldn't find any matching actions for {named}. Try other words: one entry per action, with a verb, an "
            "object and the app's name, such as 'Create Note HubSpot'. The app may not be offered here."
        )


def resolve_entries(
    searcher: Searcher, entries: Sequence[str], *, within: View | None, threshold: float | None = None
) -> Resolution:
    """Search each entry alone, and put the answers together. `threshold` in place of the searcher's own."""
    asked = list(dict.fromkeys(" ".join(entry.split()) for entry in entries if entry.strip()))
    read = [entry[:LONGEST_ENTRY] for entry in asked[:MOST_ENTRIES]]
    each = PER_FEW if len(read) <= FEW_ENTRIES else PER_MANY
    answers = [searcher.resolve(entry, limit=each, within=within, threshold=threshold) for entry in read]
    unmatched = tuple(entry for entry, answer in zip(read, answers, strict=True) if not answer)
    return Resolution(_interleaved(answers), unmatched, tuple(_remarks(asked, read, unmatched)))


def entities_of(resolution: Resolution) -> list[JsonObject]:
    """The candidates as RESOLVE_ACTIONS lists them: `{slug, type, identifier, json_schema}`."""
    return [
        {
            "slug": hit.entry.tool.namespace,
            "type": "workflow" if hit.entry.tool.kind is Kind.WORKFLOW else "action",
            "identifier": hit.entry.tool.name,
            "json_schema": slim_schema(hit.entry.tool.input_schema),
        }
        for hit in resolution.hits
    ]


def _interleaved(answers: Sequence[Sequence[Hit]]) -> tuple[Hit, ...]:
    """A tool that two entries found keeps its first place; the entry that loses it still gets its next ones."""
    longest = max(map(len, answers), default=0)
    found: dict[str, Hit] = {}
    for turn in range(longest):
        for answer in answers:
            if turn < len(answer):
                found.setdefault(answer[turn].entry.id, answer[turn])
    return tuple(found.values())


def _remarks(asked: Sequence[str], read: Sequence[str], unmatched: Sequence[str]) -> list[str]:
    remarks: list[str] = []
    if unmatched:
        remarks.append(f"Nothing matches {', '.join(repr(_shown(entry)) for entry in unmatched)}.")
    if len(asked) > len(read):
        remarks.append(f"Only the first {MOST_ENTRIES} of {len(asked)} entries were read: ask again for the others.")
    if any(len(entry.split()) > _LONG for entry in read):
        remarks.append("Short entries work better: one entry per action, with a verb, an object and the app's name.")
    return remarks


def _shown(entry: str) -> str:
    return entry if len(entry) <= _MOST_SHOWN else f"{entry[:_MOST_SHOWN]}..."
