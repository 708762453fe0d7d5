"""A server: a downstream MCP endpoint that shows a slice of the catalog."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Literal

from toolyard.core.approval import AutoApprove


@dataclass(frozen=True, slots=True)
class Server:
    """What one endpoint shows.

    `tools` are shell patterns over `namespace:name`, case matters; `!pattern` takes tools away, whatever its place in
    the list, and a list that only takes away starts from everything. `names`: what clients see, the direct name
    (`crm_search_action`) or the tool's own.
    """

    id: str
    tools: tuple[str, ...] = ("*",)
    names: Literal["direct", "bare"] = "direct"
    agent_mode: bool = False
    retrieve_skill: bool = False
    skills: tuple[str, ...] = ()
    title: str | None = None
    description: str | None = None
    auto_approve: AutoApprove = True
    """For tools about which nothing nearer decides: see `calls.approve`."""
    token_in_url: bool = False
    """Whether a key is also taken from the path, `/mcp/{id}/t/{key}`, for clients that cannot send a header."""

    def __hash__(self) -> int:
        return hash(self.id)  # views are looked up by server on every request

    def includes(self, tool_id: str) -> bool:
        return selector(self.tools)(tool_id)

    def shows_skill(self, name: str) -> bool:
        """All that its patterns include; all there are, where it names none and has the two tools; else none."""
        return selector(self.skills)(name) if self.skills else self.retrieve_skill


@lru_cache(maxsize=256)
def selector(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """A test for tool ids, compiled once per pattern list."""
    wanted = _any_of(pattern for pattern in patterns if not pattern.startswith("!"))
    unwanted = _any_of(pattern[1:] for pattern in patterns if pattern.startswith("!"))
    if unwanted is None:
        return (lambda tool_id: wanted(tool_id) is not None) if wanted else (lambda tool_id: False)
    if wanted is None:
        return lambda tool_id: unwanted(tool_id) is None
    return lambda tool_id: wanted(tool_id) is not None and unwanted(tool_id) is None


def _any_of(patterns: Iterable[str]) -> Callable[[str], re.Match[str] | None] | None:
    alternatives = [translate(pattern) for pattern in patterns]
    return re.compile("|".join(alternatives)).match if alternatives else None
