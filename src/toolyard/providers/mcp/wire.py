"""The words of both eras on the wire: versions, headers, `_meta` keys, messages."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

import orjson

from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"

METHOD_NOT_FOUND = -32601
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
MODERN_ERRORS = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})

KEY_KEY = "toolyard/key"
TASKS = "io.modelcontextprotocol/tasks"
"""The extension by which an upstream may answer a call with a task."""

LISTS_CHANGED = frozenset(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))
RESOURCE_UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
PROGRESS = "notifications/progress"
LOG = "notifications/message"

MOST_BYTES = 10 * 1024 * 1024
"""Of one answer."""

Message: TypeAlias = JsonObject

_HEADER_SAFE = re.compile(r"[\x20-\x7E]*")
_SENTINEL = re.compile(r"=\?base64\?.*\?=")


@cache
def client_info() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return {"name": "toolyard", "version": version("toolyard")}
    except PackageNotFoundError:
        return {"name": "toolyard", "version": "0"}


@cache
def modern_meta() -> dict[str, JsonValue]:
    """What every modern request carries: that we know tasks. What its own caller can be asked comes with the call."""
    return {VERSION_KEY: MODERN, CLIENT_INFO_KEY: client_info(), CAPABILITIES_KEY: {"extensions": {TASKS: {}}}}


@cache
def modern_meta_json() -> orjson.Fragment:
    return orjson.Fragment(orjson.dumps(modern_meta()))


def request(request_id: int, method: str, params: Mapping[str, JsonValue], meta: JsonObject, *, modern: bool) -> bytes:
    """One JSON-RPC request. `meta` is what this call adds to `_meta` (progress token, trace).

    Raises:
        CallError: arguments nested without end.
    """
    body: dict[str, object] = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if modern:
        body["params"] = {**params, "_meta": {**modern_meta(), **meta} if meta else modern_meta_json()}
    elif meta:
        body["params"] = {**params, "_meta": meta}
    elif params:
        body["params"] = params
    try:
        return orjson.dumps(body)
    except TypeError:
        # orjson refuses integers beyond 64 bits, lone surrogates, and more than 254 levels.
        whole = {**params, "_meta": {**modern_meta(), **meta}} if modern else {**params, "_meta": meta}
        return _dumps_anything({"jsonrpc": "2.0", "id": request_id, "method": method, "params": whole})


def _dumps_anything(body: JsonObject) -> bytes:
    import json

    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise CallError(ErrorCode.INVALID_ARGUMENTS, "The arguments are nested too deeply to be sent.") from None


def notification(method: str, params: JsonObject | None = None) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})


def reply_to(message: Message) -> bytes:
    """Our answer to an upstream's own request: pings are answered, the rest is declined."""
    if message.get("method") == "ping":
        return orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}})
    error = {"code": METHOD_NOT_FOUND, "message": f"{message.get('method')} is not supported by this client"}
    return orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error})


def header_value(text: str) -> str:
    """Verbatim when it survives an HTTP header, else in the `=?base64?...?=` form of the specification."""
    if _HEADER_SAFE.fullmatch(text) and text == text.strip() and not _SENTINEL.fullmatch(text):
        return text
    return f"=?base64?{b64encode(text.encode(errors='replace')).decode()}?="
