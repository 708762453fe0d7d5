"""An imported API: its tools, and the operations behind them. Kept as bytes, so that a restart needs no download."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec
import orjson

from toolyard.core.errors import DocumentError
from toolyard.core.json import JsonObject
from toolyard.core.schema import Components, Schema
from toolyard.core.tool import Annotations, Kind, Tool
from toolyard.providers.openapi.importer import Imported
from toolyard.providers.openapi.model import Operation
from toolyard.providers.openapi.report import ImportReport

FORMAT = 1
_READ_ONLY = frozenset({"GET", "HEAD", "OPTIONS", "QUERY", "TRACE"})


class _Stored(msgspec.Struct, frozen=True):
    format: int
    namespace: str
    cluster: str
    imported: Imported


@dataclass(frozen=True)
class ImportedApi:
    """`server` is where the document says the API is, absolute, or `""`; `tools` are in the document's order."""

    namespace: str
    cluster: str
    imported: Imported

    @property
    def title(self) -> str:
        return self.imported.title

    @property
    def version(self) -> str:
        return self.imported.version

    @property
    def server(self) -> str:
        return self.imported.server

    @property
    def servers(self) -> tuple[str, ...]:
        return self.imported.servers

    @property
    def report(self) -> ImportReport:
        return self.imported.report

    @cached_property
    def operations(self) -> Mapping[str, Operation]:
        """By tool name."""
        return {operation.name: operation for operation in self.imported.operations}

    @cached_property
    def tools(self) -> list[Tool]:
        components = Components(_Decoded(self.imported.components), self.imported.refs)
        return [self._tool(operation, components) for operation in self.imported.operations]

    def _tool(self, operation: Operation, components: Components) -> Tool:
        method = operation.method
        return Tool(
            namespace=self.namespace,
            name=operation.name,
            description=operation.description,
            input_schema=Schema(orjson.loads(operation.root), refs=operation.refs, components=components),
            annotations=annotations_of(method),
            kind=Kind.OPENAPI,
            cluster=self.cluster,
            title=operation.title or None,
            tags=operation.tags,
            origin={"method": method, "path": operation.path},
        )

    def to_bytes(self) -> bytes:
        """Everything, to be read by `from_bytes` of this or a later version."""
        return msgspec.msgpack.encode(_Stored(FORMAT, self.namespace, self.cluster, self.imported))

    @staticmethod
    def from_bytes(data: bytes) -> ImportedApi:
        """
        Raises:
            DocumentError: not written by `to_bytes`, or by a version that stored it otherwise.
        """
        try:
            stored = msgspec.msgpack.decode(data, type=_Stored)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _unreadable() from error
        if stored.format != FORMAT:
            raise _unreadable()
        return ImportedApi(stored.namespace, stored.cluster, stored.imported)


def annotations_of(method: str) -> Annotations:
    """What HTTP says about a method (RFC 9110, section 9.2)."""
    read_only = method in _READ_ONLY
    return Annotations(
        read_only=read_only,
        destructive=method == "DELETE",
        idempotent=read_only or method in ("PUT", "DELETE"),
        open_world=True,
    )


class _Decoded(Mapping[str, JsonObject]):
    """Components that are decoded when somebody looks: the objects take six times the memory of their text."""

    def __init__(self, encoded: Mapping[str, bytes]) -> None:
        self._encoded = encoded

    def __getitem__(self, name: str) -> JsonObject:
        return orjson.loads(self._encoded[name])

    def __contains__(self, name: object) -> bool:
        return name in self._encoded

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)


def _unreadable() -> DocumentError:
    return DocumentError("The stored import cannot be read.", suggestion="Import the document again.")
