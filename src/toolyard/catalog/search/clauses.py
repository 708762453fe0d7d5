"""A request that lists several actions in one text, taken apart."""

from __future__ import annotations

import re

from toolyard.catalog.search.terms import STOP_WORDS, words

LONGEST_REQUEST = 2_000
"""Characters; what comes after is not read."""
_MOST_CLAUSES = 8
_BREAK = re.compile(
    r"[.!?;]\s+|[,\n]|\s(?:and then|then|after that|finally|also|and)\s|^(?:first|then|finally|also)\s", re.IGNORECASE
)


def clauses(text: str) -> list[str]:
    """The parts that say something on their own; none where the text is only one."""
    parts = [part for part in _BREAK.split(text) if sum(word not in STOP_WORDS for word in words(part)) >= 2]
    return parts[:_MOST_CLAUSES] if len(parts) > 1 else []
