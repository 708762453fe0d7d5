"""A clock that is turned by hand."""

from __future__ import annotations


class HandClock:
    def __init__(self, at: float = 1_800_000_000.0) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    def pass_(self, seconds: float) -> None:
        self.at += seconds
