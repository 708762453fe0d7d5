"""What a function returned, as a tool's result."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from toolyard.core.call import ToolResult
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"<svg", "image/svg+xml"),
)


@dataclass(frozen=True, slots=True)
class Image:
    """Return it from a tool to show a picture. The media type is recognised for PNG, JPEG, GIF, WebP and SVG."""

    data: bytes
    media_type: str | None = None

    def to_block(self) -> JsonObject:
        """
        Raises:
            CallError: the media type was not given and is not recognised.
        """
        media_type = self.media_type or _recognise(self.data)
        if media_type is None:
            raise CallError(
                ErrorCode.UPSTREAM,
                "The tool returned an image of unknown type.",
                suggestion="Its author should give Image(data, media_type).",
            )
        return {"type": "image", "data": b64encode(self.data).decode(), "mimeType": media_type}


def to_result(value: object, name: str) -> ToolResult:
    """
    Strings become text; images (alone or in a list) image blocks; anything else JSON, structured when it is an object.

    Raises:
        CallError: the value cannot be written as JSON; names its type.
    """
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult(content=())
    if isinstance(value, str):
        return ToolResult.of_text(value)
    if isinstance(value, Image):
        return ToolResult(content=(value.to_block(),))
    if isinstance(value, list | tuple) and any(isinstance(item, Image) for item in cast("Sequence[object]", value)):
        items = cast("Sequence[object]", value)
        return ToolResult(content=tuple(block for item in items for block in to_result(item, name).content))
    return ToolResult.of_value(_json(cast("object", value), name))


def _json(value: object, name: str) -> JsonValue:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return cast("JsonValue", to_jsonable_python(value, bytes_mode="base64"))
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise CallError(
            ErrorCode.UPSTREAM,
            f"The tool {name!r} returned a {type(value).__name__} that cannot be written as JSON.",
            suggestion="Its author should return text, JSON-like values, dataclasses or pydantic models.",
        ) from error


def _recognise(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for start, media_type in _SIGNATURES if data.startswith(start)), None)
