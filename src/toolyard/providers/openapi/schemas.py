"""Schemas of all versions to JSON Schema 2020-12, over components that are converted once (decision 021).

What a document says wrongly is left out and noted; the result always is a valid schema. It never refuses what the
API takes: `oneOf` becomes `anyOf`, because about one in five of the real ones overlap.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import jsonschema_rs

from toolyard.core.json import JsonObject, JsonValue
from toolyard.providers.openapi.keywords import KEYWORDS, Conversion
from toolyard.providers.openapi.nodes import DAMAGE, Node, Place, as_object
from toolyard.providers.openapi.references import Document
from toolyard.providers.openapi.report import Findings

DEEPEST = 60
"""Levels of schema within schema, in one component: real documents stay below 20."""

_NAMED = re.compile(r"/(?:components/schemas|definitions)/[^/]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Schemas:
    """Converts the schemas of one document. `components` and `refs` grow as operations use them."""

    def __init__(self, document: Document, findings: Findings) -> None:
        self._document = document
        self._findings = findings
        self._names: dict[Place, str] = {}
        self._taken: set[str] = set()
        self._waiting: list[tuple[str, Place, JsonValue]] = []
        self.components: dict[str, JsonObject] = {}
        self.refs: dict[str, tuple[str, ...]] = {}

    def convert(self, node: JsonValue, place: Place, refs: set[str]) -> JsonObject:
        """`node` as a schema object; the names of the components it uses directly are added to `refs`."""
        try:
            converted = self.nested(node, place, refs, 0)
        except DAMAGE as error:
            self._findings.repaired(
                place, f"the schema cannot be read ({type(error).__name__}); anything is accepted here"
            )
            return {}
        result: JsonObject = converted if isinstance(converted, dict) else {}
        if not jsonschema_rs.meta.is_valid(result):
            self._findings.repaired(place, "the schema cannot be made valid; anything is accepted here")
            return {}
        return result

    def finish(self) -> None:
        """Convert the components that were referred to and not looked at yet."""
        while self._waiting:
            name, place, node = self._waiting.pop()
            if name not in self.components:
                refs: set[str] = set()
                self.components[name] = self.convert(node, place, refs)
                self.refs[name] = tuple(sorted(refs))

    def nested(self, node: JsonValue, place: Place, refs: set[str], depth: int) -> JsonObject | bool:
        """One schema at any depth. Schemas inside come back here."""
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            self._findings.repaired(place, f"a schema is an object, not {_kind(node)}; anything is accepted here")
            return {}
        if depth > DEEPEST:
            self._findings.repaired(place, f"nested more than {DEEPEST} levels deep; anything is accepted here")
            return {}
        source = node
        if "$ref" in source:
            return self._reference(source, place, refs, depth)
        return self._keywords(source, place, refs, depth)

    def _keywords(self, source: Node, place: Place, refs: set[str], depth: int) -> JsonObject:
        conversion = Conversion(source, place, schemas=self, findings=self._findings, refs=refs, depth=depth)
        for keyword, value in source.items():
            convert = KEYWORDS.get(keyword)
            if convert is not None:
                convert(conversion, keyword, value)
        return conversion.finished()

    def _reference(self, source: Node, place: Place, refs: set[str], depth: int) -> JsonObject:
        reference = source["$ref"]
        name = self._component(place, reference) if isinstance(reference, str) else None
        if name is None:
            self._findings.repaired(place, f"the reference {reference!r} leads nowhere; anything is accepted here")
            return {}
        refs.add(name)
        result: Node = {"$ref": f"#/$defs/{name}"}
        description = source.get("description")
        if isinstance(description, str):
            result["description"] = description
        beside = {key: value for key, value in source.items() if key in KEYWORDS and key not in _BESIDE_REF}
        if beside:
            result["allOf"] = [self._keywords(beside, place, refs, depth + 1)]
        if source.get("nullable") is True or source.get("x-nullable") is True:
            result.pop("description", None)
            nullable: Node = {"anyOf": [result, {"type": "null"}]}
            return {**nullable, "description": description} if isinstance(description, str) else nullable
        return result

    def _component(self, place: Place, reference: str) -> str | None:
        """The `$defs` name of what a reference leads to; it is converted later, so recursion costs nothing."""
        target = self._document.target(place, reference)
        if target is None:
            return None
        name = self._names.get(target)
        if name is None:
            found = self._document.look(target)
            if found is None:
                return None
            name = self._names[target] = self._new_name(target)
            node: JsonValue = found.node
            if self._leads_to_itself(target, node):
                self._findings.repaired(target, "the reference only leads to itself; anything is accepted here")
                node = {}
            self._waiting.append((name, target, node))
        return name

    def _leads_to_itself(self, place: Place, node: JsonValue) -> bool:
        seen = {place}
        while isinstance(reference := as_object(node).get("$ref"), str):
            target = self._document.target(place, reference)
            found = self._document.look(target) if target is not None else None
            if found is None:
                return False
            if found.place in seen:
                return True
            seen.add(found.place)
            place, node = found
        return False

    def _new_name(self, place: Place) -> str:
        """The component's own name where it is a named schema of the root; others carry a hash of where they are.

        So a name never depends on the order in which references are met.
        """
        last = place.pointer.rpartition("/")[2] or place.uri.rpartition("/")[2].partition(".")[0] or "root"
        clean = _UNSAFE.sub("_", last)
        if place.uri or clean != last or not _NAMED.fullmatch(place.pointer) or clean in self._taken:
            clean = f"{clean[:80]}_{hashlib.sha256(str(place).encode()).hexdigest()[:8]}"
        self._taken.add(clean)
        return clean


_BESIDE_REF = frozenset({
    "title", "description", "nullable", "x-nullable", "readOnly", "writeOnly", "deprecated", "default",
})  # fmt: skip


def _kind(node: JsonValue) -> str:
    return (
        "nothing" if node is None else "a list" if isinstance(node, Sequence) and not isinstance(node, str) else "text"
    )
