"""What an import did to a document: repairs and losses, each with a JSON pointer and a reason."""

from __future__ import annotations

import msgspec

from toolyard.core.json import JsonValue
from toolyard.providers.openapi.nodes import Place

LONGEST_LIST = 1_000


class Note(msgspec.Struct, frozen=True):
    """`pointer` is a JSON pointer into the document (`#/paths/~1pets/get`), led by the file when it is another one."""

    pointer: str
    what: str


class ImportReport(msgspec.Struct, frozen=True):
    """`imported` operations became tools. `needs` is what an operator has to add before a first call works."""

    imported: int
    repaired: tuple[Note, ...] = ()
    dropped: tuple[Note, ...] = ()
    needs: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, JsonValue]:
        return {
            "imported": self.imported,
            "repaired": [{"pointer": note.pointer, "what": note.what} for note in self.repaired],
            "dropped": [{"pointer": note.pointer, "what": note.what} for note in self.dropped],
            "needs": list(self.needs),
        }


class Findings:
    """Collects notes while a document is walked. The same note about the same place is kept once."""

    def __init__(self) -> None:
        self._repaired: dict[Note, None] = {}
        self._dropped: dict[Note, None] = {}
        self._needs: dict[str, None] = {}

    def repaired(self, place: Place, what: str) -> None:
        self._repaired[Note(str(place), what)] = None

    def dropped(self, place: Place, what: str) -> None:
        self._dropped[Note(str(place), what)] = None

    def needs(self, what: str) -> None:
        self._needs[what] = None

    def report(self, imported: int) -> ImportReport:
        return ImportReport(imported, _cut(self._repaired), _cut(self._dropped), tuple(self._needs))


def _cut(notes: dict[Note, None]) -> tuple[Note, ...]:
    kept = tuple(notes)
    if len(kept) <= LONGEST_LIST:
        return kept
    return (*kept[:LONGEST_LIST], Note("#", f"{len(kept) - LONGEST_LIST:,} more notes of this kind are not listed"))
