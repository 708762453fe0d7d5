"""An API may say back what it was sent, in a debugging answer or an error: our credentials stay ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from toolyard.egress import Response

_SECRET_NAME = re.compile(r"auth|cookie|credential|key|pass|secret|session|sign|token", re.IGNORECASE)
_SHORTEST = 8
"""A shorter value may stand in any answer by chance."""
_HIDDEN = b"***"


def secrets_in(headers: Mapping[str, str]) -> tuple[bytes, ...]:
    """The values of headers that carry credentials, whole and without their scheme, longest first."""
    values = [value for name, value in headers.items() if _SECRET_NAME.search(name)]
    found = {part for value in values for part in (value, value.rpartition(" ")[2]) if len(part) >= _SHORTEST}
    return tuple(value.encode() for value in sorted(found, key=len, reverse=True))


def without_echoes(answer: Response, secrets: Iterable[bytes]) -> Response:
    """The answer with `***` where it repeats a secret."""
    told = [secret for secret in secrets if secret in answer.body]
    body = answer.body
    for secret in told:
        body = body.replace(secret, _HIDDEN)
    return replace(answer, body=body) if told else answer
