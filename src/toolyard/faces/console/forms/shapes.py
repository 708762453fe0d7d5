"""What kind of field a schema asks for: references followed, `allOf` merged, unions laid out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.faces.console.forms.tree import decode

Kind = Literal["string", "number", "integer", "select", "object", "array", "choice", "any"]

MOST_VARIANTS = 24
MOST_OPTIONS = 400
_LONGEST_REF_CHAIN = 16
_EMPTY: JsonObject = {}


@dataclass(frozen=True, slots=True)
class Shape:
    kind: Kind
    schema: JsonObject
    """Resolved and merged; its children may still hold references."""
    refs: frozenset[str]
    """The references followed to get here: one that comes again is a recursion."""
    nullable: bool = False
    variants: tuple[JsonObject, ...] = ()
    options: tuple[tuple[JsonValue, str], ...] = ()
    why_raw: str = ""


def obj(value: JsonValue) -> JsonObject:
    return value if isinstance(value, Mapping) else _EMPTY


def items(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def words(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


class Shapes:
    def __init__(self, root: JsonObject) -> None:
        self._root = root

    def of(self, schema: JsonValue, refs: frozenset[str]) -> Shape:
        """The shape of `schema`, found below the references `refs`."""
        if not isinstance(schema, Mapping):
            return Shape("any", _EMPTY, refs, why_raw="Any JSON value fits here.")
        resolved, seen, problem = self._resolve(schema, refs)
        if problem:
            return Shape("any", resolved, seen, why_raw=problem)
        return self._classify(self._merge_all_of(resolved, 0), seen)

    def _resolve(self, schema: JsonObject, refs: frozenset[str]) -> tuple[JsonObject, frozenset[str], str]:
        for _ in range(_LONGEST_REF_CHAIN):
            ref = schema.get("$ref")
            if not isinstance(ref, str):
                return schema, refs, ""
            if ref in refs:
                return schema, refs, "This part contains itself, so it is written as JSON."
            target = self._target(ref)
            if target is None:
                return schema, refs, f"Its schema refers to {ref}, which is not there."
            refs = refs | {ref}
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        return schema, refs, "Its schema refers onward too many times."

    def _target(self, ref: str) -> JsonObject | None:
        if ref == "#":
            return self._root
        if not ref.startswith("#/"):
            return None
        here: JsonValue = self._root
        for step in ref[2:].split("/"):
            if not isinstance(here, Mapping):
                return None
            here = here.get(decode(step))
        return here if isinstance(here, Mapping) else None

    def _merge_all_of(self, schema: JsonObject, depth: int) -> JsonObject:
        parts = items(schema.get("allOf"))
        if not parts or depth > 8:
            return schema
        merged: JsonObject = {key: value for key, value in schema.items() if key != "allOf"}
        for part in parts:
            if isinstance(part, Mapping):
                resolved, _, problem = self._resolve(part, frozenset())
                if not problem:
                    merged = merge(self._merge_all_of(resolved, depth + 1), merged)
        return merged

    def _classify(self, schema: JsonObject, refs: frozenset[str]) -> Shape:
        if "const" in schema:
            return _select(schema, refs, [schema["const"]])
        if isinstance(schema.get("enum"), Sequence) and not isinstance(schema["enum"], str):
            return _select(schema, refs, items(schema["enum"]))
        for union in ("oneOf", "anyOf"):
            if items(schema.get(union)):
                shape = self._union(schema, union, refs)
                if shape is not None:
                    return shape
        return self._typed(schema, refs)

    def _union(self, schema: JsonObject, union: str, refs: frozenset[str]) -> Shape | None:
        base = {key: value for key, value in schema.items() if key != union}
        variants: list[JsonObject] = []
        resolved: list[JsonObject] = []
        nullable = False
        for variant in items(schema[union]):
            followed, _, problem = self._resolve(obj(variant), frozenset())
            if problem:
                return Shape("any", schema, refs, why_raw=problem)
            if followed.get("type") == "null" or ("const" in followed and followed["const"] is None):
                nullable = True
            else:
                variants.append(obj(variant))
                resolved.append(followed)
        if not any(_DRAWN & set(variant) for variant in resolved):
            return None  # only conditions such as `required`: the validator checks them, the fields are the base's
        return self._laid_out(base, variants, resolved, refs, nullable=nullable)

    def _laid_out(
        self,
        base: JsonObject,
        variants: list[JsonObject],
        resolved: list[JsonObject],
        refs: frozenset[str],
        *,
        nullable: bool,
    ) -> Shape:
        if all("const" in variant for variant in resolved):
            titles = [words(variant.get("title")) for variant in resolved]
            return _select(base, refs, [variant["const"] for variant in resolved], titles, nullable=nullable)
        if len(variants) == 1:
            inner = self.of(merge(base, variants[0]), refs)
            return replace(inner, nullable=True) if nullable else inner
        if len(variants) > MOST_VARIANTS:
            return Shape("any", base, refs, why_raw=f"{len(variants)} shapes fit here: too many to offer as fields.")
        outer = {key: value for key, value in base.items() if key not in ("title", "description", "default", "$defs")}
        return Shape("choice", base, refs, nullable, tuple(merge(outer, variant) for variant in variants))

    def _typed(self, schema: JsonObject, refs: frozenset[str]) -> Shape:
        kind = schema.get("type")
        types = [kind] if isinstance(kind, str) else [t for t in items(kind) if isinstance(t, str)]
        if not types:
            types = ["object"] if obj(schema.get("properties")) else ["array"] if obj(schema.get("items")) else []
        nullable = "null" in types or schema.get("nullable") is True
        wanted = [name for name in types if name != "null"]
        if len(wanted) > 1:
            variants = tuple({**schema, "type": name, "title": name} for name in wanted)
            return Shape("choice", schema, refs, nullable, variants)
        return _of_one_type(wanted[0] if wanted else "", schema, refs, nullable=nullable)


_DRAWN = {"type", "properties", "$ref", "items", "enum", "const", "allOf", "oneOf", "anyOf"}
_ANY = {
    "object": "Any properties fit here: write a JSON object.",
    "array": "Any items fit here: write a JSON array.",
}


def _of_one_type(kind: str, schema: JsonObject, refs: frozenset[str], *, nullable: bool) -> Shape:
    match kind:
        case "string" | "number" | "integer":
            return Shape(kind, schema, refs, nullable)
        case "boolean":
            return Shape("select", schema, refs, nullable, options=((True, "Yes (true)"), (False, "No (false)")))
        case "object" if obj(schema.get("properties")):
            return Shape("object", schema, refs, nullable)
        case "array" if isinstance(schema.get("items"), Mapping) and not items(schema.get("prefixItems")):
            return Shape("array", schema, refs, nullable)
        case _:
            return Shape("any", schema, refs, nullable, why_raw=_ANY.get(kind, "Any JSON value fits here."))


def merge(base: JsonObject, over: JsonObject) -> JsonObject:
    """Both schemas' properties and requirements; on anything else `over` wins."""
    merged = {**base, **over}
    if "$ref" in over and "$ref" not in base and (set(base) - {"$defs"}):
        # The reference is followed later, with the base's keywords beside it.
        merged = {**base, "$ref": over["$ref"], **{k: v for k, v in over.items() if k != "$ref"}}
        if obj(base.get("properties")):
            return {"allOf": [base, over]}
    properties = {**obj(base.get("properties")), **obj(over.get("properties"))}
    if properties:
        merged["properties"] = properties
    required = [*items(base.get("required")), *items(over.get("required"))]
    if required:
        merged["required"] = list(dict.fromkeys(name for name in required if isinstance(name, str)))
    return merged


