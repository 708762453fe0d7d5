"""Identifiers: a prefix that says of what, and 128 random bits."""

from __future__ import annotations

import os

_BYTES = 16
_POOL = 256 * _BYTES


class _Entropy:
    """Random bytes of the system, fetched for many ids at once: each system call gives up the interpreter lock."""

    def __init__(self) -> None:
        self._pool = b""
        self._at = 0

    def take(self) -> bytes:
        if self._at >= len(self._pool):
            self._pool, self._at = os.urandom(_POOL), 0
        start, self._at = self._at, self._at + _BYTES
        return self._pool[start : self._at]

    def forget(self) -> None:
        self._pool, self._at = b"", 0


_entropy = _Entropy()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_entropy.forget)


def new_id(prefix: str) -> str:
    """`call_9f86d081...`: the prefix, `_`, and 32 hexadecimal digits (128 random bits)."""
    return f"{prefix}_{_entropy.take().hex()}"
