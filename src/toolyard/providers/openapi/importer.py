"""From plain values to operations: the pure part of an import, the same in a worker process and in a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from toolyard.core.errors import DocumentError, ToolyardError
from toolyard.core.json import JsonObject, JsonValue
from toolyard.providers.openapi.files import Files, Folder, NoFiles, Origin
from toolyard.providers.openapi.loading import check_size, parse, read_file
from toolyard.providers.openapi.model import Operation
from toolyard.providers.openapi.naming import preferred_name, unique_names
from toolyard.providers.openapi.nodes import DAMAGE, ROOT, Node, as_object, as_text
from toolyard.providers.openapi.operations import Operations
from toolyard.providers.openapi.references import Document
from toolyard.providers.openapi.report import Findings, ImportReport
from toolyard.providers.openapi.walk import Declaration, declarations

ProgressOf = Callable[[int, int], None]
"""Told how many operations of how many are read."""


class Imported(msgspec.Struct, frozen=True):
    """What an import yields, ready to be stored. `components` are JSON, so that a restart decodes only what it uses."""

    title: str
    version: str
    server: str
    servers: tuple[str, ...]
    security: tuple[str, ...]
    operations: tuple[Operation, ...]
    components: dict[str, bytes]
    refs: dict[str, tuple[str, ...]]
    report: ImportReport


def read_source(location: str, data: bytes | None, fetch: Callable[[str], bytes]) -> tuple[bytes, Files]:
    """The bytes of the root document and access to the files around it.

    Args:
        location: the URL (with its `data`, downloaded before) or the path of the document; `""` when `data` is all.

    Raises:
        DocumentError: the file cannot be read.
    """
    if data is None:
        path = Path(location)
        return read_file(path), Folder(path)
    return check_size(data, location), Origin(location, fetch) if location else NoFiles()


def import_data(
    data: bytes, files: Files, *, document_url: str = "", progress: ProgressOf = lambda done, total: None
) -> Imported:
    """
    Raises:
        DocumentError: the document as a whole cannot be read; one bad operation never is a reason.
    """
    findings = Findings()
    value = parse(data, repaired=lambda what: findings.repaired(ROOT, what))
    root = _checked_root(value, findings)
    document = Document(root, files, findings)
    found = _of_distinct_keys(document, findings)
    operations = Operations(document, findings, document_url=document_url)
    built: list[Operation] = []
    names = unique_names({each.key: _preferred(each) for each in found.values()})
    for done, declaration in enumerate(found.values()):
        try:
            built.append(operations.build(declaration, names[declaration.key]))
        except (*DAMAGE, ToolyardError) as error:
            findings.dropped(declaration.place, f"the operation cannot be read: {type(error).__name__}: {error}")
        if done % 200 == 0:
            progress(done, len(found))
    components = operations.components()
    operations.note_needs(built)
    info = as_object(root.get("info"))
    return Imported(
        title=as_text(info.get("title")).strip() or "API",
        version=str(info.get("version") or ""),
        server=operations.servers.main,
        servers=operations.servers.all,
        security=operations.security(),
        operations=tuple(built),
        components={name: msgspec.json.encode(schema) for name, schema in components.items()},
        refs=operations.refs(),
        report=findings.report(len(built)),
    )


def _of_distinct_keys(document: Document, findings: Findings) -> Mapping[str, Declaration]:
    found: dict[str, Declaration] = {}
    for declaration in declarations(document, findings):
        if found.setdefault(declaration.key, declaration) is not declaration:
            findings.dropped(declaration.place, f"{declaration.key} is there twice; the first one counts")
    return found


def _preferred(declaration: Declaration) -> str:
    return preferred_name(as_text(declaration.node.get("operationId")), declaration.method, declaration.path)


def _checked_root(value: JsonValue, findings: Findings) -> Node:
    if not isinstance(value, dict):
        raise DocumentError(
            "This is not an OpenAPI document: it is not an object.",
            suggestion="An OpenAPI document begins with `openapi:` or `swagger:` and has `paths`.",
        )
    root = value
    version = root.get("openapi", root.get("swagger"))
    known = isinstance(version, str | int | float) and str(version)[:1] in ("2", "3")
    if not isinstance(root.get("paths"), dict):
        raise _no_paths(root, stated=version is not None)
    if not known:
        findings.repaired(ROOT, "no OpenAPI version that we know is stated; read as the version it looks like")
        if "definitions" in root or "host" in root:
            root = {**root, "swagger": "2.0"}
    return root


def _no_paths(root: JsonObject, *, stated: bool) -> DocumentError:
    if stated and "paths" not in root:
        return DocumentError(
            "The document has no `paths`, so there is nothing to call.",
            suggestion="Webhooks and components alone make no tools; import the document that has the paths.",
        )
    if stated:
        return DocumentError("`paths` is not an object.", suggestion="It maps each path to its operations.")
    for key, what in (("asyncapi", "an AsyncAPI document"), ("swaggerVersion", "a Swagger 1 document"),
                      ("swagger_version", "a Swagger 1 document"), ("$schema", "a JSON Schema")):  # fmt: skip
        if key in root:
            return DocumentError(f"This is {what}, not OpenAPI 2.0 or 3.x.", suggestion="Convert it first.")
    return DocumentError(
        "This is not an OpenAPI document: it has neither `openapi` nor `swagger` nor `paths`.",
        suggestion="Check the address: it must lead to the document itself.",
    )
