"""Which apps a request names. People and models name the app, and a named app lifts its tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolyard.catalog.entry import UNGROUPED, Entry
from toolyard.catalog.search.terms import STOP_WORDS, VERB_CLASSES, words

_VENDORS = frozenset({"amazon", "aws", "azure", "google", "microsoft", "ms"})
"""Left out in speech: "s3" is aws_s3."""
_LONGEST_ALIAS = 4
_NO_NAMES = STOP_WORDS | {verb for name, verbs in VERB_CLASSES.items() for verb in (name, *verbs.split())}
"""Words that requests are made of: a provider called `search` or `my` is not meant by them."""


class Apps:
    """Aliases of namespaces, as sequences of words: the slug, the slug in one word, a display name, a short form."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._aliases: dict[tuple[str, ...], str] = {}
        claims: dict[tuple[str, ...], set[str]] = {}
        for namespace in sorted({entry.tool.namespace for entry in entries}):
            for alias in _aliases_of_slug(namespace):
                claims.setdefault(alias, set()).add(namespace)
        for cluster, namespace in sorted({(entry.cluster, entry.tool.namespace) for entry in entries}):
            if cluster != UNGROUPED:
                claims.setdefault(tuple(words(cluster)), set()).add(namespace)
        for alias, namespaces in claims.items():
            is_a_name = not (len(alias) == 1 and alias[0] in _NO_NAMES)
            if len(namespaces) == 1 and 1 <= len(alias) <= _LONGEST_ALIAS and is_a_name:
                self._aliases[alias] = min(namespaces)

    def named_in(self, text: str, visible: Iterable[str] | None = None) -> list[str]:
        """Namespaces in order of appearance; the longest alias wins, and only visible ones are recognised."""
        shown = None if visible is None else frozenset(visible)
        found: list[str] = []
        said = words(text)
        place = 0
        while place < len(said):
            taken = 1
            for length in range(min(_LONGEST_ALIAS, len(said) - place), 0, -1):
                namespace = self._aliases.get(tuple(said[place : place + length]))
                if namespace is not None and (shown is None or namespace in shown):
                    taken = length
                    if namespace not in found:
                        found.append(namespace)
                    break
            place += taken
        return found


def _aliases_of_slug(namespace: str) -> list[tuple[str, ...]]:
    slug = tuple(words(namespace))
    aliases = [slug, ("".join(slug),)]
    if len(slug) > 1 and slug[0] in _VENDORS and any(character.isdigit() for character in slug[1]):
        aliases.append(slug[1:])
    return aliases
