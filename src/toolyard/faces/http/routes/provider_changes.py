"""Changing a provider without knowing its secrets, and without learning them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolyard.core.errors import BadInput

_HIDDEN = "***"
_SECRET_MAPS = ("headers", "env")
_DESTINATION = ("url", "hostname", "port", "base_url", "command", "cwd")


def merged(present: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`present` (with its secrets) and what a caller wants to change; null takes a field away.

    A kept secret never travels to a new destination: whoever may change a provider could otherwise send its
    credentials to an address of their own.

    Raises:
        BadInput: a change of id or kind, or a new destination without new secrets.
    """
    for fixed in ("id", "kind"):
        if change.get(fixed, present[fixed]) != present[fixed]:
            raise BadInput(
                f"The {fixed} of a provider cannot change.",
                where=f"/{fixed}",
                suggestion="Add a new provider and delete this one.",
            )
    wanted = {**present, **change}
    kept: list[str] = []
    for name in _SECRET_MAPS:
        wanted[name] = _with_kept_secrets(wanted.get(name), present.get(name), kept)
    if present.get("api_key") is not None and change.get("api_key", _HIDDEN) == _HIDDEN:
        wanted["api_key"] = present["api_key"]
        kept.append("api_key")
    moved = next((name for name in _DESTINATION if wanted.get(name) != present.get(name)), None)
    if moved is not None and kept:
        raise BadInput(
            f"The provider's secrets ({', '.join(kept)}) do not follow it to another address.",
            where=f"/{moved}",
            suggestion="Give them again in the same request, or take them away with null.",
        )
    return {name: value for name, value in wanted.items() if value is not None}


def _with_kept_secrets(wanted: object, present: object, kept: list[str]) -> object:
    """`***` stands for the value that is there; which were kept is noted."""
    if not isinstance(wanted, Mapping):
        return wanted
    before = cast("Mapping[str, str]", present or {})
    values = dict[str, object]()
    for name, value in cast("Mapping[str, object]", wanted).items():
        values[name] = before.get(name, value) if value == _HIDDEN else value
        if name in before and values[name] == before[name]:
            kept.append(name)
    return values
