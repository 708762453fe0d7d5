"""From text to terms: words split at humps, stop words left out, endings cut, verbs of one meaning joined."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Protocol, cast

_RUN = re.compile(r"[A-Za-z0-9À-ɏ]+|[^\W_A-Za-z0-9À-ɏ]+")
_HUMP = re.compile(r"(?<=[a-z0-9ß-ÿ])(?=[A-ZÀ-Þ])|(?<=[A-ZÀ-Þ])(?=[A-ZÀ-Þ][a-zß-ÿ])")
"""Never between a letter and a digit: `s3`, `ec2` and `v2` stay whole."""

_VOWEL = re.compile("[aeiouy]")

STOP_WORDS = frozenset(
    word
    for line in (
        "a about also am an and any are as at be been being but by can could do does for from had has have he her him",
        "his how i if in into is it its just let me my need no not of on or our out please she should so some that the",
        "their them then there they this to up us want was we were what which who will with would you your",
    )
    for word in line.split()
)
"""Without get, all and list: those are actions."""

VERB_CLASSES = {
    "create": "add post new make insert register open generate set setup start file log draft",
    "list": "get fetch retrieve show read view all see lookup",
    "delete": "remove destroy drop cancel clear erase rid",
    "update": "patch edit change modify put rename alter replace",
    "search": "find query look lookup filter locate",
    "send": "email mail message notify text tell share deliver",
    "run": "execute trigger invoke launch start call",
    "convert": "translate transform",
    "calculate": "compute calc count estimate determine",
    "recommend": "suggest recommendation suggestion advise",
    "book": "reserve schedule booking reservation appointment",
}
"""A verb also yields the name of each class it is in, as the term `~create`."""


def runs(text: str) -> list[str]:
    """Letters and digits without a break, as they stand in the text: `listRepos`, `s3`."""
    return _RUN.findall(text)


def words_of_run(run: str) -> list[str]:
    """`listRepoIssues` -> `list repo issues`."""
    return _HUMP.sub(" ", run).lower().split()


def words(text: str) -> list[str]:
    return [word for run in runs(text) for word in words_of_run(run)]


def stemmer() -> Callable[[str], str]:
    """Porter2 where PyStemmer is installed, otherwise the few rules below, which find nearly as much."""
    try:
        porter = cast("_PyStemmer", import_module("Stemmer"))
    except ImportError:
        return plain_stem
    return porter.Stemmer("english").stemWord


def plain_stem(word: str) -> str:
    """Without the endings of plurals, -ing and -ed, and with the last letter made alike: `cities` and `city` -> `citi`,
    `moved`, `moving` and `moves` -> `mov`. Words of other kinds stay: `s3`, `status`, `string`."""
    word = _without_verb_ending(_singular(word))
    if len(word) > 3 and word[-1] in "ey":
        return word[:-1] if word[-1] == "e" else f"{word[:-1]}i"
    return word


def _singular(word: str) -> str:
    """`boxes` -> `box`, `queries` -> `query`, `issues` -> `issue`; `status`, `address` and `ids` stay."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes", "zzes")) else word[:-1]


def _without_verb_ending(word: str) -> str:
    """`running` -> `run`, `listed` -> `list`; `string` and `feed` have no other vowel or are too short."""
    for ending, shortest in (("ing", 6), ("ed", 5)):
        stem = word.removesuffix(ending)
        if stem != word and len(word) >= shortest and _VOWEL.search(stem):
            doubled = len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz"
            return stem[:-1] if doubled else stem
    return word


class Vocabulary:
    """Every term seen in a catalog, numbered. Only grows; one that is in use by an index is never changed otherwise."""

    def __init__(self) -> None:
        self.terms: list[str] = []
        self._numbers: dict[str, int] = {}
        self._of_run: dict[str, tuple[int, ...]] = {}
        self._stem = stemmer()
        self._classes: dict[str, tuple[str, ...]] = {}
        for name, verbs in VERB_CLASSES.items():
            for verb in (name, *verbs.split()):
                stem = self._stem(verb)
                if f"~{name}" not in self._classes.get(stem, ()):
                    self._classes[stem] = (*self._classes.get(stem, ()), f"~{name}")

    def __len__(self) -> int:
        return len(self.terms)

    def number(self, term: str) -> int | None:
        return self._numbers.get(term)

    def expand(self, word: str) -> tuple[str, ...]:
        """The word's stem, and the verb classes it is in."""
        stem = self._stem(word)
        return (stem, *self._classes.get(stem, ()))

    def learn(self, text: str) -> list[int]:
        """The numbers of a tool text's terms, in order; stop words only where there is nothing else."""
        known = self._of_run
        numbers: list[int] = []
        found = runs(text)
        for run in found:
            of_run = known.get(run)
            if of_run is None:
                of_run = known[run] = self._learn(word for word in words_of_run(run) if word not in STOP_WORDS)
            numbers += of_run
        return numbers or list(self._learn(word for run in found for word in words_of_run(run)))

    def request_terms(self, text: str) -> list[tuple[str, str]]:
        """(term, word it comes from), in order, repeated as in the text; nothing is learnt from requests.

        A word with humps is also taken in one piece: "GitHub" means what other texts call github.
        """
        found = [word for run in runs(text) for word in _words_and_whole(run)]
        telling = [word for word in found if word not in STOP_WORDS] or found
        return [(term, word) for word in telling for term in self.expand(word)]

    def _learn(self, new_words: Iterable[str]) -> tuple[int, ...]:
        return tuple(self._number_of(term) for word in new_words for term in self.expand(word))

    def _number_of(self, term: str) -> int:
        number = self._numbers.get(term)
        if number is None:
            number = self._numbers[term] = len(self.terms)
            self.terms.append(term)
        return number


def _words_and_whole(run: str) -> list[str]:
    parts = words_of_run(run)
    return parts if len(parts) == 1 else [*parts, "".join(parts)]


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802


class _PyStemmer(Protocol):
    def Stemmer(self, language: str) -> _Stemmer: ...  # noqa: N802
