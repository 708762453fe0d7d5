"""The search engine: BM25F, apps that a request names, and a share of the places for each of its clauses."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from toolyard.catalog.entry import Entry
from toolyard.catalog.search.apps import Apps
from toolyard.catalog.search.clauses import LONGEST_REQUEST, clauses
from toolyard.catalog.search.counts import Counts
from toolyard.catalog.search.fields import FIELDS
from toolyard.catalog.search.index import Index, Scores
from toolyard.catalog.search.matching import Saying, saying, threshold_of
from toolyard.catalog.search.protocol import Hit, Searcher, Wanted
from toolyard.catalog.search.terms import words
from toolyard.catalog.view import View

_REPEATED = 0.3
_VERB_CLASS = 0.35
_NAMED_APP = 1.5
_WORD_IN_NAME = 0.3
_PREFIX = 0.5
_MOST_COMPLETIONS = 50
_LONGEST_ENDING = 3
_SHORTEST_STEM = 3
_WASTEFUL_VOCABULARY = 200_000
_SAMPLES = 250
"""Tools whose names are tried to find the threshold."""
_LONGEST_NAME = 5
_CANDIDATES = 3
_NO_APP = "zqxjkvanishedapp"


@dataclass(frozen=True)
class _Part:
    """A request, or a clause of it, ready to be scored."""

    weights: dict[int, float]
    said: dict[int, str]
    """Per term the word of the request it stands for."""
    named: tuple[str, ...]
    """Apps, in order of appearance."""
    completions: list[int] = field(default_factory=list[int])


@dataclass(frozen=True)
class _Found:
    """`places` are the best tools', best first."""

    places: list[int]
    scores: Scores
    request: _Part


class Bm25fSearchers:
    """Makes a searcher per snapshot, and counts only the tools that changed since the last one."""

    def __init__(self) -> None:
        self._counts = Counts.nothing()
        self._one_builder = Lock()

    def __call__(self, entries: Sequence[Entry]) -> Searcher:
        with self._one_builder:
            counts = self._counts.for_entries(entries)
            if len(counts.vocabulary) > max(_WASTEFUL_VOCABULARY, 4 * len(np.unique(counts.terms))):
                counts = Counts.nothing().for_entries(entries)
            self._counts = counts
        return Bm25fSearcher(entries, Index(counts))


