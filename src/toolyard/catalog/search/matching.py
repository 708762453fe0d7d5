"""Whether anything serves an entry at all. Search always finds something, and its scores cannot tell: they mean nothing
across requests.

What tells is the share of an entry that a tool speaks of: the weight (idf) of the entry's words that the tool has, of
the weight of all its words. A word that no visible tool has weighs most. How large the share must be differs between
catalogs, so it is measured on each: the tools' own names are entries that must be served, and the same ones with an app
that does not exist must not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np
from numpy.typing import NDArray

from toolyard.catalog.search.index import Index
from toolyard.catalog.search.terms import STOP_WORDS, runs, words_of_run

_REFUSED_OF_OWN = 0.02
_REFUSED_OF_FOREIGN = 0.95
_LOWEST, _HIGHEST, _USUAL = 0.3, 0.75, 0.6
_FEWEST_SAMPLES = 5
_IN_NAMED_APP = 0.5
"""An entry that names an app which is there needs less: its other words are then no app's name."""


@dataclass(frozen=True)
class Word:
    """A word of an entry: its weight, and the terms any of which stands for it."""

    weight: float
    terms: frozenset[int]


@dataclass(frozen=True)
class Saying:
    """An entry ready to be compared: its words, and the apps that it names with their weights."""

    words: tuple[Word, ...]
    apps: Mapping[str, float]

    def share(self, terms: frozenset[int], namespace: str) -> float:
        """Of a tool with these terms. Nothing where the tool has only the app in common."""
        had = sum(word.weight for word in self.words if not word.terms.isdisjoint(terms))
        if self.words and not had:
            return 0.0
        had += self.apps.get(namespace, 0.0)
        whole = sum(word.weight for word in self.words) + sum(self.apps.values())
        return had / whole if whole else 0.0

    def needed(self, threshold: float, namespace: str) -> float:
        return threshold * _IN_NAMED_APP if namespace in self.apps else threshold


def saying(
    index: Index,
    text: str,
    apps: Mapping[str, frozenset[int]],
    app_sizes: Mapping[str, int],
    allowed: NDArray[np.bool_] | None,
) -> Saying:
    """`apps`: the places of the words that name each; `app_sizes`: how many tools each of them has."""
    told_by_apps = frozenset[int]().union(*apps.values())
    found: list[str] = []
    place = 0
    for run in runs(text):
        parts = words_of_run(run)
        own = [part for number, part in enumerate(parts, place) if number not in told_by_apps]
        place += len(parts)
        whole = "".join(parts)
        in_one = _known(index, whole, allowed) or not any(_known(index, part, allowed) for part in parts)
        found += [whole] if len(own) == len(parts) > 1 and in_one else own
    telling = [word for word in found if word not in STOP_WORDS] or ([] if apps else found)
    words = tuple(_word(index, word, allowed) for word in dict.fromkeys(telling))
    return Saying(words, {app: _idf(index, app_sizes[app]) for app in apps})


def threshold_of(own: Sequence[float], foreign: Sequence[float]) -> float:
    """The share that an entry needs: what nearly all entries that must be served reach, and no more than keeps nearly
    all of those out that must not."""
    if len(own) < _FEWEST_SAMPLES:
        return _USUAL
    reached = float(np.quantile(own, _REFUSED_OF_OWN))
    enough = float(np.quantile(foreign, _REFUSED_OF_FOREIGN))
    return min(max(min(reached, enough), _LOWEST), _HIGHEST)


def _word(index: Index, word: str, allowed: NDArray[np.bool_] | None) -> Word:
    """A verb weighs no more than its class: any verb of one meaning stands for it."""
    stem, *classes = index.vocabulary.expand(word)
    number = _seen(index, stem, allowed)
    of_classes = [known for known in (_seen(index, name, allowed) for name in classes) if known is not None]
    weight = _idf(index, 0) if number is None else float(index.idf[number])
    if of_classes:
        weight = min(weight, max(float(index.idf[known]) for known in of_classes))
    return Word(weight, frozenset(known for known in (number, *of_classes) if known is not None))


def _known(index: Index, word: str, allowed: NDArray[np.bool_] | None) -> bool:
    return _seen(index, index.vocabulary.expand(word)[0], allowed) is not None


def _seen(index: Index, term: str, allowed: NDArray[np.bool_] | None) -> int | None:
    """A term's number where a visible tool has it: words of hidden tools count as words of none."""
    number = index.number(term)
    if number is None or allowed is None or allowed[index.tools_with(number)].any():
        return number
    return None


def _idf(index: Index, tools: int) -> float:
    return log1p((index.size - tools + 0.5) / (tools + 0.5))
