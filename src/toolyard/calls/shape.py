"""Step 6: a result fit for its reader: cleaned, cut to size, images out of the way. The whole stays readable by id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import orjson

from toolyard.calls.cleaning import clean, map_strings, preview
from toolyard.calls.images import PLACEHOLDER, Image, ImageCollector, is_image, may_hold_images
from toolyard.core.call import Origin, ToolResult
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.tool import Tool

_Replace = Callable[[str], str]

MOST_CHARACTERS = 10_000
_HEAD = 7_000
_TAIL = 2_500
IMAGES_KEY = "toolyard/images"


@dataclass(frozen=True, slots=True)
class Shaped:
    """`encoded` is the whole result as JSON, as the tool gave it; `result` is what the caller reads."""

    result: ToolResult
    encoded: bytes
    preview: str
    images: tuple[Image, ...]
    tokens: int


def shape(
    result: ToolResult, tool: Tool, *, call_id: str, origin: Origin, collector: Callable[[], ImageCollector]
) -> Shaped:
    """`collector` is asked for only when there is something to look through."""
    encoded = encode_result(result)
    if tool.offer or _is_plain(encoded):
        text = result.text
        return Shaped(result, encoded, preview(text), (), len(encoded) // 4)
    blobs = collector()
    shaped = _clean(result, encoded)
    if may_hold_images(encoded) or any(is_image(block) for block in shaped.content):
        shaped = _move_images(shaped, blobs, keep_blocks=origin is Origin.MCP)
    shaped = _cut(shaped, tool, call_id, origin)
    if blobs.found:
        shaped = replace(shaped, meta={**(shaped.meta or {}), IMAGES_KEY: [image.to_wire() for image in blobs.found]})
    text = shaped.text
    return Shaped(shaped, encoded, preview(text), tuple(blobs.found), len(text) // 4)


def encode_result(result: ToolResult) -> bytes:
    """The result as an MCP `CallToolResult` in JSON."""
    wire: dict[str, object] = {"content": result.content}
    if result.has_structured:
        wire["structuredContent"] = result.structured
    if result.is_error:
        wire["isError"] = True
    if result.meta:
        wire["_meta"] = result.meta
    return dumps(wire)


def decode_result(encoded: bytes | str) -> ToolResult:
    """What `encode_result` wrote."""
    wire = orjson.loads(encoded)
    return ToolResult(
        content=tuple(wire["content"]),
        structured=wire.get("structuredContent"),
        has_structured="structuredContent" in wire,
        is_error=wire.get("isError", False),
        meta=wire.get("_meta"),
    )


def _is_plain(encoded: bytes) -> bool:
    """Short ASCII without escapes or images: nothing to do, and by far the most common case."""
    return (
        len(encoded) <= MOST_CHARACTERS
        and encoded.isascii()
        and b"\\u" not in encoded
        and b'"image"' not in encoded
        and b"\x7f" not in encoded
        and not may_hold_images(encoded)
    )


def _clean(result: ToolResult, encoded: bytes) -> ToolResult:
    if encoded.isascii() and b"\\u" not in encoded and b"\x7f" not in encoded:
        return result
    content = tuple(_clean_block(block) for block in result.content)
    return replace(result, content=content, structured=map_strings(result.structured, clean))


def _clean_block(block: JsonObject) -> JsonObject:
    data = block.get("data")
    cleaned = map_strings({key: value for key, value in block.items() if key != "data"}, clean)
    assert isinstance(cleaned, dict)  # noqa: S101 - map_strings keeps the shape
    return cleaned if data is None else {**cleaned, "data": data}


def _move_images(result: ToolResult, blobs: ImageCollector, *, keep_blocks: bool) -> ToolResult:
    content: list[JsonObject] = []
    for block in result.content:
        if is_image(block):
            image = blobs.block(block)
            content += [block] if keep_blocks or image is None else _placeholder(image)
        elif isinstance(text := block.get("text"), str):
            content.append({**block, "text": blobs.replace_in(text)})
        else:
            content.append(block)
    structured = map_strings(result.structured, _replacer_of_known(blobs))
    return replace(result, content=tuple(content), structured=structured)


def _replacer_of_known(blobs: ImageCollector) -> _Replace:
    """Structured content usually repeats the text: do not store its images twice."""
    seen = {image.data: image for image in blobs.found}

    def replace_in(text: str) -> str:
        before = len(blobs.found)
        changed = blobs.replace_in(text)
        blobs.found[before:] = [image for image in blobs.found[before:] if image.data not in seen]
        return changed

    return replace_in


def _placeholder(image: Image) -> list[JsonObject]:
    return [
        {"type": "text", "text": PLACEHOLDER},
        {"type": "resource_link", "uri": image.url, "name": "image", "mimeType": image.mime_type},
    ]


def _cut(result: ToolResult, tool: Tool, call_id: str, origin: Origin) -> ToolResult:
    text = result.text
    if len(text) > MOST_CHARACTERS:
        others = tuple(block for block in result.content if block.get("type") != "text")
        result = replace(result, content=({"type": "text", "text": cut(text, call_id)}, *others))
    if result.has_structured and len(dumps(result.structured)) > MOST_CHARACTERS:
        contract = tool.output_schema is not None and origin is Origin.MCP
        if not contract:
            result = replace(result, structured=None, has_structured=False)
    content = tuple(_cut_resource(block, call_id) for block in result.content)
    if origin is not Origin.MCP:  # an MCP client knows what to do with binary content; the others only read text
        content = tuple(_without_binary(block, call_id) for block in content)
    return replace(result, content=content)


def cut(text: str, call_id: str) -> str:
    """Head and tail of a long text, with a marker that names the full size and how to read the rest."""
    left_out = len(text) - _HEAD - _TAIL
    marker = (
        f"\n\n[... {left_out:,} of {len(text):,} characters left out. The whole result of {call_id} can be read in "
        f"parts with toolyard:get_call_result, or at /v1/calls/{call_id}/result ...]\n\n"
    )
    return text[:_HEAD] + marker + text[-_TAIL:]


def _cut_resource(block: JsonObject, call_id: str) -> JsonObject:
    resource = block.get("resource")
    if block.get("type") != "resource" or not isinstance(resource, dict):
        return block
    text = resource.get("text")
    if not isinstance(text, str) or len(text) <= MOST_CHARACTERS:
        return block
    return {**block, "resource": {**resource, "text": cut(text, call_id)}}


def _without_binary(block: JsonObject, call_id: str) -> JsonObject:
    """Long base64 in an embedded resource or a sound, replaced by where to get it."""
    data, resource = block.get("data"), block.get("resource")
    if block.get("type") == "audio" and isinstance(data, str) and len(data) > MOST_CHARACTERS:
        return {"type": "text", "text": _binary_marker(data, block.get("mimeType"), call_id)}
    if not isinstance(resource, dict):
        return block
    blob = resource.get("blob")
    if not isinstance(blob, str) or len(blob) <= MOST_CHARACTERS:
        return block
    kept = {key: value for key, value in resource.items() if key != "blob"}
    return {**block, "resource": {**kept, "text": _binary_marker(blob, resource.get("mimeType"), call_id)}}


def _binary_marker(data: str, mime_type: JsonValue, call_id: str) -> str:
    kind = mime_type if isinstance(mime_type, str) else "binary data"
    return (
        f"[{len(data) * 3 // 4:,} bytes of {kind} left out. They are in the whole result: /v1/calls/{call_id}/result]"
    )


def value_of(result: ToolResult) -> JsonValue:
    """What a program reads: the structured value, else the text."""
    return result.structured if result.has_structured else result.text
