"""The operations of a document, each on its own: what is wrong with one costs no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolyard.core.errors import ToolyardError
from toolyard.core.json import JsonValue
from toolyard.providers.openapi.nodes import DAMAGE, ROOT, Node, Place, as_object
from toolyard.providers.openapi.references import Document
from toolyard.providers.openapi.report import Findings

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")


@dataclass(frozen=True, slots=True)
class Declaration:
    """One operation as it stands in the document. `item` is its path item, at `item_place`."""

    key: str
    method: str
    path: str
    node: Node
    place: Place
    item: Node
    item_place: Place


def declarations(document: Document, findings: Findings) -> Iterator[Declaration]:
    """Every operation under `paths`, in the document's order."""
    for path, value in as_object(document.root.get("paths")).items():
        if path.startswith("x-"):
            continue
        place = ROOT.child("paths", path)
        try:
            yield from _of_item(document, findings, path, value, place)
        except (*DAMAGE, ToolyardError) as error:
            findings.dropped(place, f"the path cannot be read: {error}")


def _of_item(
    document: Document, findings: Findings, path: str, item_node: JsonValue, place: Place
) -> Iterator[Declaration]:
    found = document.follow(place, item_node)
    if found is None or not isinstance(found.node, dict):
        findings.dropped(place, "the path has no operations that can be read")
        return
    item = found.node
    if not path.startswith("/"):
        findings.repaired(place, "a path begins with a slash; one was added")
    more = as_object(item.get("additionalOperations"))
    # The place of a path item behind a $ref is where it really stands: references in it are relative to that file.
    listed = [(method, item[method], found.place.child(method)) for method in METHODS if method in item]
    listed += [(method, node, found.place.child("additionalOperations", method)) for method, node in more.items()]
    for method, value, here in listed:
        operation = document.follow(here, value)
        if operation is None or not isinstance(operation.node, dict):
            findings.dropped(here, "an operation is an object, or leads to one")
            continue
        yield Declaration(
            key=f"{method.upper()} {path}",
            method=method.upper(),
            path=path if path.startswith("/") else f"/{path}",
            node=operation.node,
            place=operation.place,
            item=item,
            item_place=found.place,
        )
