"""Identifiers: a prefix that says of what, and 128 random bits."""

from __future__ import annotations

import os

_BYTES = 16
_FETCHED_AT_ONCE = 256


class _Entropy:
    """Random bytes of the system, fetched for many ids at once: each system call gives up the interpreter lock.

    Any thread may take: `list.pop` hands each piece out once.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def take(self) -> bytes:
        while True:
            try:
                return self._pieces.pop()
            except IndexError:
                fresh = os.urandom(_FETCHED_AT_ONCE * _BYTES)
                self._pieces.extend(fresh[start : start + _BYTES] for start in range(0, len(fresh), _BYTES))

    def forget(self) -> None:
        self._pieces = []


_entropy = _Entropy()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_entropy.forget)


def new_id(prefix: str) -> str:
    """`call_9f86d081...`: the prefix, `_`, and 32 hexadecimal digits (128 random bits)."""
    return f"{prefix}_{_entropy.take().hex()}"
