"""JSON values, canonical JSON (RFC 8785) and hashes over it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

import orjson

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = Mapping[str, JsonValue]

_Put: TypeAlias = Callable[[str], object]

_FIRST_POWER_WITH_EXPONENT, _LAST_POWER_WITH_EXPONENT = 21, -7
"""ECMAScript writes 1e+21 and 1e-7, and everything between without an exponent; Python begins at 1e+16 and 1e-05."""


def dumps(value: object) -> bytes:
    """Compact JSON, not canonical. NaN becomes null; integers beyond 64 bits are refused by orjson, so fall back."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return canonical(cast("JsonValue", value))


def canonical(value: JsonValue) -> bytes:
    """RFC 8785 bytes: keys in UTF-16 order, ECMAScript numbers, minimal escapes.

    Raises:
        ValueError: NaN, an infinity, a lone surrogate, or a key that is no string.
    """
    parts: list[str] = []
    _write(value, parts.append)
    return "".join(parts).encode()


def sha256(value: JsonValue) -> str:
    """Hex SHA-256 over the canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _write(value: object, put: _Put) -> None:
    if value is None or value is True or value is False:
        put("null" if value is None else "true" if value else "false")
    elif isinstance(value, str):
        put(_string(value))
    elif isinstance(value, int | float):
        put(_number(value))
    elif isinstance(value, Mapping):
        _write_object(cast("Mapping[object, object]", value), put)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        _write_array(cast("Sequence[object]", value), put)
    else:
        raise ValueError(f"{type(value).__name__} is no JSON value")


def _write_object(value: Mapping[object, object], put: _Put) -> None:
    for key in value:
        if not isinstance(key, str):
            raise ValueError(f"object key {key!r} is no string")
    keys = sorted(cast("Mapping[str, object]", value), key=lambda k: k.encode("utf-16-be", "surrogatepass"))
    put("{")
    for index, key in enumerate(keys):
        put(f"{',' if index else ''}{_string(key)}:")
        _write(value[key], put)
    put("}")


def _write_array(value: Sequence[object], put: _Put) -> None:
    put("[")
    for index, item in enumerate(value):
        if index:
            put(",")
        _write(item, put)
    put("]")


def _string(value: str) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise ValueError("a lone surrogate cannot be written as JSON") from error


def _number(value: int | float) -> str:
    """ECMAScript Number::toString (RFC 8785, 3.2.2.3); integers beyond 2**53 keep their digits (decision 002)."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        raise ValueError("NaN and infinities are no JSON numbers")
    if not value:
        return "0"
    mantissa, _, exponent = repr(value).partition("e")
    mantissa = mantissa.removesuffix(".0")
    if not exponent:
        return mantissa
    power = int(exponent)
    sign = "-" if value < 0 else ""
    digits = mantissa.lstrip("-").replace(".", "")
    if 0 < power < _FIRST_POWER_WITH_EXPONENT:
        return f"{sign}{digits.ljust(power + 1, '0')}"
    if _LAST_POWER_WITH_EXPONENT < power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    return f"{mantissa}e{power:+d}"
