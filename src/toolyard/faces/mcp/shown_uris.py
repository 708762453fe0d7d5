"""URIs of an upstream's resources wherever they occur in what a client is shown, under the server's own rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from toolyard.catalog import Server
from toolyard.catalog.uris import in_namespace
from toolyard.core.call import CallOutcome
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.tool import Kind, Tool

_FLAT_UI = "ui/resourceUri"
"""Where MCP Apps had it before it moved under `ui`."""


def shown_outcome(server: Server, tool: Tool, outcome: CallOutcome) -> CallOutcome:
    """The resources in an upstream's result; the very same outcome where there are none."""
    if tool.kind is not Kind.MCP or server.names == "bare" or outcome.result is None:
        return outcome
    blocks = shown_blocks(server, tool.namespace, outcome.result.content)
    if blocks is outcome.result.content:
        return outcome
    return replace(outcome, result=replace(outcome.result, content=blocks))


def shown_meta(server: Server, namespace: str, meta: JsonObject) -> JsonObject:
    """A tool's `_meta`, with the `ui://` resource that shows its result."""
    if server.names == "bare":
        return meta
    changed: dict[str, JsonValue] = {**meta}
    ui = meta.get("ui")
    if isinstance(ui, Mapping) and isinstance(uri := ui.get("resourceUri"), str):
        changed["ui"] = {**ui, "resourceUri": in_namespace(namespace, uri)}
    if isinstance(uri := meta.get(_FLAT_UI), str):
        changed[_FLAT_UI] = in_namespace(namespace, uri)
    return changed


def shown_blocks(server: Server, namespace: str, blocks: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Content blocks with their embedded resources and links; the very same ones where there are none."""
    if server.names == "bare" or not any(block.get("type") in ("resource", "resource_link") for block in blocks):
        return blocks
    return [shown_block(server, namespace, block) for block in blocks]


def shown_block(server: Server, namespace: str, block: JsonObject) -> JsonObject:
    kind, embedded = block.get("type"), block.get("resource")
    if server.names == "bare":
        return block
    if kind == "resource_link":
        return with_uri(block, lambda uri: in_namespace(namespace, uri))
    if kind == "resource" and isinstance(embedded, Mapping):
        return {**block, "resource": with_uri(embedded, lambda uri: in_namespace(namespace, uri))}
    return block


def with_uri(holder: JsonObject, renamed: Callable[[str], str]) -> JsonObject:
    uri = holder.get("uri")
    return {**holder, "uri": renamed(uri)} if isinstance(uri, str) else holder
