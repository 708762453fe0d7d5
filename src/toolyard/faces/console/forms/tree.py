"""The tree of fields that a template draws."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

Path: TypeAlias = tuple[str, ...]
"""Encoded steps: JSON pointer escapes for names, row numbers for arrays, `~oN` for the variant of a choice."""

Control = Literal["text", "long", "secret", "date", "number", "select"]


def encode(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def decode(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def is_variant(step: str) -> bool:
    return step.startswith("~o")


@dataclass(frozen=True, slots=True)
class Spot:
    """What every field has, whatever it is."""

    path: Path
    label: str
    required: bool
    hint: str
    """The schema's description: hostile text, escaped by the template."""
    facts: tuple[str, ...]
    """Short words about what fits: `integer`, `1 to 100`, `default 20`."""

    @property
    def name(self) -> str:
        """The tail of every form name: a JSON pointer of encoded steps."""
        return "".join(f"/{step}" for step in self.path)

    @property
    def id(self) -> str:
        """Fit for `id`, `for` and a selector, whatever the property is called."""
        return "f-" + hashlib.sha256(self.name.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Leaf:
    spot: Spot
    control: Control
    kind: Literal["string", "json"]
    """`json`: the text is JSON (a number, or a select's option); `string`: the text is the value."""
    text: str
    options: tuple[Option, ...] = ()
    nullable: bool = False
    integer: bool = False
    placeholder: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """A part that is edited as JSON. `why` says so to the reader."""

    spot: Spot
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Group:
    spot: Spot
    children: tuple[Node, ...]
    keys: tuple[str, ...]
    """The property name of each child."""
    more: str | None = None
    """Properties that the schema does not name, as one JSON object; None: not offered."""


@dataclass(frozen=True, slots=True)
class Rows:
    spot: Spot
    rows: tuple[Node, ...]
    item_word: str = "item"


@dataclass(frozen=True, slots=True)
class Choice:
    spot: Spot
    options: tuple[str, ...]
    selected: int | None
    child: Node | None
    nullable: bool = False


Node: TypeAlias = Leaf | Raw | Group | Rows | Choice


def posted_pairs(node: Node) -> list[tuple[str, str]]:
    """What a browser would post for this tree, untouched, in document order."""
    pairs: list[tuple[str, str]] = []
    _collect(node, pairs)
    return pairs


def _collect(node: Node, pairs: list[tuple[str, str]]) -> None:
    name = node.spot.name
    match node:
        case Leaf():
            pairs.append((f"v{name}", node.text.replace("\n", "\r\n")))
        case Raw():
            pairs.append((f"json{name}", node.text.replace("\n", "\r\n")))
        case Group():
            for child in node.children:
                _collect(child, pairs)
            if node.more is not None:
                pairs.append((f"more{name}", node.more.replace("\n", "\r\n")))
        case Rows():
            for row in node.rows:
                pairs.append((f"row{name}", row.spot.path[-1]))
                _collect(row, pairs)
        case Choice():
            pairs.append((f"pick{name}", "" if node.selected is None else str(node.selected)))
            if node.child is not None:
                _collect(node.child, pairs)
