"""Names of tools and of their arguments: legal, unique, and independent of the order in a document."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping

LONGEST = 64
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_NOT_IN_KEY = re.compile(r"[^A-Za-z0-9_.-]+")


def preferred_name(operation_id: str, method: str, path: str) -> str:
    """The operationId, else `method_path`, in `[A-Za-z0-9_-]`; may be too long, or empty."""
    name = _NOT_IN_NAME.sub("_", operation_id).strip("_-")
    return name or f"{method.lower()}_{_NOT_IN_NAME.sub('_', path).strip('_-')}".strip("_")


def unique_names(preferred: Mapping[str, str]) -> dict[str, str]:
    """Operation key -> tool name of at most 64 characters, unique without regard to case.

    Every member of a clash gets a hash of its key, so that no name depends on which operation comes first.
    """
    seen = Counter(name.lower() for name in preferred.values())
    names = {
        key: name if seen[name.lower()] == 1 and len(name) <= LONGEST else _hashed(name, key)
        for key, name in preferred.items()
    }
    again = Counter(name.lower() for name in names.values())
    return {key: name if again[name.lower()] == 1 else _hashed(name, key, 16) for key, name in names.items()}


def argument_key(wire_name: str) -> str:
    """A wire name as a key that models may write: `$filter` -> `filter`, `filter[name]` -> `filter_name`."""
    clean = _NOT_IN_KEY.sub("_", wire_name)
    if clean != wire_name:
        clean = clean.strip("_") or "value"
    return clean if len(clean) <= LONGEST else _hashed(clean, wire_name)


def with_hash(key: str, wire_name: str) -> str:
    """One member of a clash of argument keys."""
    return _hashed(key, wire_name)


def _hashed(name: str, of: str, digits: int = 6) -> str:
    return f"{name[: LONGEST - 1 - digits].rstrip('_-')}_{hashlib.sha256(of.encode()).hexdigest()[:digits]}"
