"""Tools of a server itself, which are in no catalog: the two of agent mode, and the two for skills.

What a server has of them depends on its two toggles alone. They stand before the tools of its slice; in agent mode they
stand in place of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from toolyard.catalog import Server
from toolyard.core.json import JsonObject
from toolyard.faces.mcp import agent_tools, skill_tools
from toolyard.faces.mcp.face import Context

Run = Callable[[Context, JsonObject], Awaitable[JsonObject]]
"""From arguments to a `CallToolResult` without `resultType`. Bad arguments are a result with `isError`."""


@dataclass(frozen=True, slots=True)
class OwnTool:
    """`definition` is what `tools/list` shows, in either era.

    `run` is None for the one that only names another tool (EXECUTE_ACTION): its call goes on as that tool's.
    """

    name: str
    definition: JsonObject
    run: Run | None


_NONE: Mapping[str, OwnTool] = MappingProxyType({})


def own_tools(server: Server) -> Mapping[str, OwnTool]:
    """By name, in the order in which a model should use them. Empty for a plain server."""
    if not (server.agent_mode or server.retrieve_skill):
        return _NONE
    return _of_toggles(server.agent_mode, server.retrieve_skill)


def own_definitions(server: Server) -> Sequence[JsonObject]:
    return [tool.definition for tool in own_tools(server).values()]


@lru_cache(maxsize=4)
def _of_toggles(agent_mode: bool, retrieve_skill: bool) -> Mapping[str, OwnTool]:  # noqa: FBT001
    tools: list[OwnTool] = []
    if retrieve_skill:
        index, load = skill_tools.definitions(agent_mode=agent_mode)
        tools += [
            OwnTool(skill_tools.GET_KNOWLEDGE_INDEX, index, skill_tools.knowledge_index),
            OwnTool(skill_tools.LOAD_SKILL, load, skill_tools.load_skill),
        ]
    if agent_mode:
        resolve, execute = agent_tools.definitions(with_skills=retrieve_skill)
        tools += [
            OwnTool(agent_tools.RESOLVE_ACTIONS, resolve, agent_tools.resolve_actions),
            OwnTool(agent_tools.EXECUTE_ACTION, execute, None),
        ]
    return MappingProxyType({tool.name: tool for tool in tools})
