"""Takes a provider's list of tools as it may really be, and keeps what the catalog can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from toolyard.core.names import LONGEST_TOOL_NAME
from toolyard.core.tool import Tool

MOST_REASONS = 50


@dataclass(frozen=True, slots=True)
class Listing:
    tools: tuple[Tool, ...]
    skipped: tuple[str, ...]


def vet(namespace: str, answered: Sequence[Tool]) -> Listing:
    """Leaves out what is no tool of `namespace`, has an impossible name, or repeats a name (the first one stays)."""
    kept: dict[str, Tool] = {}
    skipped: list[str] = []
    for item in cast("Sequence[object]", answered):
        reason = _unfit(namespace, item, kept)
        if reason is None and isinstance(item, Tool):
            kept[item.name] = item
        elif reason is not None:
            skipped.append(reason)
    return Listing(tuple(kept.values()), tuple(skipped))


def shortened(reasons: Sequence[str]) -> tuple[str, ...]:
    if len(reasons) <= MOST_REASONS:
        return tuple(reasons)
    return (*reasons[:MOST_REASONS], f"and {len(reasons) - MOST_REASONS} more")


def _unfit(namespace: str, item: object, kept: dict[str, Tool]) -> str | None:
    if not isinstance(item, Tool):
        return f"an entry of type {type(item).__name__} is no tool"
    if item.namespace != namespace:
        return f"{item.id[:100]!r} belongs to another namespace than {namespace!r}"
    if not item.name:
        return "a tool without a name"
    if len(item.name) > LONGEST_TOOL_NAME:
        return f"{item.name[:60]!r}...: the name is longer than {LONGEST_TOOL_NAME} characters"
    if item.name in kept:
        return f"{item.name!r} is listed twice; the first one is used"
    return None
