"""Schema + content -> the tree of fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.faces.console.forms.harvest import harvest, same
from toolyard.faces.console.forms.shapes import Shape, Shapes, items, obj, variant_label, words
from toolyard.faces.console.forms.sources import Absent, Source, pretty
from toolyard.faces.console.forms.tree import Choice, Control, Group, Leaf, Node, Option, Path, Raw, Rows, Spot, encode

DEEPEST = 8
MOST_FIELDS = 600
"""Beyond either, the rest is JSON text: a recursive or enormous schema still makes a usable page."""

_LONG_NAMES = {
    "body",
    "text",
    "content",
    "message",
    "description",
    "prompt",
    "code",
    "query",
    "markdown",
    "html",
    "sql",
}
_DATE = "0000-00-00"


def grow(schema: JsonObject, source: Source) -> Node:
    """The form for `schema`, filled from `source`. Never empty: what has no fields is a JSON part."""
    return _Grower(schema, source).grow(schema, _Place((), "Arguments", required=True))


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    label: str
    required: bool
    refs: frozenset[str] = frozenset()
    depth: int = 0


class _Grower:
    def __init__(self, root: JsonObject, source: Source) -> None:
        self._root = root
        self._shapes = Shapes(root)
        self._source = source
        self._fields = 0

    def grow(self, schema: JsonValue, place: _Place) -> Node:
        shape = self._shapes.of(schema, place.refs)
        spot = Spot(place.path, place.label, place.required, words(shape.schema.get("description")), _facts(shape))
        self._fields += 1
        posted = self._source.raw(place.path)
        if posted is not None:
            return Raw(spot, posted, shape.why_raw or _NOT_FIELDS)
        value = self._source.value(place.path)
        nothing_yet = isinstance(value, Absent)
        if not place.path and _takes_nothing(shape.schema) and (nothing_yet or same(value, {})):
            return Group(spot, (), ())
        if shape.kind == "any" or place.depth > DEEPEST or self._fields > MOST_FIELDS:
            return self._raw(spot, shape.why_raw or "The schema is too deep or too large for fields.")
        node = self._maker(shape)(shape, spot, place)
        if nothing_yet or same(harvest(node).value, value):
            return node
        return self._raw(spot, _NOT_FIELDS)

    def _maker(self, shape: Shape) -> Callable[[Shape, Spot, _Place], Node]:
        match shape.kind:
            case "object":
                return self._group
            case "array":
                return self._rows
            case "choice":
                return self._choice
            case _:
                return self._leaf

    def _raw(self, spot: Spot, why: str) -> Raw:
        value = self._source.value(spot.path)
        return Raw(spot, "" if isinstance(value, Absent) else pretty(value), why)

    def _leaf(self, shape: Shape, spot: Spot, place: _Place) -> Leaf:
        as_json = shape.kind != "string"
        text = self._source.text(place.path, as_json=as_json)
        default = shape.schema.get("default")
        if self._source.fresh and place.required and "default" in shape.schema and default is not None:
            text = default if isinstance(default, str) and not as_json else dumps(default).decode()
        if as_json and shape.nullable and place.required and text == "null":
            text = ""
        options = tuple(Option(dumps(value).decode(), label) for value, label in shape.options)
        if shape.kind == "select" and all(option.value != text for option in options):
            # A constant that must be there has nothing to choose.
            text = options[0].value if len(options) == 1 and place.required and not shape.nullable else ""
        return Leaf(
            spot=spot,
            control=_control(shape, place, text),
            kind="json" if as_json else "string",
            text=text,
            options=options,
            nullable=shape.nullable,
            integer=shape.kind == "integer",
            placeholder=_example(shape.schema),
        )

    def _group(self, shape: Shape, spot: Spot, place: _Place) -> Group:
        properties = obj(shape.schema.get("properties"))
        required = set(items(shape.schema.get("required")))
        # What must be filled in comes first, each part in the schema's own order.
        keys = sorted(properties, key=lambda key: key not in required)
        children = tuple(
            self.grow(
                properties[key],
                _Place((*place.path, encode(key)), key, key in required, shape.refs, place.depth + 1),
            )
            for key in keys
        )
        open_ended = shape.schema.get("additionalProperties") is True or bool(
            obj(shape.schema.get("additionalProperties"))
        )
        more = self._source.more(place.path, keys)
        return Group(spot, children, tuple(keys), more if more is not None or not open_ended else "")

    def _rows(self, shape: Shape, spot: Spot, place: _Place) -> Rows:
        least = shape.schema.get("minItems")
        at_least = min(least, 5) if place.required and isinstance(least, int) else 0
        rows = tuple(
            self.grow(
                shape.schema["items"],
                _Place((*place.path, number), f"{place.label} {index + 1}", True, shape.refs, place.depth + 1),  # noqa: FBT003
            )
            for index, number in enumerate(self._source.rows(place.path, at_least))
        )
        return Rows(spot, rows, words(obj(shape.schema["items"]).get("title")) or "item")

    def _choice(self, shape: Shape, spot: Spot, place: _Place) -> Choice:
        labels = tuple(variant_label(self._shapes, variant, i) for i, variant in enumerate(shape.variants))
        selected = self._source.variant(place.path, shape.variants, self._root)
        nothing_yet = isinstance(self._source.value(place.path), Absent)
        if selected is None and place.required and not shape.nullable and nothing_yet:
            selected = 0
        if selected is None:
            return Choice(spot, labels, None, None, shape.nullable)
        inner = _Place((*place.path, f"~o{selected}"), labels[selected], True, shape.refs, place.depth + 1)  # noqa: FBT003
        return Choice(spot, labels, selected, self.grow(shape.variants[selected], inner), shape.nullable)


_NOT_FIELDS = "This value does not fit the fields of the schema, so it is shown as it is."


def _takes_nothing(schema: JsonObject) -> bool:
    closed = schema.get("type") == "object" and schema.get("additionalProperties") is False
    return closed and not schema.get("properties") and not schema.get("patternProperties")


def _control(shape: Shape, place: _Place, text: str) -> Control:
    if shape.kind == "select":
        return "select"
    if shape.kind in ("number", "integer"):
        return "number"
    form = words(shape.schema.get("format"))
    name = place.path[-1].lower() if place.path else ""
    longest = shape.schema.get("maxLength")
    if form == "date" and (not text or _is_date(text)):
        return "date"
    if "\n" in text or name in _LONG_NAMES or (isinstance(longest, int) and longest > 255):
        return "long"
    return "secret" if form == "password" else "text"


def _is_date(text: str) -> bool:
    from datetime import date

    try:
        return len(text) == len(_DATE) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _example(schema: JsonObject) -> str:
    example = schema.get("example", next(iter(items(schema.get("examples"))), None))
    if example is None or isinstance(example, Mapping):
        return ""
    return example if isinstance(example, str) else dumps(example).decode()


_TYPE_WORDS = {"integer": "whole number", "number": "number"}


def _facts(shape: Shape) -> tuple[str, ...]:
    schema = shape.schema
    facts = [_TYPE_WORDS.get(shape.kind, ""), words(schema.get("format"))]
    facts.append(_between(schema.get("minimum"), schema.get("maximum"), ""))
    facts.append(_between(schema.get("minLength"), schema.get("maxLength"), " characters"))
    facts.append(_between(schema.get("minItems"), schema.get("maxItems"), " items"))
    if "pattern" in schema:
        facts.append(f"matches {words(schema['pattern'])[:60]}")
    if shape.nullable:
        facts.append("may be null")
    if "default" in schema and schema["default"] is not None:
        facts.append(f"default {dumps(schema['default']).decode()[:60]}")
    if schema.get("deprecated") is True:
        facts.append("deprecated")
    return tuple(fact for fact in facts if fact)


def _between(low: JsonValue, high: JsonValue, unit: str) -> str:
    if low is not None and high is not None:
        return f"{low} to {high}{unit}"
    if low is not None and low != 0:
        return f"at least {low}{unit}"
    return f"at most {high}{unit}" if high is not None else ""
