"""The words of the wire: versions, `_meta` keys, header names, error codes, and the frames that carry them.

Frames are spliced from bytes: a result is dumped once, and the envelope is put around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeAlias, cast

import orjson

from toolyard.core.json import JsonObject, JsonValue, dumps

RequestId: TypeAlias = str | int

MODERN = "2026-07-28"
MODERN_VERSIONS = (MODERN,)
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
NEWEST_LEGACY = LEGACY_VERSIONS[0]

META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
META_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

META_CALL_ID = "toolyard/call-id"
META_ERROR = "toolyard/error"
META_WARNINGS = "toolyard/warnings"
META_IDEMPOTENCY = "toolyard/idempotency-key"
META_HOLD = "toolyard/hold-seconds"
META_KEY = "toolyard/key"
META_WAITING = "toolyard/waiting"
META_UNRESOLVED = "toolyard/unresolved"

EXTENSION_SKILLS = "io.modelcontextprotocol/skills"
EXTENSION_TASKS = "io.modelcontextprotocol/tasks"

H_VERSION = b"mcp-protocol-version"
H_METHOD = b"mcp-method"
H_NAME = b"mcp-name"
H_SESSION = b"mcp-session-id"
PARAM_PREFIX = "Mcp-Param-"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
REQUEST_CANCELLED = -32800

MODERN_HTTP_STATUS: Mapping[int, int] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""The HTTP status of a modern JSON-RPC error; any other code is 200, and a legacy method's error always is."""


class Era(Enum):
    """Modern = 2026-07-28 (per-request `_meta`); legacy = 2025-11-25 and older (initialize + session)."""

    MODERN = "modern"
    LEGACY = "legacy"


class RpcError(Exception):
    """Ends one request with a JSON-RPC error. `status` overrides the HTTP status of the era's table."""

    def __init__(self, code: int, message: str, data: JsonValue = None, *, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status

    def to_wire(self) -> dict[str, JsonValue]:
        error: dict[str, JsonValue] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error

    def to_bytes(self, request_id: RequestId | None) -> bytes:
        return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "error": self.to_wire()})

    def http_status(self, era: Era | None) -> int:
        if self.status is not None:
            return self.status
        return 200 if era is Era.LEGACY else MODERN_HTTP_STATUS.get(self.code, 200)


def response(request_id: RequestId, result: bytes) -> bytes:
    """`result` is the JSON of the result member."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_id(request_id), result)


def request(request_id: RequestId, method: str, params: JsonObject) -> bytes:
    """A request of ours to a legacy client."""
    return dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification(method: str, params: JsonObject | None = None) -> bytes:
    frame: dict[str, object] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        frame["params"] = params
    return dumps(frame)


def event(frame: bytes) -> bytes:
    """One server-sent event. JSON as orjson writes it holds no line break."""
    return b"event: message\ndata: %b\n\n" % frame


KEEP_ALIVE = b": keep-alive\n\n"


def parse(body: bytes | bytearray | memoryview) -> dict[str, Any]:
    """One JSON-RPC message.

    Raises:
        RpcError: not JSON in UTF-8 (-32700), a batch, or no JSON-RPC 2.0 object (-32600).
    """
    try:
        message = orjson.loads(body)
    except ValueError as error:
        raise RpcError(PARSE_ERROR, f"The body is not JSON in UTF-8: {error}", status=400) from error
    if isinstance(message, list):
        raise RpcError(INVALID_REQUEST, "Batches are not served. Send one message per request.", status=400)
    found = as_object(message)
    if found is None or found.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'A message is one object with "jsonrpc": "2.0".', status=400)
    return found


def as_object(value: object) -> dict[str, Any] | None:
    """`value` when it is a JSON object, else nothing."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def request_id_of(message: Mapping[str, Any]) -> RequestId:
    """
    Raises:
        RpcError: the id is neither a string nor an integer.
    """
    request_id = message.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        raise RpcError(INVALID_REQUEST, "A request's id must be a string or an integer.", status=400)
    return request_id


def _id(request_id: RequestId) -> bytes:
    return b"%d" % request_id if isinstance(request_id, int) else orjson.dumps(request_id)
