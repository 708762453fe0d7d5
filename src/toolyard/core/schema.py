"""A tool's JSON Schema, closed over shared components only when somebody looks.

A large API document shares its components between thousands of tools; each tool keeps its root and the names it
refers to, and `document()` puts the transitive closure under `$defs` (measured: the closed schemas of a 47 MB
document would be 264 MB of text).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from toolyard.core.json import JsonObject, dumps, sha256


class Components:
    """Named schemas with, for each, the names of the components it refers to."""

    __slots__ = ("_digest", "_hashes", "refs", "schemas")

    def __init__(self, schemas: Mapping[str, JsonObject], refs: Mapping[str, tuple[str, ...]]) -> None:
        self.schemas = schemas
        self.refs = refs
        self._digest: bytes | None = None
        self._hashes: dict[str, str] = {}

    def closure(self, names: Iterable[str]) -> list[str]:
        """Every name reachable from `names`, sorted."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found and name in self.schemas:
                found.add(name)
                waiting.extend(self.refs.get(name, ()))
        return sorted(found)

    @property
    def digest(self) -> bytes:
        """Over all components: the cheap way to see that none of them changed. They may be decoded on looking at them,
        so they are looked at one by one."""
        if self._digest is None:
            digest = hashlib.blake2b(digest_size=16)
            for name in self.schemas:
                digest.update(dumps([name, self.schemas[name]]))
            self._digest = digest.digest()
        return self._digest

    def hash(self, name: str) -> str:
        known = self._hashes.get(name)
        if known is None:
            known = self._hashes[name] = sha256(self.schemas[name])
        return known


class Schema:
    """`root` refers to components as `#/$defs/<name>`; `refs` are the names it uses directly."""

    __slots__ = ("_hash", "components", "refs", "root")

    def __init__(self, root: JsonObject, *, refs: tuple[str, ...] = (), components: Components | None = None) -> None:
        self.root = root
        self.refs = refs
        self.components = components
        self._hash: str | None = None

    @property
    def hash(self) -> str:
        """Over the root and the (name, hash) pairs of its closure: no closed text is built for it."""
        if self._hash is None:
            if self.components is None or not self.refs:
                self._hash = sha256(self.root)
            else:
                closure = self.components.closure(self.refs)
                self._hash = sha256([self.root, [[name, self.components.hash(name)] for name in closure]])
        return self._hash

    def document(self) -> JsonObject:
        """The closed schema: what validates, and what a client is shown."""
        if self.components is None or not self.refs:
            return self.root
        schemas = self.components.schemas
        return {**self.root, "$defs": {name: schemas[name] for name in self.components.closure(self.refs)}}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"Schema({self.hash[:12]})"


ANY_OBJECT = Schema({"type": "object"})
