"""`tools/list`: the entries, their pages, and the bytes kept of both.

A page is made once for each (server, era, view, first entry) and served as bytes. A cursor names the last tool of the
page before, so it stays good across snapshots: a tool that went or came in between moves nothing else.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import orjson

from toolyard.catalog import Entry, View
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.tool import Kind
from toolyard.faces.mcp import headers
from toolyard.faces.mcp.shown_uris import shown_meta
from toolyard.faces.mcp.wire import INVALID_PARAMS, Era, RpcError

logger = logging.getLogger(__name__)

PAGE_SIZE = 1000
PAGE_BYTES = 8 * 1024 * 1024
"""A page ends early past this, so that a thousand large schemas make several answers of a bearable size."""
KEPT_BYTES = 64 * 1024 * 1024
TTL_MS = 30_000
"""How long a modern client may go without asking again; with subscriptions/listen it hears of a change at once."""

_PageKey = tuple[str, Era, str, int]


class ToolLists:
    """Pages as bytes, the least recently used dropped first."""

    def __init__(self, *, page_size: int = PAGE_SIZE) -> None:
        self._page_size = page_size
        self._pages: OrderedDict[_PageKey, bytes] = OrderedDict()
        self._bytes = 0

    def page(self, view: View, era: Era, cursor: JsonValue, stamp: bytes, *, own: Sequence[JsonObject] = ()) -> bytes:
        """The JSON of one `tools/list` result. `stamp` is the JSON of a modern result's `_meta`; `own` are the
        server's own tools, which in agent mode are all there is.

        Raises:
            RpcError: the cursor is none of ours (-32602).
        """
        start = 0 if cursor is None else bisect_right(view.entries, name_in(cursor), key=view.name_of)
        key = (view.server.id, era, view.fingerprint, start)
        page = self._pages.get(key)
        if page is not None:
            self._pages.move_to_end(key)
            return page
        page = self._build(view, era, start, stamp, own)
        self._keep(key, page)
        return page

    @property
    def kept_bytes(self) -> int:
        return self._bytes

    def _build(self, view: View, era: Era, start: int, stamp: bytes, own: Sequence[JsonObject]) -> bytes:
        tools = [] if start else [dumps(tool) for tool in own]
        taken = [tool["name"] for tool in own]
        entries = () if view.server.agent_mode else view.entries
        size = 0
        position = start
        while position < len(entries) and len(tools) < self._page_size and size < PAGE_BYTES:
            entry = entries[position]
            tool = None if view.name_of(entry) in taken else _listed(view, entry, era)
            if tool is not None:
                tools.append(tool)
                size += len(tool)
            position += 1
        parts = [b'{"tools":[', b",".join(tools), b"]"]
        if position < len(entries):
            cursor = cursor_after(view.name_of(entries[position - 1]))
            parts.append(b',"nextCursor":' + orjson.dumps(cursor))
        if era is Era.MODERN:
            parts.append(b',"resultType":"complete","ttlMs":%d,"cacheScope":"private","_meta":%b' % (TTL_MS, stamp))
        parts.append(b"}")
        return b"".join(parts)

    def _keep(self, key: _PageKey, page: bytes) -> None:
        self._pages[key] = page
        self._bytes += len(page)
        while self._bytes > KEPT_BYTES and len(self._pages) > 1:
            _, dropped = self._pages.popitem(last=False)
            self._bytes -= len(dropped)


def definition(entry: Entry, name: str, era: Era) -> dict[str, JsonValue]:
    """A tool as a client is shown it: an MCP provider's own words apart from the name, or made from our fields."""
    tool = entry.tool
    if tool.kind is Kind.MCP and tool.wire is not None:
        shown: dict[str, JsonValue] = {**tool.wire, "name": name}
        if entry.settings.description is not None:
            shown["description"] = entry.settings.description
    else:
        shown = {"name": name, "description": entry.description, "inputSchema": tool.input_schema.document()}
        if tool.title is not None:
            shown["title"] = tool.title
        if tool.output_schema is not None:
            shown["outputSchema"] = tool.output_schema
        annotations = tool.annotations.to_wire()
        if annotations:
            shown["annotations"] = annotations
    schema = shown.get("inputSchema")
    if not isinstance(schema, Mapping):
        shown["inputSchema"] = {"type": "object"}
    elif schema.get("type") != "object":
        shown["inputSchema"] = {**schema, "type": "object"}
    if era is Era.LEGACY and not _is_object_schema(shown.get("outputSchema")):
        shown.pop("outputSchema", None)
    return shown


def _listed(view: View, entry: Entry, era: Era) -> bytes | None:
    """None hides a definition that no client could read; the others are listed all the same."""
    try:
        if era is Era.MODERN and entry.tool.kind is Kind.MCP:
            headers.declared(entry.tool.input_schema)
        shown = definition(entry, view.name_of(entry), era)
        meta = shown.get("_meta")
        if isinstance(meta, Mapping):
            shown["_meta"] = shown_meta(view.server, entry.tool.namespace, meta)
        return dumps(shown)
    except ValueError as error:
        logger.warning("%s is not listed over MCP: %s", entry.id, error)
        return None


def _is_object_schema(schema: JsonValue) -> bool:
    """Legacy clients take objects only as structured content, and refuse a result that lacks a declared one."""
    return isinstance(schema, Mapping) and schema.get("type") == "object"


def cursor_after(name: str) -> str:
    """What follows the entry of this name."""
    return urlsafe_b64encode(name.encode()).decode().rstrip("=")


def name_in(cursor: JsonValue) -> str:
    """
    Raises:
        RpcError: the cursor is none of ours (-32602).
    """
    try:
        if isinstance(cursor, str) and cursor:
            name = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
            if cursor_after(name) == cursor:
                return name
    except ValueError:
        pass
    raise RpcError(INVALID_PARAMS, "The cursor is none that this server gave out. List again from the start.")
