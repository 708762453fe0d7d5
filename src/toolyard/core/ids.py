"""Identifiers: a prefix that says of what, and 128 random bits."""

from __future__ import annotations

import secrets
from base64 import b32encode


def new_id(prefix: str) -> str:
    """`call_4hq3...`: the prefix, `_`, and 26 lower-case base32 characters (128 random bits)."""
    return f"{prefix}_{b32encode(secrets.token_bytes(16)).decode().rstrip('=').lower()}"
