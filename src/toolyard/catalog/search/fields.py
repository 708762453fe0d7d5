"""The texts of a tool that searching reads, by field. They come from strangers: each is cut to a size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple, cast

from toolyard.catalog.entry import Entry

MOST_TERMS: Final = 300
"""Per field: what is stuffed in beyond that does not count."""
MOST_REPETITIONS: Final = 3
"""Per term and field, for the same reason."""
_LONGEST_DESCRIPTION = 8_000
_LONGEST_SUMMARY = 160
_MOST_ARGUMENTS = 40
_LONGEST_ARGUMENT = 200
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


class Field(NamedTuple):
    """`weight` is the field's own; `length_share` says how much a long text dilutes its terms (BM25's b)."""

    name: str
    weight: float
    length_share: float


FIELDS: Final = (
    Field("app", 3.0, 0.2),
    Field("name", 3.0, 0.6),
    Field("summary", 2.0, 0.5),
    Field("rest", 0.7, 0.7),
    Field("arguments", 0.4, 0.8),
    Field("tags", 0.6, 0.3),
)
NAMING_FIELDS: Final = (0, 1)
"""Places of the fields that people type the beginnings of."""


def texts_of(entry: Entry) -> tuple[str, ...]:
    """One text per field of `FIELDS`."""
    tool = entry.tool
    description = entry.description[:_LONGEST_DESCRIPTION].strip()
    first_sentence = _SENTENCE_END.split(description, maxsplit=1)[0][:_LONGEST_SUMMARY]
    return (
        tool.namespace,
        tool.name,
        f"{tool.title or ''} {first_sentence}",
        description[len(first_sentence) :],
        " ".join(_argument_texts(tool.input_schema.root)),
        " ".join((*tool.tags, tool.cluster or "")),
    )


def _argument_texts(root: Mapping[str, object]) -> Iterator[str]:
    """Names and descriptions of the root's own properties; components are not opened for it."""
    properties = cast("Mapping[str, object]", root.get("properties") or {})
    for name, schema in islice(properties.items(), _MOST_ARGUMENTS):
        yield name[:_LONGEST_ARGUMENT]
        if isinstance(schema, Mapping):
            description = cast("Mapping[str, object]", schema).get("description")
            if isinstance(description, str):
                yield description[:_LONGEST_ARGUMENT]
