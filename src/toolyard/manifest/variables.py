"""`${VAR}` references in texts that may hold them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolyard.core.names import did_you_mean

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ATTEMPT = re.compile(r"\$\{[^}]*\}?")


class Unresolved(Exception):
    """`message` and `suggestion` name the variable and never a value."""

    def __init__(self, message: str, suggestion: str | None) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion


def has_reference(text: str) -> bool:
    return "${" in text


def resolve(text: str, env: Mapping[str, str]) -> str:
    """
    Raises:
        Unresolved: a reference is malformed, or its variable is not set or empty.
    """
    for attempt in _ATTEMPT.findall(text):
        if not REFERENCE.fullmatch(attempt):
            raise Unresolved("a reference is written ${NAME}, with letters, digits and '_' only.", None)
    for name in REFERENCE.findall(text):
        if not env.get(name):
            state = "not set" if name not in env else "empty"
            hint = did_you_mean(name, env) if name not in env else None
            raise Unresolved(f"the environment variable {name} is {state}.", hint or f"Set {name} before starting.")
    return REFERENCE.sub(lambda match: env[match.group(1)], text)
