"""Text from tools is hostile until cleaned: control characters, terminal escapes and characters nobody can see go.

Kept on purpose: tab, line feed, carriage return, the joiners U+200C and U+200D (several scripts and emoji need them)
and the variation selectors U+FE00-FE0F. The record keeps the exact output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from toolyard.core.json import JsonValue

_UNSEEN = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # terminal control sequences
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # terminal titles and links
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # C0 and C1
    r"|[\u00ad\u061c\u180e\u200b\u200e\u200f\u2060-\u2064\ufeff\ufff9-\ufffb]"  # zero width
    r"|[\u202a-\u202e\u2066-\u206f]"  # direction overrides
    r"|[\U000e0000-\U000e007f\U000e0100-\U000e01ef]"  # tags and supplementary variation selectors
)


def clean(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub("", text)


def map_strings(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    """The same JSON with every string (keys too) passed through `change`."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        members = cast("Mapping[str, JsonValue]", value).items()
        return {change(key): map_strings(member, change) for key, member in members}
    if isinstance(value, Sequence):
        return [map_strings(item, change) for item in cast("Sequence[JsonValue]", value)]
    return value


def preview(text: str, *, longest: int = 200) -> str:
    """One line for people."""
    line = " ".join(text[: longest * 3].split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
