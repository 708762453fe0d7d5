"""Defects put into a node on purpose, to see that the checker notices. None of them is in `src`."""

from __future__ import annotations

from collections.abc import Callable

MUTANTS: dict[str, Callable[[], None]] = {}


def apply(name: str) -> None:
    """Into this process, for good."""
    MUTANTS[name]()
