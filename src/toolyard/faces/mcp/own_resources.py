"""Resources of a server itself, which no provider has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from toolyard.core.json import JsonObject
from toolyard.faces.mcp.face import Context


@dataclass(frozen=True, slots=True)
class OwnResource:
    """`definition` is what `resources/list` shows; `read` gives the contents."""

    uri: str
    definition: JsonObject
    read: Callable[[Context], Awaitable[Sequence[JsonObject]]]
