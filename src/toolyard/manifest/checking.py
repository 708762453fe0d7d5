"""Plain values against the types of `models`, every mistake told with place, expectation and value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec import inspect

from toolyard.core.names import did_you_mean
from toolyard.manifest.models import Form
from toolyard.manifest.problems import Field, Problem, Problems
from toolyard.manifest.secret import Secret
from toolyard.manifest.texts import Misread, Reading, read_text

_FORM = "form"


class Checker:
    """One pass over one input. `check` returns the value with texts read; it means something only without problems."""

    def __init__(self, problems: Problems, reading: Reading) -> None:
        self._problems = problems
        self._reading = reading
        self._by_type: Mapping[type[inspect.Type], Callable[[Any, Any, Field, Form | None], object]] = {
            inspect.StructType: self._struct,
            inspect.UnionType: self._union,
            inspect.VarTupleType: self._list,
            inspect.DictType: self._dict,
            inspect.LiteralType: self._literal,
            inspect.StrType: self._text,
            inspect.CustomType: self._secret,
            inspect.IntType: self._number,
            inspect.FloatType: self._number,
            inspect.BoolType: self._bool,
            inspect.AnyType: self._anything,
        }

    def check(self, value: object, expected: inspect.Type, place: Field = (), form: Form | None = None) -> object:
        while isinstance(expected, inspect.Metadata):
            extra = cast("Mapping[str, Form] | None", expected.extra)  # pyright: ignore[reportUnknownMemberType]
            form = (extra or {}).get(_FORM, form)
            expected = expected.type
        return self._by_type[type(expected)](value, expected, place, form)

    def _say(self, place: Field, message: str, suggestion: str | None = None) -> None:
        self._problems.add(Problem(place, message, suggestion))

    def _struct(self, value: object, expected: inspect.StructType, place: Field, form: Form | None) -> object:
        if not isinstance(value, dict):
            return self._say(place, f"expected fields, got {shown(value)}.")
        given = cast("dict[str, object]", value)
        fields = {known.encode_name: known for known in expected.fields}
        names = [*fields] if expected.tag_field is None else [expected.tag_field, *fields]
        for name in [name for name in given if name not in names]:
            hint = did_you_mean(name, names) or f"Known here: {', '.join(sorted(names))}."
            self._say((*place, name), "unknown field.", hint)
        for name, known in fields.items():
            if known.required and name not in given:
                self._say((*place, name), "this field is missing.")
        read = {n: self.check(v, fields[n].type, (*place, n)) for n, v in given.items() if n in fields}
        if expected.tag_field is not None:
            read[expected.tag_field] = expected.tag
        return read

    def _union(self, value: object, expected: inspect.UnionType, place: Field, form: Form | None) -> object:
        plain = [inner for inner in expected.types if not isinstance(inner, inspect.NoneType)]
        if value is None and len(plain) < len(expected.types):
            return None
        tagged = [inner for inner in plain if isinstance(inner, inspect.StructType) and inner.tag_field is not None]
        if tagged:
            return self._tagged(value, tagged, place)
        fitting = [inner for inner in plain if _takes(_bare(inner), value)]
        if fitting:
            return self.check(value, fitting[0], place, form)
        if len(plain) == 1:
            return self.check(value, plain[0], place, form)
        wanted = " or ".join(_described(_bare(inner)) for inner in plain)
        return self._say(place, f"expected {wanted}, got {shown(value)}.")

    def _tagged(self, value: object, tagged: list[inspect.StructType], place: Field) -> object:
        if not isinstance(value, dict):
            return self._say(place, f"expected fields, got {shown(value)}.")
        given = cast("dict[str, object]", value)
        by_tag = {str(struct.tag): struct for struct in tagged}
        tag_field = str(tagged[0].tag_field)
        kinds = f"expected one of {', '.join(by_tag)}"
        if tag_field not in given:
            return self._say((*place, tag_field), f"this field is missing; {kinds}.")
        tag = given[tag_field]
        if not isinstance(tag, str) or tag not in by_tag:
            hint = did_you_mean(tag, by_tag) if isinstance(tag, str) else None
            return self._say((*place, tag_field), f"{kinds}, got {shown(tag)}.", hint)
        return self._struct(given, by_tag[tag], place, None)

    def _list(self, value: object, expected: inspect.VarTupleType, place: Field, form: Form | None) -> object:
        if not isinstance(value, list):
            return self._say(place, f"expected a list, got {shown(value, form)}.")
        items = cast("list[object]", value)
        if len(items) < (expected.min_length or 0):
            self._say(place, "expected at least one item, got an empty list.")
        return [self.check(item, expected.item_type, (*place, index)) for index, item in enumerate(items)]

    def _dict(self, value: object, expected: inspect.DictType, place: Field, form: Form | None) -> object:
        if not isinstance(value, dict):
            return self._say(place, f"expected names with values, got {shown(value, form)}.")
        return {
            name: self.check(item, expected.value_type, (*place, name))
            for name, item in cast("dict[str, object]", value).items()
        }

    def _literal(self, value: object, expected: inspect.LiteralType, place: Field, form: Form | None) -> object:
        if isinstance(value, str) and value in expected.values:
            return value
        words = [str(word) for word in expected.values]
        hint = did_you_mean(value, words) if isinstance(value, str) else None
        return self._say(place, f"expected {_described(expected)}, got {shown(value)}.", hint)

    def _text(self, value: object, expected: inspect.StrType, place: Field, form: Form | None) -> object:
        if not isinstance(value, str):
            hint = "Put it in quotes." if isinstance(value, int | float) else None
            return self._say(place, f"expected text, got {shown(value, form)}.", hint)
        try:
            text = read_text(value, form, self._reading)
        except Misread as error:
            return self._say(place, error.message, error.suggestion)
        if len(text) < (expected.min_length or 0):
            return self._say(place, "expected text, got nothing.")
        if expected.max_length is not None and len(text) > expected.max_length:
            return self._say(place, f"expected at most {expected.max_length} characters, got {len(text)}.")
        if expected.pattern is not None and not re.search(expected.pattern, text):
            return self._say(place, f"{shown(text)} does not fit.", _PATTERN_HINTS.get(form))
        return text

    def _secret(self, value: object, expected: inspect.CustomType, place: Field, form: Form | None) -> object:
        if not isinstance(value, str):
            hint = "Put it in quotes." if isinstance(value, int | float) else None
            return self._say(place, f"expected text, got {shown(value, form)}.", hint)
        try:
            text = read_text(value, form, self._reading)
        except Misread as error:
            return self._say(place, error.message, error.suggestion)
        if any(character in text for character in "\r\n\x00"):
            return self._say(place, "a secret holds no line breaks.", "Look for a line break at the end of its value.")
        return Secret(text)

    def _number(
        self, value: object, expected: inspect.IntType | inspect.FloatType, place: Field, form: Form | None
    ) -> object:
        whole = isinstance(expected, inspect.IntType)
        fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not fits or not math.isfinite(number := cast("float", value)):
            return self._say(place, f"expected {_described(expected)}, got {shown(value)}.")
        too_low = (expected.ge is not None and number < expected.ge) or (
            expected.gt is not None and number <= expected.gt
        )
        if too_low or (expected.le is not None and number > expected.le):
            return self._say(place, f"expected {_described(expected)}, got {shown(value)}.")
        return number if whole else float(number)

    def _bool(self, value: object, expected: inspect.BoolType, place: Field, form: Form | None) -> object:
        if isinstance(value, bool):
            return value
        hint = "Write true or false." if isinstance(value, str) else None
        return self._say(place, f"expected true or false, got {shown(value)}.", hint)

    def _anything(self, value: object, expected: inspect.AnyType, place: Field, form: Form | None) -> object:
        return value


_PATTERN_HINTS: Mapping[Form | None, str] = {
    Form.ID: "Use 1 to 64 of a-z, 0-9, '_' and '-', beginning and ending with a letter or digit.",
    Form.TOOL: "Write it as provider:name, such as crm:search.",
    Form.MODULE: "Name it as `import` would, such as my_tools.",
}


def shown(value: object, form: Form | None = None) -> str:
    """A value for a message: short, and never a secret."""
    if form in (Form.KEY, Form.SECRET):
        return _kind(value)
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else f"{value[:57]!r}... ({len(value)} characters)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        text = str(value)
        return text if len(text) <= 30 else f"a number of {len(text)} digits"
    return _kind(value)


def _kind(value: object) -> str:
    names: Mapping[type, str] = {
        type(None): "nothing",
        bool: "true or false",
        str: "text",
        list: "a list",
        dict: "fields",
    }
    return names.get(type(value), "a number")


def _bare(expected: inspect.Type) -> inspect.Type:
    while isinstance(expected, inspect.Metadata):
        expected = expected.type
    return expected


def _takes(expected: inspect.Type, value: object) -> bool:
    if isinstance(expected, inspect.LiteralType):
        return isinstance(value, str) and value in expected.values
    python_types: Mapping[type[inspect.Type], type] = {
        inspect.StrType: str,
        inspect.BoolType: bool,
        inspect.StructType: dict,
    }
    wanted = python_types.get(type(expected))
    return wanted is not None and isinstance(value, wanted)


def _described(expected: inspect.Type) -> str:
    if isinstance(expected, inspect.LiteralType):
        words = [str(word) for word in expected.values]
        return words[0] if len(words) == 1 else f"one of {', '.join(words)}"
    if isinstance(expected, inspect.IntType | inspect.FloatType):
        what = "a whole number" if isinstance(expected, inspect.IntType) else "a number"
        low, high = (expected.ge if expected.ge is not None else expected.gt), expected.le
        word = "from" if expected.ge is not None else "above"
        until = f" to {high:,}" if word == "from" else f", at most {high:,}"
        return what if low is None or high is None else f"{what} {word} {low}{until}"
    names: Mapping[type[inspect.Type], str] = {
        inspect.StrType: "text",
        inspect.BoolType: "true or false",
        inspect.StructType: "fields",
    }
    return names[type(expected)]
