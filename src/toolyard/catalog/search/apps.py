"""Which apps a request names. People and models name the app, and a named app lifts its tools."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from toolyard.catalog.entry import UNGROUPED, Entry
from toolyard.catalog.search.terms import STOP_WORDS, VERB_CLASSES, words

_VENDORS = frozenset({"amazon", "aws", "azure", "google", "microsoft", "ms"})
"""Left out in speech: "s3" is aws_s3."""
_WRITTEN_OUT = {"aws": "amazon", "ms": "microsoft"}
"""`msgraph` and `ms_graph` are also "Microsoft Graph"."""
_SHORTEST_PRODUCT = 4
_LONGEST_ALIAS = 4
_NO_NAMES = STOP_WORDS | {verb for name, verbs in VERB_CLASSES.items() for verb in (name, *verbs.split())}
"""Words that requests are made of: a provider called `search` or `my` is not meant by them."""


class Apps:
    """Aliases of namespaces: the slug, a display name that only one of them has, a short form.

    An alias is kept in one piece and matched over words of the request joined: "GitHub", "github" and "git hub" are
    one, and so are "google_calendar" and "Google Calendar".
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        claims: dict[str, set[str]] = {}
        for cluster, namespace in {(entry.cluster, entry.tool.namespace) for entry in entries}:
            display_name = words(cluster) if cluster != UNGROUPED else []
            for alias in (*_aliases_of_slug(words(namespace)), display_name):
                if 1 <= len(alias) <= _LONGEST_ALIAS:
                    claims.setdefault("".join(alias), set()).add(namespace)
        self._aliases = {
            alias: min(namespaces)
            for alias, namespaces in claims.items()
            if len(namespaces) == 1 and alias not in _NO_NAMES
        }

    def named_in(self, text: str, visible: Collection[str] | None) -> dict[str, frozenset[int]]:
        """Namespaces in order of appearance, with the places of the words that name each. The longest alias wins, and
        only visible ones are recognised."""
        said = words(text)
        found: dict[str, frozenset[int]] = {}
        place = 0
        while place < len(said):
            namespace, taken = self._named_at(said, place, visible)
            if namespace is not None:
                found[namespace] = found.get(namespace, frozenset()) | frozenset(range(place, place + taken))
            place += taken
        return found

    def _named_at(self, said: Sequence[str], place: int, visible: Collection[str] | None) -> tuple[str | None, int]:
        """What is named here, and how many words that took."""
        for length in range(min(_LONGEST_ALIAS, len(said) - place), 0, -1):
            namespace = self._aliases.get("".join(said[place : place + length]))
            if namespace is not None and (visible is None or namespace in visible):
                return namespace, length
        return None, 1


def _aliases_of_slug(slug: Sequence[str]) -> list[Sequence[str]]:
    aliases = [slug]
    if len(slug) > 1 and slug[0] in _VENDORS and any(character.isdigit() for character in slug[1]):
        aliases.append(slug[1:])
    for short, long in _WRITTEN_OUT.items():
        if slug[0] == short and len(slug) > 1:
            aliases.append([long, *slug[1:]])
        elif slug[0].startswith(short) and len(slug[0]) >= len(short) + _SHORTEST_PRODUCT:
            aliases.append([long + slug[0].removeprefix(short), *slug[1:]])
    return aliases
