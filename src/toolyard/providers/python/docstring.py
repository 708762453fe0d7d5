"""Reads a docstring: what the function does, and a text per argument (Google, NumPy and Sphinx styles)."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

_GOOGLE_ARGUMENTS = re.compile(r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):")
_GOOGLE_OTHER = re.compile(
    r"(?:Returns?|Yields?|Raises|Examples?|Notes?|Attributes|See Also|References|Todo|Warnings?|Warns):"
)
_GOOGLE_ITEM = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)")
_NUMPY_ITEM = re.compile(r"\*{0,2}(?P<names>\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")
_SPHINX_ITEM = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(?P<name>\w+)\s*:\s*(?P<text>.*)")
_SPHINX_OTHER = re.compile(r":\w+(?:\s[^:]*)?:")


@dataclass(frozen=True, slots=True)
class Docstring:
    description: str
    arguments: dict[str, str]


def parse(text: str | None) -> Docstring:
    """Sections that describe neither the function nor its arguments (Returns, Raises, ...) are left out."""
    description: list[str] = []
    arguments: dict[str, list[str]] = {}
    section = "description"
    current: list[str] | None = None
    item_indent: int | None = None
    lines = inspect.cleandoc(text or "").splitlines()
    index = 0
    while index < len(lines):
        line = lines[index].rstrip()
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        underlined = (
            index + 1 < len(lines) and bool(re.fullmatch(r"-{3,}", lines[index + 1].strip())) and bool(stripped)
        )
        if underlined:
            section = "numpy" if stripped in ("Parameters", "Other Parameters") else "other"
            current, item_indent = None, None
            index += 2
            continue
        if indent == 0 and (_GOOGLE_ARGUMENTS.fullmatch(stripped) or _GOOGLE_OTHER.fullmatch(stripped)):
            section = "google" if _GOOGLE_ARGUMENTS.fullmatch(stripped) else "other"
            current, item_indent = None, None
        elif sphinx := _SPHINX_ITEM.fullmatch(stripped):
            section, current, item_indent = "sphinx", [sphinx["text"]], indent
            arguments[sphinx["name"]] = current
        elif _SPHINX_OTHER.match(stripped) and section in ("description", "sphinx"):
            section, current = "other", None
        elif section == "description":
            description.append(line)
        elif section in ("google", "numpy", "sphinx") and stripped:
            item_indent = indent if item_indent is None else item_indent
            names = _item(section, stripped) if indent <= item_indent else None
            if names is not None:
                current = [names[1]]
                arguments.update(dict.fromkeys(names[0], current))
            elif current is not None and indent > item_indent:
                current.append(stripped)
            elif section == "google" and indent == 0:
                section = "description"
                description.append(line)
        index += 1
    return Docstring(
        description="\n".join(description).strip(),
        arguments={name: " ".join(part for part in parts if part).strip() for name, parts in arguments.items()},
    )


def _item(section: str, line: str) -> tuple[list[str], str] | None:
    if section == "google" and (match := _GOOGLE_ITEM.fullmatch(line)):
        return [match["name"]], match["text"]
    if section == "numpy" and (match := _NUMPY_ITEM.fullmatch(line)):
        return [name.strip() for name in match["names"].split(",")], ""
    return None
