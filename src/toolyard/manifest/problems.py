"""What is wrong with an input, collected so that several mistakes are told at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Field: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    place: Field
    message: str
    suggestion: str | None = None
    line: int | None = None
    """Where the input has lines and the place alone does not tell."""
    earlier: Field | None = None
    """The place this one clashes with."""


class Problems:
    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, problem: Problem) -> None:
        self.found.append(problem)

    def __bool__(self) -> bool:
        return bool(self.found)


def field_name(place: Field) -> str:
    """`providers[0].port`; the whole input is `(top level)`."""
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    return name or "(top level)"