class Bm25fSearcher:
    def __init__(self, entries: Sequence[Entry], index: Index) -> None:
        self._entries = entries
        self._index = index
        self._apps = Apps(entries)
        self._masks: WeakKeyDictionary[View, _Mask] = WeakKeyDictionary()
        namespaces: dict[str, int] = {}
        numbers = [namespaces.setdefault(entry.tool.namespace, len(namespaces)) for entry in entries]
        self._namespaces = namespaces
        self._namespace_of = np.array(numbers, np.int32)
        self._app_sizes = Counter(entry.tool.namespace for entry in entries)
        self.threshold = self._measured_threshold()

    def _measured_threshold(self) -> float:
        """Names as long as what people say; the others are no entries that anybody would make."""
        sayable = [entry for entry in self._entries if len(words(entry.tool.name)) <= _LONGEST_NAME]
        step = max(1, len(sayable) // _SAMPLES)
        own: list[float] = []
        foreign: list[float] = []
        for entry in sayable[::step][:_SAMPLES]:
            own.append(self._largest_share(f"{entry.tool.name} {entry.tool.namespace}"))
            foreign.append(self._largest_share(f"{entry.tool.name} {_NO_APP}"))
        return threshold_of(own, foreign)

    def search(
        self, query: str, *, limit: int, within: View | None, prefixes: bool, only: Wanted | None = None
    ) -> list[Hit]:
        found = self._ranked(query[:LONGEST_REQUEST], limit, self._mask(within, only), prefixes=prefixes)
        return self._hits(found)

    def resolve(self, entry: str, *, limit: int, within: View | None, threshold: float | None = None) -> list[Hit]:
        mask = self._mask(within)
        found = self._ranked(entry[:LONGEST_REQUEST], limit, mask)
        if threshold is None:
            threshold = self.threshold
        said = self._saying(entry[:LONGEST_REQUEST], mask)
        for place in found.places:
            namespace = self._entries[place].tool.namespace
            if said.share(self._index.terms_of(place), namespace) >= said.needed(threshold, namespace):
                return self._hits(found)
        return []

    def _largest_share(self, text: str) -> float:
        found, said = self._ranked(text, _CANDIDATES, None), self._saying(text, None, apps=False)
        shares = (said.share(self._index.terms_of(place), "") for place in found.places)
        return max(shares, default=0.0)

    def _saying(self, text: str, mask: _Mask | None, *, apps: bool = True) -> Saying:
        named = self._apps.named_in(text, mask and mask.namespaces) if apps else {}
        return saying(self._index, text, named, self._app_sizes, mask and mask.allowed)

    def _ranked(self, text: str, limit: int, mask: _Mask | None, *, prefixes: bool = False) -> _Found:
        visible = None if mask is None else mask.namespaces
        whole = self._part(text, visible, prefixes=prefixes)
        parts = [(part, self._part(part, visible)) for part in clauses(text)]
        scores = self._scores(whole, [part for _, part in parts])
        if mask is not None:
            scores *= mask.allowed
        if len(whole.named) == 1:
            scores[self._of_app(*whole.named)] *= _NAMED_APP
        places = _best(scores, limit)
        if len(whole.named) > 1:
            own = [" ".join(said for said, part in parts if namespace in part.named) for namespace in whole.named]
            lists = [
                _best(self._in_app(namespace, self._part(said, visible) if said else whole, mask), limit)
                for namespace, said in zip(whole.named, own, strict=True)
            ]
            places = _interleaved(lists, places)[: max(limit, 0)]
        return _Found(places, scores, whole)

    def _hits(self, found: _Found) -> list[Hit]:
        return [self._hit(place, float(found.scores[place]), found.request) for place in found.places]

    def _part(self, text: str, visible: Collection[str] | None, *, prefixes: bool = False) -> _Part:
        """Words that name an app stand for that app: its own name is searched, and they count little as words."""
        vocabulary = self._index.vocabulary
        named = self._apps.named_in(text, visible)
        names = {term for term, _ in vocabulary.request_terms(" ".join(named)) if not term.startswith("~")}
        in_names = self._words_in_names_only(text, named) if named else frozenset[str]()
        weights: dict[int, float] = {}
        said: dict[int, str] = {}
        times: Counter[str] = Counter()
        for (term, word), count in Counter(vocabulary.request_terms(text)).items():
            times[term] += count
            number = self._index.number(term)
            if number is not None:
                weight = _VERB_CLASS if term.startswith("~") else 1 + _REPEATED * (times[term] - 1)
                if word in in_names and term not in names:
                    weight *= _WORD_IN_NAME
                weights[number] = max(weight, weights.get(number, 0.0))
                said.setdefault(number, word)
        for term in sorted(names):
            number = self._index.number(term)
            if number is not None:
                weights.setdefault(number, 1.0)
                said.setdefault(number, term)
        completions = self._completions(text) if prefixes else []
        said |= {number: vocabulary.terms[number] for number in completions if number not in said}
        return _Part(weights, said, tuple(named), completions)

    @staticmethod
    def _words_in_names_only(text: str, named: Mapping[str, frozenset[int]]) -> frozenset[str]:
        places = frozenset[int]().union(*named.values())
        found = words(text)
        others = {word for place, word in enumerate(found) if place not in places}
        return frozenset(found[place] for place in places) - others

    def _completions(self, text: str) -> list[int]:
        """Terms of names that begin like the last word, or like it without its ending; none after a blank."""
        if not text or text[-1].isspace():
            return []
        last = (words(text) or [""])[-1]
        known = self._index.naming_terms
        for length in range(len(last), max(0, len(last) - _LONGEST_ENDING - 1), -1):
            if length < min(_SHORTEST_STEM, len(last)):
                break
            first = bisect_left(known, (last[:length], -1))
            found = [
                number for term, number in known[first : first + _MOST_COMPLETIONS] if term.startswith(last[:length])
            ]
            if found:
                return found
        return []

    def _scores(self, whole: _Part, parts: Sequence[_Part]) -> Scores:
        scores = self._index.scores(whole.weights)
        if whole.completions:
            scores += self._index.best_of(whole.completions, _PREFIX)
        highest = scores.max(initial=0.0)
        if highest <= 0 or not parts:
            return scores
        scores /= highest
        mixed = scores.copy()
        for part in parts:
            of_part = self._index.scores(part.weights)
            top = of_part.max(initial=0.0)
            if top > 0:
                np.maximum(mixed, 0.5 * of_part / top + 0.5 * scores, out=mixed)
        return mixed

    def _of_app(self, namespace: str) -> NDArray[np.bool_]:
        return self._namespace_of == self._namespaces[namespace]

    def _in_app(self, namespace: str, part: _Part, mask: _Mask | None) -> Scores:
        scores = self._scores(part, []) * self._of_app(namespace)
        return scores if mask is None else scores * mask.allowed

    def _mask(self, within: View | None, only: Wanted | None = None) -> _Mask | None:
        if only is not None:
            allowed = [(within is None or entry.id in within) and only(entry) for entry in self._entries]
            wanted = {
                entry.tool.namespace for entry, is_allowed in zip(self._entries, allowed, strict=True) if is_allowed
            }
            return _Mask(np.array(allowed, np.bool_), frozenset(wanted))
        if within is None:
            return None
        mask = self._masks.get(within)
        if mask is None:
            mask = self._masks[within] = _Mask(
                np.fromiter((entry.id in within for entry in self._entries), np.bool_, len(self._entries)),
                frozenset(entry.tool.namespace for entry in within.entries),
            )
        return mask

    def _hit(self, place: int, score: float, request: _Part) -> Hit:
        entry = self._entries[place]
        share_of: dict[int, float] = {}
        words_of: dict[int, dict[str, None]] = {}
        for number, at, frequency in self._index.matches(place):
            word = request.said.get(number)
            if word is not None:
                share = frequency * float(self._index.idf[number]) * request.weights.get(number, _PREFIX)
                share_of[at] = share_of.get(at, 0.0) + share
                words_of.setdefault(at, {})[word] = None
        total = sum(share_of.values()) or 1.0
        reasons = [
            f"{FIELDS[at].name} {share / total:.0%} ({', '.join(words_of[at])})"
            for at, share in sorted(share_of.items(), key=lambda item: -item[1])
        ]
        if entry.tool.namespace in request.named:
            reasons.append(f"the request names {entry.tool.namespace}")
        return Hit(entry, score, "; ".join(reasons))


@dataclass(frozen=True)
class _Mask:
    """Which tools a view lets through, and the namespaces that have any of them."""

    allowed: NDArray[np.bool_]
    namespaces: frozenset[str]


def _best(scores: Scores, limit: int) -> list[int]:
    """Places of the highest scores above zero, best first, ties in the catalog's order."""
    if limit < 1:
        return []
    places = np.flatnonzero(scores > 0)
    found = scores[places]
    if limit < len(places):
        enough = found >= np.partition(found, -limit)[-limit]
        places, found = places[enough], found[enough]
    return places[np.argsort(-found, kind="stable")][:limit].tolist()


def _interleaved(lists: Sequence[Sequence[int]], rest: Sequence[int]) -> list[int]:
    """First of each, then second of each, then what is left, without duplicates."""
    longest = max(map(len, lists), default=0)
    turns = (one[turn] for turn in range(longest) for one in lists if turn < len(one))
    return list(dict.fromkeys([*turns, *rest]))
