"""Where a form's content comes from: a JSON value, or what a browser posted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import orjson

from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.faces.console.forms.tree import Path, decode, is_variant

Pairs: TypeAlias = Sequence[tuple[str, str]]


class Absent:
    """No value at all, which is not null."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = Absent()
Maybe: TypeAlias = "JsonValue | Absent"


class Source(Protocol):
    @property
    def fresh(self) -> bool:
        """Nobody filled anything in yet: required fields may show their defaults."""
        ...

    def value(self, path: Path) -> Maybe:
        """The value behind this part, where there is one to compare with."""
        ...

    def raw(self, path: Path) -> str | None:
        """The JSON text of a part that is shown as JSON; None: show fields."""
        ...

    def text(self, path: Path, *, as_json: bool) -> str: ...
    def rows(self, path: Path, at_least: int) -> list[str]: ...
    def variant(self, path: Path, variants: Sequence[JsonObject], root: JsonObject) -> int | None: ...
    def more(self, path: Path, known: Sequence[str]) -> str | None: ...


def pretty(value: JsonValue) -> str:
    """Indented JSON for a person to edit; integers beyond 64 bits keep their digits."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        return json.dumps(value, indent=2, ensure_ascii=False)


class ValueSource:
    def __init__(self, value: Maybe) -> None:
        self._value = value

    @property
    def fresh(self) -> bool:
        return isinstance(self._value, Absent)

    def value(self, path: Path) -> Maybe:
        here: Maybe = self._value
        for step in path:
            if is_variant(step):
                continue
            if isinstance(here, Mapping):
                key = decode(step)
                here = here.get(key, ABSENT)
            elif isinstance(here, Sequence) and not isinstance(here, str) and step.isdecimal():
                here = here[int(step)] if int(step) < len(here) else ABSENT
            else:
                return ABSENT
        return here

    def raw(self, path: Path) -> str | None:
        return None

    def text(self, path: Path, *, as_json: bool) -> str:
        value = self.value(path)
        if isinstance(value, Absent) or (value is None and not as_json):
            return ""
        if as_json:
            return dumps(value).decode()
        return value if isinstance(value, str) and _survives_a_form(value) else ""

    def rows(self, path: Path, at_least: int) -> list[str]:
        value = self.value(path)
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [str(index) for index in range(len(value))]
        return [str(index) for index in range(at_least)] if isinstance(value, Absent) else []

    def variant(self, path: Path, variants: Sequence[JsonObject], root: JsonObject) -> int | None:
        value = self.value(path)
        if isinstance(value, Absent):
            return None
        return next((index for index, schema in enumerate(variants) if _fits(schema, root, value)), None)

    def more(self, path: Path, known: Sequence[str]) -> str | None:
        value = self.value(path)
        if not isinstance(value, Mapping):
            return None
        others = {key: item for key, item in value.items() if key not in known}
        return pretty(others) if others else None


def _survives_a_form(text: str) -> bool:
    """Browsers turn a lone carriage return into a line break, and no field can hold a NUL."""
    return "\r" not in text and "\0" not in text


def _fits(schema: JsonObject, root: JsonObject, value: JsonValue) -> bool:
    import jsonschema_rs

    shared = {key: root[key] for key in ("$defs", "definitions", "components") if key in root}
    try:
        return jsonschema_rs.is_valid({**shared, **schema}, value)
    except (ValueError, TypeError):  # the variant's own schema is broken, or the value too large an integer
        return False


class FormSource:
    """Names: `v` text, `json` JSON text, `row` one row, `pick` a variant, `more` other properties."""

    def __init__(self, pairs: Pairs) -> None:
        self._fields: dict[str, list[str]] = {}
        for name, text in pairs:
            self._fields.setdefault(name, []).append(text.replace("\r\n", "\n"))

    @property
    def fresh(self) -> bool:
        return False

    def _first(self, prefix: str, path: Path) -> str | None:
        found = self._fields.get(prefix + "".join(f"/{step}" for step in path))
        return found[0] if found else None

    def value(self, path: Path) -> Maybe:
        return ABSENT

    def raw(self, path: Path) -> str | None:
        return self._first("json", path)

    def text(self, path: Path, *, as_json: bool) -> str:
        return self._first("v", path) or ""

    def rows(self, path: Path, at_least: int) -> list[str]:
        numbers = self._fields.get("row" + "".join(f"/{step}" for step in path), [])
        return list(dict.fromkeys(number for number in numbers if number.isdecimal() and len(number) < 8))

    def variant(self, path: Path, variants: Sequence[JsonObject], root: JsonObject) -> int | None:
        picked = self._first("pick", path)
        return int(picked) if picked and picked.isdecimal() and int(picked) < len(variants) else None

    def more(self, path: Path, known: Sequence[str]) -> str | None:
        return self._first("more", path)


def edited(pairs: Pairs, operation: str) -> list[tuple[str, str]]:
    """The posted form after `add/<path>` or `remove/<path>/<row>`; any other operation changes nothing."""
    verb, _, tail = operation.partition("/")
    path = f"/{tail}"
    if verb == "add":
        numbers = [int(text) for name, text in pairs if name == f"row{path}" and text.isdecimal()]
        return [*pairs, (f"row{path}", str(max(numbers, default=-1) + 1))]
    if verb == "remove":
        parent, _, number = path.rpartition("/")
        return [pair for pair in pairs if pair != (f"row{parent}", number)]
    return list(pairs)
