"""The webhook's signature: `t=<epoch seconds>,v1=<hex>`, HMAC-SHA256 over `<t>.<raw body>`.

The time is signed with the body, so that a recorded delivery cannot be replayed later.
"""

from __future__ import annotations

import hashlib
import hmac

from toolyard.core.errors import Unauthenticated

SIGNATURE_HEADER = "Toolyard-Signature"
TOLERANCE = 300.0
"""Seconds between signing and verifying."""


class BadSignature(Unauthenticated):
    """Not from the holder of the secret, or too old."""


def sign(secret: str, body: bytes, at: float) -> str:
    stamp = str(int(at))
    return f"t={stamp},v1={_digest(secret, stamp, body)}"


def verify(secret: str, header: str, body: bytes, now: float, *, tolerance: float = TOLERANCE) -> None:
    """For receivers: check the raw body as it came, before parsing it.

    Raises:
        BadSignature: malformed, of another secret or body, or signed more than `tolerance` seconds ago.
    """
    parts = {name: value for name, _, value in (part.strip().partition("=") for part in header.split(","))}
    stamp, given = parts.get("t", ""), parts.get("v1", "")
    if not (stamp.isascii() and stamp.isdecimal() and len(stamp) <= 12):
        raise BadSignature("The signature names no time.")
    if not hmac.compare_digest(_digest(secret, stamp, body).encode(), given.encode()):
        raise BadSignature("The signature does not fit this body and secret.")
    if abs(now - int(stamp)) > tolerance:
        raise BadSignature("The signature is too old.")


def _digest(secret: str, stamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
