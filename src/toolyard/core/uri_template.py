"""RFC 6570 templates, read backwards: which URIs one makes, and of which values.

Not by a regular expression: templates come from upstreams and URIs from clients, and a few variables in a row would
keep one busy for minutes. This takes a time that grows with the length of the URI, whatever the template.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_LONGEST_TEMPLATE = 2000
_MOST_VARIABLES = 20
LONGEST_URI = 4000
"""A longer one matches no template."""


@dataclass(frozen=True, slots=True)
class _Literal:
    text: str


@dataclass(frozen=True, slots=True)
class _Variable:
    """At least one character, none of `ends`."""

    name: str
    ends: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Query:
    """What may follow a `?` or `&`, or may be left out: values by their names, in any order."""

    names: tuple[str, ...]


_Part: TypeAlias = _Literal | _Variable | _Query
_ENDS = frozenset("/?#")
_NOWHERE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UriTemplate:
    parts: tuple[_Part, ...]

    def values(self, uri: str) -> dict[str, str] | None:
        """What the variables stand for, earlier ones as long as can be; None when the template makes no such URI."""
        first = self.parts[0] if self.parts else None
        if len(uri) > LONGEST_URI or (isinstance(first, _Literal) and not uri.startswith(first.text)):
            return None
        reaches = self._reaches(uri)
        if not reaches[0][0]:
            return None
        values: dict[str, str] = {}
        at = 0
        for part, onward in zip(self.parts, reaches[1:], strict=True):
            ended = _ended(part, uri, at, onward)
            if isinstance(part, _Variable):
                values[part.name] = uri[at:ended]
            elif isinstance(part, _Query):
                given = (pair.partition("=") for pair in uri[at + 1 : ended].split("&"))
                values.update((name, value) for name, _, value in given if name in part.names)
            at = ended
        return values

    def _reaches(self, uri: str) -> Sequence[bytearray]:
        """For each part, and for what follows the last: from which places on it and the rest make the rest of `uri`."""
        end = len(uri)
        onward = bytearray(end + 1)
        onward[end] = 1
        found = [onward]
        for part in reversed(self.parts):
            onward = _before(part, uri, onward)
            found.append(onward)
        return found[::-1]


@lru_cache(maxsize=4096)
def uri_template(template: str) -> UriTemplate | None:
    """None for one that is too long to be sensible, has too many variables, or repeats a name."""
    if len(template) > _LONGEST_TEMPLATE:
        return None
    parts: list[_Part] = []
    at = 0
    for found in _EXPRESSION.finditer(template):
        parts += [_Literal(template[at : found.start()]), *_expression(found.group(1), found.group(2))]
        at = found.end()
    parts.append(_Literal(template[at:]))
    names = [name for part in parts for name in _names_of(part)]
    if len(set(names)) < len(names) or len(names) > _MOST_VARIABLES:
        return None
    return UriTemplate(tuple(part for part in parts if not isinstance(part, _Literal) or part.text))


def _expression(operator: str, names: str) -> Sequence[_Part]:
    """Variables end at a slash, but not those of `+` and `#` and not `{path*}`; queries may be left out."""
    if operator in ("?", "&"):
        return [_Query(tuple(name.rstrip("*").partition(":")[0] for name in names.split(",") if name))]
    parts: list[_Part] = [_Literal(operator)] if operator in ("/", ".", ";", "#") else []
    between = operator if operator in ("/", ".", ";") and operator else ","
    for index, given in enumerate(name for name in names.split(",") if name):
        name = re.sub(r"\W", "_", given.rstrip("*").partition(":")[0])
        crosses = operator in ("+", "#") or given.endswith("*")
        parts += [_Literal(between)] if index else []
        parts += [_Literal(f"{name}=")] if operator == ";" else []
        parts.append(_Variable(name, _NOWHERE if crosses else _ENDS))
    return parts


def _names_of(part: _Part) -> Sequence[str]:
    if isinstance(part, _Query):
        return part.names
    return (part.name,) if isinstance(part, _Variable) else ()


def _before(part: _Part, uri: str, onward: bytearray) -> bytearray:
    """From which places on `part`, and what is `onward` from its end, make the rest."""
    end = len(uri)
    places = bytearray(end + 1)
    if isinstance(part, _Literal):
        at = uri.find(part.text)
        while at >= 0:
            places[at] = onward[at + len(part.text)]
            at = uri.find(part.text, at + 1)
    elif isinstance(part, _Variable):
        for at in range(end - 1, -1, -1):
            places[at] = uri[at] not in part.ends and (onward[at + 1] or places[at + 1])
    else:
        within = False
        for at in range(end, -1, -1):
            within = bool(onward[at]) or (within and uri[at] != "#")
            places[at] = onward[at] or (at < end and uri[at] in "?&" and within)
    return places


def _ended(part: _Part, uri: str, at: int, onward: bytearray) -> int:
    """The last place that a part which begins at `at` may end at."""
    if isinstance(part, _Literal):
        return at + len(part.text)
    if isinstance(part, _Query) and (at == len(uri) or uri[at] not in "?&"):
        return at
    stops = part.ends if isinstance(part, _Variable) else frozenset("#")
    limit = next((place for place in range(at, len(uri)) if uri[place] in stops), len(uri))
    return onward.rfind(1, at, limit + 1)
