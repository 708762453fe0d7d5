"""`post_X` runs by itself after X has succeeded, with X's arguments and result. It never undoes X, and a `post_` tool
triggers nothing, so it can never trigger itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from toolyard.catalog import Catalog, Entry, Server
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.names import ToolClass, tool_id
from toolyard.core.session import CLIENT_NAMESPACE, Session
from toolyard.core.tool import Tool

PREFIX = "post_"


def follow_up_of(
    tool: Tool, catalog: Catalog, servers: Mapping[str, Server], server: str | None, session: Session | None
) -> Entry | None:
    """The tool that runs after `tool`, if the caller's slice has one: beside it, or among the session's own."""
    if tool.tool_class is ToolClass.POST:
        return None
    name = f"{PREFIX}{tool.name}"
    if tool.namespace != CLIENT_NAMESPACE:
        entry = catalog.snapshot.get(tool_id(tool.namespace, name))
        if entry is not None and entry.settings.enabled and _in_slice(entry, servers, server):
            return entry
    theirs = session.tools.get(name) if session is not None else None
    return Entry(theirs.tool) if theirs is not None else None


def follow_up_arguments(tool: Tool, arguments: JsonObject, result: JsonValue, session_id: str | None) -> JsonObject:
    """What `post_X` is given: the fields that it declares, of `arguments`, `result` and X's arguments by their names.

    A tool that declares nothing is given `arguments` and `result`.
    """
    document = tool.input_schema.document()
    declared = document.get("properties")
    given: dict[str, JsonValue] = {"arguments": arguments, "result": result}
    if not isinstance(declared, Mapping) or not (set(cast("JsonObject", declared)) - {"sessionId"}):
        wanted = given
    else:
        known = {**arguments, **given}
        wanted = {name: known[name] for name in cast("JsonObject", declared) if name in known}
    if tool.namespace == CLIENT_NAMESPACE and session_id is not None:
        return {**wanted, "sessionId": session_id}
    return wanted


def _in_slice(entry: Entry, servers: Mapping[str, Server], server: str | None) -> bool:
    if server is None:
        return True
    sliced = servers.get(server)
    return sliced is not None and sliced.includes(entry.id)
