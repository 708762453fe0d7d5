"""Whether a tool definition can be listed at all. A bad one hides itself, never the list it came in."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from typing import cast

from toolyard.core.json import dumps
from toolyard.core.names import LONGEST_TOOL_NAME
from toolyard.core.tool import Tool

_DIGEST_BYTES = 16
_REPLACED = frozenset({"name", "description"})
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that nobody can see or type: names holding them could pass for other names."""


def appearance_of(tool: Tool) -> str:
    """A digest of the definition as clients read it, without name and description: a view and an operator give those.

    Shared components count as a whole: a change to one of them changes every tool that refers to any.

    Raises:
        ValueError: the definition cannot be written as JSON.
        RecursionError: it is nested beyond reason.
    """
    schema = tool.input_schema
    wire = tool.wire and {key: value for key, value in tool.wire.items() if key not in _REPLACED}
    told = [tool.title, schema.root, schema.refs, tool.output_schema, tool.annotations.to_wire(), wire]
    digest = hashlib.blake2b(dumps(told), digest_size=_DIGEST_BYTES)
    if schema.components is not None and schema.refs:
        digest.update(schema.components.digest)
    return digest.hexdigest()


def fault_of(tool: Tool, namespace: str) -> str | None:
    """Why this tool cannot be listed, or None. What comes from providers may break the declared types."""
    return (
        _fault_of_name(tool.name)
        or (None if tool.namespace == namespace else f"It belongs to '{tool.namespace}', not to '{namespace}'.")
        or _fault_of_description(tool.description)
        or _fault_of_schema(tool.input_schema.root)
        or (None if _is_schema(tool.output_schema) else "Its output schema is not a JSON object.")
    )


def printable(name: object, *, longest: int = 80) -> str:
    """A name as it may be shown in a message: escaped and cut."""
    text = name if isinstance(name, str) else repr(name)
    shown = "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}" for character in text[:longest]
    )
    return f"{shown}…" if len(text) > longest else shown


def _fault_of_name(name: object) -> str | None:
    if not isinstance(name, str):
        return "Its name is not text."
    if not name.strip():
        return "It has no name."
    if len(name) > LONGEST_TOOL_NAME:
        return f"Its name has {len(name)} characters; at most {LONGEST_TOOL_NAME} are listed."
    if name != name.strip():
        return "Its name begins or ends with a blank."
    if name.isascii() and name.isprintable():
        return None
    unseen = next((character for character in name if unicodedata.category(character) in _UNSEEN), None)
    return None if unseen is None else f"Its name holds the invisible character U+{ord(unseen):04X}."


def _fault_of_description(description: object) -> str | None:
    if not isinstance(description, str):
        return "Its description is not text."
    try:
        description.encode()
    except UnicodeEncodeError:
        return "Its description holds half of a surrogate pair."
    return None


def _fault_of_schema(root: object) -> str | None:
    if not isinstance(root, Mapping):
        return "Its input schema is not a JSON object."
    schema = cast("Mapping[str, object]", root)
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return f"Its input schema is of type {printable(cast('object', kind))}, and arguments are always an object."
    if not isinstance(schema.get("properties", {}), Mapping):
        return "Its input schema's 'properties' is not a JSON object."
    return None


def _is_schema(value: object) -> bool:
    return value is None or isinstance(value, Mapping)