def _select(
    schema: JsonObject,
    refs: frozenset[str],
    values: Sequence[JsonValue],
    titles: Sequence[str] = (),
    *,
    nullable: bool = False,
) -> Shape:
    if len(values) > MOST_OPTIONS:
        return Shape("any", schema, refs, nullable, why_raw=f"{len(values)} values fit here: too many to list.")
    names = [titles[i] if i < len(titles) and titles[i] else "" for i in range(len(values))]
    options = tuple((value, name or _value_label(value)) for value, name in zip(values, names, strict=True))
    return Shape("select", schema, refs, nullable, options=options)


def _value_label(value: JsonValue) -> str:
    return value if isinstance(value, str) and value else dumps(value).decode()


def variant_label(shapes: Shapes, variant: JsonObject, number: int) -> str:
    """What to call one of several shapes: its title, its component's name, its tag, or its type."""
    title = words(variant.get("title"))
    ref = words(variant.get("$ref")).rpartition("/")[2]
    shape = shapes.of(variant, frozenset())
    title = title or words(shape.schema.get("title"))
    for name, schema in obj(shape.schema.get("properties")).items():
        if "const" in obj(schema) and not title:
            title = f"{name}: {_value_label(obj(schema)['const'])}"
    kind = words(shape.schema.get("type"))
    if kind == "object" and not title and not ref:
        names = list(obj(shape.schema.get("properties")))
        title = ", ".join(names[:3])
    return title or decode(ref) or kind or f"Option {number + 1}"
