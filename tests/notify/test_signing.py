"""The webhook's signature: who may have sent this body, and when."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.notify import BadSignature, sign, verify

NOW = 1_800_000_000.0
BODY = b'{"id": "apr_1"}'


def test_a_signature_is_the_time_and_an_hmac_over_time_and_raw_body() -> None:
    digest = hmac.new(b"secret", b"1800000000." + BODY, hashlib.sha256).hexdigest()
    assert sign("secret", BODY, NOW) == f"t=1800000000,v1={digest}"


@given(st.binary(), st.text(min_size=1))
def test_what_was_signed_is_verified(body: bytes, secret: str) -> None:
    verify(secret, sign(secret, body, NOW), body, NOW + 1)


@pytest.mark.parametrize(
    ("secret", "body", "now", "why"),
    [
        ("other", BODY, NOW, "does not fit"),
        ("secret", BODY + b" ", NOW, "does not fit"),
        ("secret", BODY, NOW + 301, "too old"),
        ("secret", BODY, NOW - 301, "too old"),
    ],
)
def test_another_secret_another_body_or_another_time_is_refused(secret: str, body: bytes, now: float, why: str) -> None:
    with pytest.raises(BadSignature, match=why):
        verify(secret, sign("secret", BODY, NOW), body, now)


def test_a_signature_with_a_newer_time_written_over_it_is_refused() -> None:
    forged = sign("secret", BODY, NOW).replace("t=1800000000", "t=1800009999")
    with pytest.raises(BadSignature, match="does not fit"):
        verify("secret", forged, BODY, NOW + 9999)


@given(st.text())
def test_any_other_text_is_refused(header: str) -> None:
    with pytest.raises(BadSignature):
        verify("secret", header, BODY, NOW)
