"""A schema as a table for people: one row per property, nested ones below their parent."""

from __future__ import annotations

from dataclasses import dataclass

from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.faces.console.forms.shapes import Shape, Shapes, items, obj, variant_label, words

DEEPEST = 5
MOST_ROWS = 300


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    depth: int
    type: str
    required: bool
    description: str
    details: tuple[str, ...]


def property_rows(document: JsonObject) -> list[Row]:
    """At most 300 rows and five levels; the raw JSON is always beside it."""
    rows: list[Row] = []
    shapes = Shapes(document)
    _below(shapes, shapes.of(document, frozenset()), 0, rows)
    return rows


def _below(shapes: Shapes, shape: Shape, depth: int, rows: list[Row]) -> None:
    if depth >= DEEPEST:
        return
    if shape.kind == "object":
        required = set(items(shape.schema.get("required")))
        for name, schema in obj(shape.schema.get("properties")).items():
            _row(shapes, _Property(name, schema, name in required), shape.refs, depth, rows)
    elif shape.kind == "array":
        inner = shapes.of(shape.schema.get("items"), shape.refs)
        if inner.kind in ("object", "array", "choice"):
            _below(shapes, inner, depth, rows)
    elif shape.kind == "choice":
        for index, variant in enumerate(shape.variants):
            inner = shapes.of(variant, shape.refs)
            if inner.kind == "object" and len(rows) < MOST_ROWS:
                rows.append(Row(f"if {variant_label(shapes, variant, index)}", depth, "", False, "", ()))  # noqa: FBT003
                _below(shapes, inner, depth + 1, rows)


@dataclass(frozen=True, slots=True)
class _Property:
    name: str
    schema: JsonValue
    required: bool


def _row(shapes: Shapes, found: _Property, refs: frozenset[str], depth: int, rows: list[Row]) -> None:
    if len(rows) >= MOST_ROWS:
        return
    shape = shapes.of(found.schema, refs)
    described = words(shape.schema.get("description"))
    rows.append(Row(found.name, depth, _type(shapes, shape), found.required, described, _details(shape)))
    _below(shapes, shape, depth + 1, rows)


def _type(shapes: Shapes, shape: Shape) -> str:
    text = _plain_type(shapes, shape)
    return f"{text} or null" if shape.nullable else text


def _plain_type(shapes: Shapes, shape: Shape) -> str:
    match shape.kind:
        case "select":
            kind = words(shape.schema.get("type"))
            return kind or ("always" if len(shape.options) == 1 else "one of")
        case "array":
            inner = _plain_type(shapes, shapes.of(shape.schema.get("items"), shape.refs))
            return f"array of {inner}"
        case "choice":
            return "one of " + ", ".join(variant_label(shapes, v, i) for i, v in enumerate(shape.variants[:6]))
        case "any":
            return words(shape.schema.get("type")) or "any"
        case _:
            form = words(shape.schema.get("format"))
            return f"{shape.kind} ({form})" if form else shape.kind


def _details(shape: Shape) -> tuple[str, ...]:
    found: list[str] = []
    if shape.kind == "select" and words(shape.schema.get("type")) != "boolean":
        values = ", ".join(label for _, label in shape.options[:12])
        found.append(
            (f"one of: {values}" if len(shape.options) > 1 else values) + (", …" if len(shape.options) > 12 else "")
        )
    for key, said in (
        ("default", "default"), ("minimum", "at least"), ("maximum", "at most"), ("minLength", "min length"),
        ("maxLength", "max length"), ("pattern", "matches"), ("minItems", "min items"), ("maxItems", "max items"),
    ):  # fmt: skip
        value = shape.schema.get(key)
        if value is not None:
            text = value if isinstance(value, str) else dumps(value).decode()
            found.append(f"{said} {text[:80]}")
    return tuple(found)
