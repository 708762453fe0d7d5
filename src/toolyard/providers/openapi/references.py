"""`$ref`: finding what it points at, in this file or in another."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from toolyard.core.errors import DocumentError
from toolyard.core.json import JsonValue
from toolyard.providers.openapi.files import MOST_BYTES, MOST_FILES, Files
from toolyard.providers.openapi.loading import parse
from toolyard.providers.openapi.nodes import Node, Place, as_object
from toolyard.providers.openapi.report import Findings

LONGEST_CHAIN = 64


class Found(NamedTuple):
    place: Place
    node: JsonValue


class Document:
    """A root document and the files around it, each read once and only when something points there."""

    def __init__(self, root: Node, files: Files, findings: Findings) -> None:
        self.root = root
        self._files = files
        self._findings = findings
        self._read: dict[str, JsonValue] = {"": root}
        self._bytes = 0

    def target(self, place: Place, reference: str) -> Place | None:
        """Where `reference` leads when it stands at `place`; None for an anchor or a file out of bounds."""
        file, _, fragment = reference.partition("#")
        if fragment and not fragment.startswith("/"):
            return None
        uri: str | None = place.uri
        if file:
            uri = self._files.join(place.uri, file)
        return None if uri is None else Place(uri, fragment)

    def look(self, place: Place) -> Found | None:
        """The node at a place, or None when nothing is there."""
        node = self._file(place.uri)
        if node is None:
            return None
        for step in place.pointer.split("/")[1:]:
            child = _child(node, step)
            if child is None:
                return None
            node = child.node
        return Found(place, node)

    def follow(self, place: Place, node: JsonValue, *, quiet: bool = False) -> Found | None:
        """`node` itself, or what its chain of `$ref`s finally leads to; keys beside a `$ref` win over the target's.

        Returns None, and notes why unless `quiet`, when the chain ends nowhere or in itself.
        """
        if not isinstance(node, dict) or "$ref" not in node:
            return Found(place, node)
        beside: Node = {}
        start = place
        for _ in range(LONGEST_CHAIN):
            value = as_object(node)
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return Found(place, {**value, **beside} if beside else node)
            beside = {**{key: item for key, item in value.items() if key != "$ref"}, **beside}
            target = self.target(place, reference)
            found = self.look(target) if target is not None else None
            if found is None:
                if not quiet:
                    self._findings.repaired(start, f"the reference {reference!r} leads nowhere")
                return None
            place, node = found
        if not quiet:
            self._findings.repaired(start, "the reference only leads to itself")
        return None

    def _file(self, uri: str) -> JsonValue:
        if uri not in self._read:
            self._read[uri] = self._load(uri)
        return self._read[uri]

    def _load(self, uri: str) -> JsonValue:
        where = Place(uri, "")
        if len(self._read) > MOST_FILES or self._bytes > MOST_BYTES:
            self._findings.dropped(where, f"not read: an import reads at most {MOST_FILES:,} files and 200 MB")
            return None
        try:
            data = self._files.read(uri)
            self._bytes += len(data)
            return parse(data, repaired=lambda what: self._findings.repaired(where, what))
        except DocumentError as error:
            self._findings.dropped(where, error.message)
            return None


class _Child(NamedTuple):
    node: JsonValue


def _child(node: JsonValue, step: str) -> _Child | None:
    key = unquote(step).replace("~1", "/").replace("~0", "~")
    if isinstance(node, dict):
        children = node
        if key in children:
            return _Child(children[key])
        plain = step.replace("~1", "/").replace("~0", "~")
        return _Child(children[plain]) if plain in children else None
    if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
        return _Child(node[int(key)])
    return None
