"""Field-weighted BM25 (BM25F) over flat arrays: a request adds one slice per term into the scores of all tools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toolyard.catalog.search.counts import Counts
from toolyard.catalog.search.fields import FIELDS, NAMING_FIELDS

Scores = NDArray[np.float32]
_SATURATION = 1.2
_WEIGHTS = np.array([field.weight for field in FIELDS], np.float32)
_LENGTH_SHARES = np.array([field.length_share for field in FIELDS], np.float32)


class Index:
    """Immutable. Tools are known by their place in the snapshot's entries, terms by their number."""

    def __init__(self, counts: Counts) -> None:
        self.size = len(counts.lengths)
        self.vocabulary = counts.vocabulary
        self._counts = counts
        self._shares = _field_shares(counts)
        self._known_terms = len(counts.vocabulary)

        tools = np.repeat(np.arange(self.size), np.diff(counts.offsets))
        cells = counts.terms.astype(np.int64) * max(1, self.size) + tools
        order = np.argsort(cells, kind="stable")
        cells = cells[order]
        firsts = np.flatnonzero(np.diff(cells, prepend=-1))
        frequency = np.add.reduceat(self._shares[order], firsts) if len(firsts) else np.zeros(0, np.float32)
        terms, places = np.divmod(cells[firsts], max(1, self.size))
        self._offsets = np.searchsorted(terms, np.arange(self._known_terms + 1))
        found_in = np.diff(self._offsets)
        self.idf = np.log1p((self.size - found_in + 0.5) / (found_in + 0.5)).astype(np.float32)
        self._tools = places.astype(np.int32)
        self._values = (self.idf[terms] * frequency / (_SATURATION + frequency)).astype(np.float32)

    def number(self, term: str) -> int | None:
        """A term's number, or None where no tool of this index has it."""
        number = self.vocabulary.number(term)
        if number is None or number >= self._known_terms or self._offsets[number] == self._offsets[number + 1]:
            return None
        return number

    def scores(self, weights: Mapping[int, float]) -> Scores:
        """One score per tool, from the request's terms and their weights."""
        scores = np.zeros(self.size, np.float32)
        for number, weight in weights.items():
            first, last = self._offsets[number], self._offsets[number + 1]
            scores[self._tools[first:last]] += weight * self._values[first:last]
        return scores

    def best_of(self, numbers: list[int], weight: float) -> Scores:
        """Per tool the score of the one term among these that counts most."""
        scores = np.zeros(self.size, np.float32)
        for number in numbers:
            first, last = self._offsets[number], self._offsets[number + 1]
            tools = self._tools[first:last]
            scores[tools] = np.maximum(scores[tools], weight * self._values[first:last])
        return scores

    def tools_with(self, number: int) -> NDArray[np.int32]:
        """Places of the tools that have a term."""
        return self._tools[self._offsets[number] : self._offsets[number + 1]]

    def terms_of(self, place: int) -> frozenset[int]:
        """The terms of one tool, in any field."""
        return frozenset(self._counts.terms[self._counts.offsets[place] : self._counts.offsets[place + 1]].tolist())

    def matches(self, place: int) -> list[tuple[int, int, float]]:
        """(term, place of the field, weighted frequency) of one tool."""
        rows = slice(self._counts.offsets[place], self._counts.offsets[place + 1])
        counts = self._counts
        return list(
            zip(counts.terms[rows].tolist(), counts.fields[rows].tolist(), self._shares[rows].tolist(), strict=True)
        )

    @cached_property
    def naming_terms(self) -> list[tuple[str, int]]:
        """The terms of names and apps, sorted, without verb classes."""
        in_names = np.isin(self._counts.fields, NAMING_FIELDS)
        numbers: list[int] = np.unique(self._counts.terms[in_names]).tolist()
        named = ((self.vocabulary.terms[number], number) for number in numbers)
        return sorted((term, number) for term, number in named if not term.startswith("~"))


def _field_shares(counts: Counts) -> NDArray[np.float32]:
    """Each count by its field's weight, diluted by the field's length in that tool."""
    mean = counts.lengths.mean(axis=0) if len(counts.lengths) else np.zeros(len(FIELDS), np.float32)
    relative = counts.lengths / np.maximum(mean, 1e-9)
    gain = _WEIGHTS / (1 - _LENGTH_SHARES + _LENGTH_SHARES * relative)
    tools = np.repeat(np.arange(len(counts.lengths)), np.diff(counts.offsets))
    return (gain[tools, counts.fields] * counts.times).astype(np.float32)
