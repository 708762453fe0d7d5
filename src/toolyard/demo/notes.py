"""A small MCP server over stdio: notes that can be added, listed and searched.

`python -m toolyard.demo.notes [FILE]` keeps the notes in FILE, or in memory. It is its own small loop, standing on the
standard library only, so that it starts in a moment. It speaks the handshake era (`initialize`); a modern client's
probe is answered with "method not found", which tells it so.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TypeAlias, cast

Json: TypeAlias = "dict[str, object]"

ERAS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_PARSE_ERROR, _INVALID_REQUEST, _METHOD_NOT_FOUND, _INVALID_PARAMS = -32700, -32600, -32601, -32602

_TEXT = {"type": "string", "minLength": 1, "maxLength": 10_000}
_TAGS = {"type": "array", "items": {"type": "string"}, "description": "Words to find it by"}
_NOTE: Json = {
    "type": "object",
    "required": ["id", "text", "tags"],
    "properties": {"id": {"type": "integer"}, "text": {"type": "string"}, "tags": _TAGS},
}
_NOTES: Json = {"type": "object", "required": ["notes"], "properties": {"notes": {"type": "array", "items": _NOTE}}}
TOOLS: list[Json] = [
    {
        "name": "add",
        "title": "Add a note",
        "description": "Write down a note; it can be found again by its words and tags.",
        "inputSchema": {
            "type": "object",
            "required": ["text"],
            "additionalProperties": False,
            "properties": {"text": {**_TEXT, "description": "What to remember"}, "tags": _TAGS},
        },
        "outputSchema": _NOTE,
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
    },
    {
        "name": "list",
        "title": "List notes",
        "description": "The latest notes, newest first.",
        "inputSchema": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}},
        },
        "outputSchema": _NOTES,
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
    {
        "name": "search",
        "title": "Search notes",
        "description": "Notes that contain every word of the query, in their text or tags.",
        "inputSchema": {
            "type": "object",
            "required": ["query"],
            "additionalProperties": False,
            "properties": {"query": {**_TEXT, "description": "One or more words"}},
        },
        "outputSchema": _NOTES,
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
]


class Refused(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Notebook:
    """Notes in memory and, when there is a file, on disk as one JSON array."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._notes: list[Json] = json.loads(file.read_bytes()) if file is not None and file.exists() else []

    def add(self, arguments: Mapping[str, object]) -> Json:
        text, tags = arguments.get("text"), arguments.get("tags", [])
        if not isinstance(text, str) or not text or not isinstance(tags, list):
            raise Refused(_INVALID_PARAMS, "add needs 'text', and takes a list 'tags'.")
        note: Json = {
            "id": len(self._notes) + 1,
            "text": text,
            "tags": [str(tag) for tag in cast("list[object]", tags)],
        }
        self._keep([*self._notes, note])
        return note

    def list(self, arguments: Mapping[str, object]) -> Json:
        limit = arguments.get("limit", 10)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise Refused(_INVALID_PARAMS, "'limit' must be a whole number above 0.")
        return {"notes": self._notes[::-1][:limit]}

    def search(self, arguments: Mapping[str, object]) -> Json:
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            raise Refused(_INVALID_PARAMS, "search needs 'query'.")
        words = query.lower().split()
        return {"notes": [note for note in self._notes[::-1] if all(word in _haystack(note) for word in words)]}

    def _keep(self, notes: list[Json]) -> None:
        if self._file is not None:
            draft = self._file.with_suffix(".new")
            draft.write_text(json.dumps(notes), encoding="utf-8")
            os.replace(draft, self._file)
        self._notes = notes


def _haystack(note: Json) -> str:
    return f"{note['text']} {' '.join(cast('list[str]', note['tags']))}".lower()


class Server:
    def __init__(self, notebook: Notebook) -> None:
        self._tools: Mapping[str, Callable[[Mapping[str, object]], Json]] = {
            "add": notebook.add,
            "list": notebook.list,
            "search": notebook.search,
        }
        self._methods: Mapping[str, Callable[[Json], Json]] = {
            "initialize": self._initialize,
            "ping": lambda _: {},
            "tools/list": lambda _: {"tools": TOOLS},
            "tools/call": self._call,
        }

    def answer(self, line: bytes) -> Json | None:
        """The message to send back for one line; None for a notification."""
        try:
            message: object = json.loads(line)
        except (ValueError, RecursionError):
            return _error(None, _PARSE_ERROR, "This line is no JSON.")
        if not isinstance(message, dict):
            return _error(None, _INVALID_REQUEST, "A message must be an object.")
        request = cast("Json", message)
        if "id" not in request or "method" not in request:
            return None
        params = cast("object", request.get("params") or {})
        method = self._methods.get(str(request["method"]))
        try:
            if method is None or not isinstance(params, dict):
                raise Refused(_METHOD_NOT_FOUND, f"This server does not know the method {request['method']!r}.")
            return {"jsonrpc": "2.0", "id": request["id"], "result": method(cast("Json", params))}
        except Refused as error:
            return _error(request["id"], error.code, str(error))

    def _initialize(self, params: Json) -> Json:
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in ERAS else ERAS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "toolyard-demo-notes", "version": "1.0.0"},
        }

    def _call(self, params: Json) -> Json:
        tool = self._tools.get(str(params.get("name")))
        if tool is None:
            raise Refused(_INVALID_PARAMS, f"This server has no tool {params.get('name')!r}.")
        arguments = params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise Refused(_INVALID_PARAMS, "'arguments' must be an object.")
        value = tool(cast("Json", arguments))
        return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def _error(request_id: object, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}


def serve(incoming: IO[bytes], outgoing: IO[bytes], server: Server) -> None:
    """Answer line by line until the input ends."""
    for line in incoming:
        if line.strip() and (answer := server.answer(line)) is not None:
            outgoing.write(json.dumps(answer).encode() + b"\n")
            outgoing.flush()


def main(arguments: list[str]) -> int:
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, Server(Notebook(Path(arguments[0]) if arguments else None)))
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
