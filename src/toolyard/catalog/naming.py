"""The names a server's clients see: one per tool, no two alike, and none that a newcomer could take over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from toolyard.core.names import direct_name
from toolyard.core.tool import Kind, Tool

_NameRule = Callable[[Tool], str]


def client_names(tools: Sequence[Tool], style: Literal["direct", "bare"]) -> list[str | None]:
    """One name per tool, in order.

    Tools that would share a name all move on to the next, longer form: own name (bare only), direct name, hashed
    direct name. None for a tool whose hashed name is taken by one before it, which takes equal long names and a
    collision in 24 bits.
    """
    rules: tuple[_NameRule, ...] = (_plain, _hashed) if style == "direct" else (_own, _plain, _hashed)
    names: list[str | None] = [rules[0](tool) for tool in tools]
    forms = [0] * len(tools)
    while clashes := _clashes(names):
        for places in clashes:
            movable = [place for place in places if forms[place] < len(rules) - 1]
            for place in movable:
                forms[place] += 1
                names[place] = rules[forms[place]](tools[place])
            for place in [] if movable else places[1:]:
                names[place] = None
    return names


def _own(tool: Tool) -> str:
    return tool.name


def _plain(tool: Tool) -> str:
    return tool.direct_name


def _hashed(tool: Tool) -> str:
    entity = "workflow" if tool.kind is Kind.WORKFLOW else "action"
    return direct_name(tool.namespace, tool.name, entity=entity, always_hashed=True)


def _clashes(names: Sequence[str | None]) -> list[list[int]]:
    """The places of each name that occurs more than once."""
    if len(set(names)) == len(names):
        return []
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if name is not None:
            places.setdefault(name, []).append(place)
    return [shared for shared in places.values() if len(shared) > 1]
