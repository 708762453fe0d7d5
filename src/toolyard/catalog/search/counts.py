"""How often each term stands in each field of each tool: the costly part of an index, kept from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolyard.catalog.entry import Entry
from toolyard.catalog.search.fields import FIELDS, MOST_REPETITIONS, MOST_TERMS, texts_of
from toolyard.catalog.search.terms import Vocabulary

_BATCH = 500
"""Tools counted at a time: an event loop on another thread gets its turn between any two."""

Key: TypeAlias = tuple[str, str, str, str | None, tuple[str, ...]]
"""Everything that a tool's searchable texts are made from, its schema by digest."""


@dataclass(frozen=True)
class Counts:
    """`terms`, `fields` and `times` are parallel, sorted by tool; `offsets[i]` to `offsets[i + 1]` are tool i's.

    `lengths` has a row per tool and a column per field: terms counted, repeated ones too.
    """

    vocabulary: Vocabulary
    places: dict[Key, int]
    offsets: NDArray[np.int64]
    terms: NDArray[np.int32]
    fields: NDArray[np.uint8]
    times: NDArray[np.float32]
    lengths: NDArray[np.float32]

    @staticmethod
    def nothing() -> Counts:
        return _count([], Vocabulary())

    def for_entries(self, entries: Sequence[Entry]) -> Counts:
        """Counts of these entries; only those that this one does not hold are counted anew."""
        keys = [_key(entry) for entry in entries]
        fresh = [place for place, key in enumerate(keys) if key not in self.places]
        batches = [fresh[first : first + _BATCH] for first in range(0, len(fresh), _BATCH)]
        parts = [self, *(_count([entries[place] for place in batch], self.vocabulary) for batch in batches)]
        source = np.fromiter((self.places.get(key, -1) for key in keys), np.int64, len(keys))
        source[fresh] = np.arange(len(fresh)) + len(self.lengths)

        ends = np.cumsum([len(part.terms) for part in parts])
        starts = np.concatenate(
            [part.offsets[:-1] + end - len(part.terms) for part, end in zip(parts, ends, strict=True)]
        )
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])[source]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        shifts: NDArray[np.int64] = np.repeat(starts[source] - offsets[:-1], sizes)
        rows = shifts + np.arange(len(shifts))
        return Counts(
            vocabulary=self.vocabulary,
            places={key: place for place, key in enumerate(keys)},
            offsets=offsets,
            terms=np.concatenate([part.terms for part in parts])[rows],
            fields=np.concatenate([part.fields for part in parts])[rows],
            times=np.concatenate([part.times for part in parts])[rows],
            lengths=np.concatenate([part.lengths for part in parts])[source],
        )


def _key(entry: Entry) -> Key:
    return (entry.id, entry.appearance, entry.description, entry.tool.cluster, entry.tool.tags)


def _count(entries: Sequence[Entry], vocabulary: Vocabulary) -> Counts:
    numbers: list[int] = []
    lengths: list[int] = []
    for entry in entries:
        for text in texts_of(entry):
            of_field = vocabulary.learn(text)[:MOST_TERMS]
            numbers += of_field
            lengths.append(len(of_field))
    per_field = np.array(lengths, np.int64)
    cells = np.repeat(np.arange(len(per_field)), per_field)
    size = max(1, len(vocabulary))
    found, times = np.unique(cells * size + np.array(numbers, np.int64), return_counts=True)
    cell, term = np.divmod(found, size)
    tool, field = np.divmod(cell, len(FIELDS))
    return Counts(
        vocabulary=vocabulary,
        places={},
        offsets=np.searchsorted(tool, np.arange(len(entries) + 1)).astype(np.int64),
        terms=term.astype(np.int32),
        fields=field.astype(np.uint8),
        times=np.minimum(times, MOST_REPETITIONS).astype(np.float32),
        lengths=per_field.reshape(len(entries), len(FIELDS)).astype(np.float32),
    )
