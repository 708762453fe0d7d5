"""Tools for these tests, in one line each."""

from __future__ import annotations

from toolyard.core.schema import Schema
from toolyard.core.tool import Kind, Tool


def a_tool(
    tool_id: str,
    description: str = "",
    *,
    cluster: str | None = None,
    arguments: dict[str, str] | None = None,
    tags: tuple[str, ...] = (),
    kind: Kind = Kind.PYTHON,
) -> Tool:
    namespace, _, name = tool_id.partition(":")
    properties = {key: {"type": "string", "description": text} for key, text in (arguments or {}).items()}
    schema = Schema({"type": "object", "properties": properties})
    return Tool(namespace, name, description, schema, cluster=cluster, tags=tags, kind=kind)
