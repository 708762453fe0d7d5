"""Base64 images in a result become blobs; the model sees a placeholder and the client gets a URL."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolyard.core.json import JsonObject

PLACEHOLDER = "[image displayed above]"

_MAGIC = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
_IN_TEXT = re.compile(
    r"data:(?P<type>image/[\w.+-]+);base64,(?P<uri>[A-Za-z0-9+/]{16,}={0,2})"
    rf"|(?<![A-Za-z0-9+/])(?P<bare>(?:{'|'.join(_MAGIC)})[A-Za-z0-9+/]{{200,}}={{0,2}})"
)
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/svg+xml": "svg"}


@dataclass(frozen=True, slots=True)
class Image:
    """An image found in a result. `name` is its blob's, `url` where a client reads it."""

    name: str
    url: str
    mime_type: str
    data: bytes

    def to_wire(self) -> dict[str, str | int]:
        return {"url": self.url, "mimeType": self.mime_type, "bytes": len(self.data)}


@dataclass(slots=True)
class ImageCollector:
    """Gathers the images of one result. `prefix` is the blob folder and call id, `base_url` where /blobs is served."""

    prefix: str
    base_url: str
    found: list[Image] = field(default_factory=list[Image])

    def add(self, encoded: str, mime_type: str) -> Image | None:
        """None when it is not base64 after all."""
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return None
        name = f"{self.prefix}-{len(self.found)}.{_ENDINGS.get(mime_type, 'bin')}"
        image = Image(name, f"{self.base_url}/blobs/{name}", mime_type, data)
        self.found.append(image)
        return image

    def block(self, block: JsonObject) -> Image | None:
        """The image of an MCP image block."""
        encoded, mime_type = block.get("data"), block.get("mimeType")
        return self.add(encoded, mime_type) if isinstance(encoded, str) and isinstance(mime_type, str) else None

    def replace_in(self, text: str) -> str:
        """Text with each embedded image replaced by the placeholder."""
        if len(text) < 32:
            return text
        return _IN_TEXT.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        bare = match["bare"]
        mime_type = match["type"] or next(kind for magic, kind in _MAGIC.items() if bare.startswith(magic))
        return PLACEHOLDER if self.add(match["uri"] or bare, mime_type) else match[0]


def may_hold_images(encoded: bytes) -> bool:
    """A cheap look before the careful one."""
    return b";base64," in encoded or (len(encoded) > 200 and any(magic.encode() in encoded for magic in _MAGIC))


def is_image(block: Mapping[str, object]) -> bool:
    return block.get("type") == "image"
