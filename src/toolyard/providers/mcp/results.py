"""The result of `tools/call`, kept as it came."""

from __future__ import annotations

from typing import cast

from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue


def to_result(result: JsonObject) -> ToolResult:
    """
    Raises:
        CallError: it is no tool result at all.
    """
    content = result.get("content", ())
    structured = "structuredContent" in result
    if not _are_blocks(content) or not (structured or "content" in result):
        raise CallError(ErrorCode.UPSTREAM, "The MCP server's answer is no tool result: it has no list of content.")
    meta = result.get("_meta")
    return ToolResult(
        content=tuple(cast("list[JsonObject]", content)),
        structured=result.get("structuredContent"),
        has_structured=structured,
        is_error=result.get("isError") is True,
        meta=meta if isinstance(meta, dict) else None,
    )


def _are_blocks(content: JsonValue) -> bool:
    return isinstance(content, list | tuple) and all(
        isinstance(block, dict) and isinstance(block.get("type"), str) for block in content
    )
