"""Names of tools: `namespace:name`, direct names for MCP clients, prefixes, and the nearest known name."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable
from enum import StrEnum

from toolyard.core.errors import BadInput

NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
LONGEST_DIRECT_NAME = 64
LONGEST_TOOL_NAME = 512
_NOT_DIRECT = re.compile(r"[^a-zA-Z0-9_-]+")


class ToolClass(StrEnum):
    """What a name's prefix says about routing (seed s3)."""

    STANDARD = "standard"
    INTERNAL = "internal"
    PRE = "pre"
    POST = "post"
    PRIVATE = "private"
    MCP = "mcp"


_PREFIXES = (
    ("pre_", ToolClass.PRE),
    ("post_", ToolClass.POST),
    ("priv_", ToolClass.PRIVATE),
    ("mcp_", ToolClass.MCP),
    ("_", ToolClass.INTERNAL),
)


def tool_classification(name: str) -> ToolClass:
    """The class of a bare tool name by its prefix."""
    return next((kind for prefix, kind in _PREFIXES if name.startswith(prefix)), ToolClass.STANDARD)


def check_namespace(namespace: str) -> str:
    """
    Raises:
        BadInput: not 1-64 of `a-z 0-9 _ -`, beginning and ending with a letter or digit.
    """
    if not NAMESPACE.fullmatch(namespace):
        raise BadInput(
            f"{namespace!r} cannot be a provider id.",
            where="id",
            suggestion="Use 1 to 64 of a-z, 0-9, '_' and '-', beginning and ending with a letter or digit.",
        )
    return namespace


def slugify(text: str, *, default: str = "api") -> str:
    """A namespace from free text: `Pet Store (v2)` -> `pet-store-v2`."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64].strip("-")
    return slug or default


def tool_id(namespace: str, name: str) -> str:
    return f"{namespace}:{name}"


def split_tool_id(identifier: str) -> tuple[str, str]:
    """`crm:search` -> `("crm", "search")`; a tool's own name may hold colons.

    Raises:
        BadInput: there is no colon, or nothing on one side of it.
    """
    namespace, colon, name = identifier.partition(":")
    if not (colon and namespace and name):
        raise BadInput(
            f"{identifier!r} is no tool name.",
            where="tool",
            suggestion="Write it as provider:name, such as crm:search.",
        )
    return namespace, name


def direct_name(namespace: str, name: str, *, entity: str = "action", always_hashed: bool = False) -> str:
    """`{app}_{action}_action` in at most 64 of `[a-zA-Z0-9_-]` (seed s0).

    Sanitising or cutting adds six hex digits of the full id's hash, so a name never depends on which other tools
    exist at the moment. Two tools whose plain names clash (`a_b:c`, `a:b_c`) are both given `always_hashed` names.
    """
    plain = f"{namespace}_{name}_{entity}"
    clean = _NOT_DIRECT.sub("_", plain)
    if clean == plain and len(plain) <= LONGEST_DIRECT_NAME and not always_hashed:
        return plain
    tail = f"_{hashlib.sha256(f'{entity}:{namespace}:{name}'.encode()).hexdigest()[:6]}_{entity}"
    stem = clean.removesuffix(f"_{entity}")[: LONGEST_DIRECT_NAME - len(tail)].rstrip("_")
    return stem + tail


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be."""
    lowered = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """`Did you mean 'limit'?`, or nothing."""
    match = nearest(name, known)
    return f"Did you mean {match!r}?" if match else None
