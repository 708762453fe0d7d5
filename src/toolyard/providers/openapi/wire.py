"""Values on the wire: one small function per parameter style of OpenAPI 3.x and collectionFormat of 2.0.

Everything is percent-encoded here and goes out byte for byte, so delimiters of a style stay literal and a value can
never become a delimiter. `null` and an empty list leave a parameter out; an empty string stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias
from urllib.parse import quote

from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.providers.openapi.model import Argument

Encode: TypeAlias = Callable[[str], str]

_RESERVED = ":/?#[]@!$&'()*+,;="
_KEPT_IN_QUERY = "".join(character for character in _RESERVED if character not in "#[]&+")


def encode(text: str) -> str:
    """Everything but `A-Za-z0-9-._~` percent-encoded."""
    return quote(text, safe="")


def encode_reserved(text: str) -> str:
    """`allowReserved`: reserved characters stay, but for those that would end the value or the query."""
    return quote(text, safe=_KEPT_IN_QUERY)


def as_text(value: JsonValue) -> str:
    """A primitive as the wire has it: `true`, integers without `.0`, no exponents; anything nested as JSON."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")
        case None:
            return "null"
        case _:
            return dumps(value).decode()


def items_of(value: JsonValue) -> list[str]:
    """The texts of a list; a single value is a list of one."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_text(item) for item in value if item is not None]
    return [] if value is None else [as_text(value)]


def pairs_of(value: JsonObject) -> list[tuple[str, str]]:
    return [(key, as_text(item)) for key, item in value.items() if item is not None]


def _flat(value: JsonValue, code: Encode, *, between: str, pair: str) -> str:
    """A list or object as one text: `blue,black`, `R,100,G,200`, `R=100,G=200`."""
    if isinstance(value, Mapping):
        return between.join(f"{code(key)}{pair}{code(item)}" for key, item in pairs_of(value))
    return between.join(code(item) for item in items_of(value))


# --- path


def in_path(argument: Argument, value: JsonValue) -> str:
    """The text that takes the place of `{name}`; empty when there is nothing to put there."""
    if argument.media_type:
        return encode(dumps(value).decode())
    match argument.style:
        case "label":
            text = _flat(value, encode, between="." if argument.explode else ",", pair="=" if argument.explode else ",")
            return f".{text}" if text else ""
        case "matrix":
            return _matrix(argument, value)
        case _:
            return _flat(value, encode, between=",", pair="=" if argument.explode else ",")


def _matrix(argument: Argument, value: JsonValue) -> str:
    name = encode(argument.name)
    if argument.explode and isinstance(value, Mapping):
        return "".join(f";{encode(key)}={encode(item)}" for key, item in pairs_of(value))
    if argument.explode:
        return "".join(f";{name}={encode(item)}" for item in items_of(value))
    text = _flat(value, encode, between=",", pair=",")
    return f";{name}={text}" if text else ""


# --- query, and form bodies, which differ in how a space is written


def in_query(argument: Argument, value: JsonValue) -> list[str]:
    """The `name=value` pieces of one parameter, encoded."""
    code = encode_reserved if argument.allow_reserved else encode
    name = encode(argument.name)
    if value is None:
        return []
    if argument.media_type:
        return [f"{name}={encode(dumps(value).decode() if 'json' in argument.media_type else as_text(value))}"]
    if argument.style == "deepObject":
        return [f"{encode(key)}={code(text)}" for key, text in deep(argument.name, value)]
    if isinstance(value, Mapping):
        return _object_in_query(argument, name, value, code)
    items = [code(text) for text in items_of(value)]
    if argument.explode:
        return [f"{name}={item}" for item in items]
    return [f"{name}={_BETWEEN.get(argument.style, ',').join(items)}"] if items else []


_BETWEEN: Mapping[str, str] = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}


def _object_in_query(argument: Argument, name: str, value: JsonObject, code: Encode) -> list[str]:
    if argument.explode:
        return [f"{encode(key)}={code(text)}" for key, text in pairs_of(value)]
    between = _BETWEEN.get(argument.style, ",")
    text = _flat(value, code, between=between, pair=between)
    return [f"{name}={text}"] if text else []


def deep(name: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    """deepObject: `f[a]=1`, `f[b][c]=2`, `f[l][0]=x`; the standard leaves nesting and lists open."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from deep(f"{name}[{key}]", item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, item in enumerate(value):
            yield from deep(f"{name}[{index}]", item)
    elif value is not None:
        yield name, as_text(value)


# --- header and cookie


def in_header(argument: Argument, value: JsonValue) -> str:
    """Not percent-encoded; control characters are refused by the caller."""
    if argument.media_type:
        return dumps(value).decode()
    return _flat(value, _as_it_is, between=",", pair="=" if argument.explode else ",")


def in_cookie(argument: Argument, value: JsonValue) -> list[tuple[str, str]]:
    """The cookies of one parameter; exploded lists and objects make several."""
    if isinstance(value, Mapping) and argument.explode and not argument.media_type:
        return [(key, encode_cookie(text)) for key, text in pairs_of(value)]
    if isinstance(value, Sequence) and not isinstance(value, str) and argument.explode and not argument.media_type:
        return [(argument.name, encode_cookie(text)) for text in items_of(value)]
    if value is None or (isinstance(value, Mapping | list) and not value):
        return []
    if argument.media_type:
        return [(argument.name, encode_cookie(dumps(value).decode()))]
    return [(argument.name, _flat(value, encode_cookie, between=",", pair=","))]


_COOKIE_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in ';,"\\%')


def encode_cookie(text: str) -> str:
    """`1;evil=2` must not become a second cookie."""
    return quote(text, safe=_COOKIE_SAFE)


def _as_it_is(text: str) -> str:
    return text
