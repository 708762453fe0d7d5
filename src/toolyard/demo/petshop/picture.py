"""A pet's picture as PNG, drawn here: a face whose colours follow from the pet's number."""

from __future__ import annotations

import struct
import zlib
from colorsys import hls_to_rgb

SIZE = 96


def picture_of(number: int) -> bytes:
    """A PNG of 96 x 96 pixels; the same number always gives the same picture."""
    hue = (number * 0.381966) % 1.0
    background = _colour(hue, 0.86)
    fur = _colour((hue + 0.5) % 1.0, 0.45)
    rows = bytearray()
    for y in range(SIZE):
        rows.append(0)
        for x in range(SIZE):
            rows += _pixel(x, y, background, fur)
    header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _pixel(x: int, y: int, background: bytes, fur: bytes) -> bytes:
    if any(_within(x, y, eye, 42, 5) for eye in (36, 60)) or _within(x, y, 48, 58, 4):
        return b"\x20\x20\x28"
    if _within(x, y, 48, 52, 30) or any(_within(x, y, ear, 26, 13) for ear in (26, 70)):
        return fur
    return background


def _within(x: int, y: int, centre_x: int, centre_y: int, radius: int) -> bool:
    return (x - centre_x) ** 2 + (y - centre_y) ** 2 <= radius**2


def _colour(hue: float, lightness: float) -> bytes:
    return bytes(round(part * 255) for part in hls_to_rgb(hue, lightness, 0.55))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
