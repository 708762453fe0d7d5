"""Request bodies to arguments: the fields of an object side by side, or one argument `body`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from toolyard.core.json import JsonObject, JsonValue
from toolyard.providers.openapi.media import choose, kind_of
from toolyard.providers.openapi.model import Argument, Body, BodyKind, Style
from toolyard.providers.openapi.naming import argument_key
from toolyard.providers.openapi.nodes import Node, Place, as_list, as_object, as_text, texts
from toolyard.providers.openapi.parameters import Declared, Input, Parameters, described, raw_kind
from toolyard.providers.openapi.references import Document, Found
from toolyard.providers.openapi.report import Findings
from toolyard.providers.openapi.schemas import Schemas

WHOLE = "body"
_COMPOSED = frozenset({
    "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "propertyNames", "dependentSchemas",
    "dependentRequired", "enum", "const", "unevaluatedProperties",
})  # fmt: skip
_BODY_STYLES: Mapping[str, Style] = {
    "form": "form",
    "spaceDelimited": "spaceDelimited",
    "pipeDelimited": "pipeDelimited",
    "deepObject": "deepObject",
}
_WITHOUT_BODY = frozenset({"GET", "HEAD", "TRACE"})
_BODY_EXPECTED = frozenset({"POST", "PUT", "PATCH"})
_HINTS: Mapping[BodyKind, str] = {
    "bytes": "The bytes, as base64 or as data:<type>;base64,<...>.",
    "base64": "Base64 text.",
}


@dataclass(frozen=True, slots=True)
class BodyPlan:
    body: Body
    inputs: tuple[Input, ...]


class Bodies:
    """Reads the bodies of one document's operations."""

    def __init__(self, document: Document, schemas: Schemas, parameters: Parameters, findings: Findings) -> None:
        self._document = document
        self._schemas = schemas
        self._parameters = parameters
        self._findings = findings

    def of_request_body(self, node: JsonValue, place: Place, method: str, refs: set[str]) -> BodyPlan | None:
        """3.x: one of the media types of `requestBody`."""
        if node is None or self._refused(method, place):
            return None
        found = self._document.follow(place, node)
        request_body = as_object(found.node) if found is not None else {}
        content = as_object(request_body.get("content"))
        media_type = choose(content)
        if found is None or media_type is None:
            self._findings.repaired(place, "the body is left out: it names no media type")
            return None
        media, here = as_object(content[media_type]), found.place.child("content", media_type)
        return self._plan(
            media.get("schema", {}), here.child("schema"), media_type, method, refs,
            required=request_body.get("required") is True,
            encodings=as_object(media.get("encoding")),
            patches=tuple(name for name in content if kind_of(name) == "json" and "patch" in name),
            description=request_body.get("description"),
        )  # fmt: skip

    def of_swagger(
        self, declared: list[Declared], consumes: list[str], place: Place, method: str, refs: set[str]
    ) -> BodyPlan | None:
        """2.0: the one `in: body` parameter, or the `in: formData` ones."""
        body = next((each for each in declared if each.node["in"] == "body"), None)
        fields = [each for each in declared if each.node["in"] == "formData"]
        if (body is None and not fields) or self._refused(method, place):
            return None
        if body is None:
            return self._form(fields, consumes, refs)
        media_type = (
            choose(name for name in consumes if kind_of(name) not in ("form", "multipart")) or "application/json"
        )
        return self._plan(
            body.node.get("schema", {}), body.place.child("schema"), media_type, method, refs,
            required=body.node.get("required") is True,
            encodings={},
            patches=tuple(name for name in consumes if kind_of(name) == "json" and "patch" in name),
            description=body.node.get("description"),
        )  # fmt: skip

    def _refused(self, method: str, place: Place) -> bool:
        if method in _WITHOUT_BODY:
            self._findings.repaired(place, f"the body is left out: {method} has none")
        return method in _WITHOUT_BODY

    def _form(self, fields: list[Declared], consumes: list[str], refs: set[str]) -> BodyPlan:
        files = any(each.node.get("type") == "file" for each in fields)
        kinds = [kind_of(name) for name in consumes]
        kind: BodyKind = "multipart" if files or ("multipart" in kinds and "form" not in kinds) else "form"
        media_type = "multipart/form-data" if kind == "multipart" else "application/x-www-form-urlencoded"
        inputs: list[Input] = []
        for field in fields:
            name = cast("str", field.node["name"])
            if self._parameters.is_credential(field):
                self._findings.repaired(field.place, f"{name} is no argument: credentials are set on the provider")
                continue
            schema, _ = self._parameters.schema(field, refs)
            style, explode = self._parameters.collection_style(field.node, "body")
            raw = raw_kind(self._document, field.node, field.place)
            argument = Argument("", "body", name, style=style, explode=explode, raw=raw)
            inputs.append(Input(argument, schema, field.node.get("required") is True))
        return BodyPlan(Body(kind, media_type, required=any(each.required for each in inputs)), tuple(inputs))

    def _plan(
        self,
        node: JsonValue,
        place: Place,
        media_type: str,
        method: str,
        refs: set[str],
        *,
        required: bool,
        encodings: Node,
        patches: tuple[str, ...],
        description: JsonValue,
    ) -> BodyPlan:
        kind = self._kind(media_type, node, place)
        found = self._document.follow(place, node, quiet=True)
        inputs: tuple[Input, ...] | None = None
        if found is not None and kind in ("json", "form", "multipart") and len(patches) < 2:
            inputs = self._fields(found, kind, encodings, refs)
        if inputs is not None:
            # Documents forget the flag: a body with required fields is a required one.
            required = required or (method in _BODY_EXPECTED and any(each.required for each in inputs))
            if not required:
                inputs = tuple(Input(each.argument, each.schema, required=False) for each in inputs)
            return BodyPlan(Body(kind, media_type, required=required), inputs)
        schema = self._whole_schema(kind, node, place, refs, several_patches=len(patches) > 1)
        raw = kind if kind in ("bytes", "base64") else ""
        argument = Argument(WHOLE, "body", WHOLE, raw=raw)
        body = Body(kind, media_type, WHOLE, required, patches if len(patches) > 1 else ())
        return BodyPlan(body, (Input(argument, described(schema, description), required),))

    def _kind(self, media_type: str, node: JsonValue, place: Place) -> BodyKind:
        kind = kind_of(media_type)
        if kind in ("bytes", "text"):
            raw = raw_kind(self._document, node, place)
            if raw == "base64" or (kind == "text" and raw):
                return raw
        if kind == "text" and "xml" in media_type:
            self._findings.repaired(place, "an XML body is given as text: writing it from fields is not supported yet")
        return kind

    def _whole_schema(
        self, kind: BodyKind, node: JsonValue, place: Place, refs: set[str], *, several_patches: bool
    ) -> JsonObject:
        if kind in ("text", "bytes", "base64"):
            schema: Node = {"type": "string"}
            about = as_text(as_object(node).get("description")) or _HINTS.get(kind, "")
            return described(schema, about)
        if several_patches:
            return {"description": "An object for a merge patch, or a list of operations for a JSON patch."}
        schema = dict(self._schemas.convert(node, place, refs))
        return {"type": "array", "items": schema} if kind == "ndjson" else schema

    def _fields(self, found: Found, kind: BodyKind, encodings: Node, refs: set[str]) -> tuple[Input, ...] | None:
        """The properties of an object body, or None when the body has to stay in one piece."""
        node = as_object(found.node)
        free = node.get("additionalProperties")
        if not _is_object(node) or _COMPOSED & node.keys() or (kind == "json" and free not in (None, False)):
            return None
        inner: set[str] = set()
        converted = self._schemas.convert(found.node, found.place, inner)
        properties = as_object(converted.get("properties"))
        keys = [argument_key(name) for name in properties]
        if not properties or len(set(keys)) < len(keys):
            return None
        refs |= inner
        required = texts(as_list(converted.get("required")))
        declared, where = as_object(node.get("properties")), found.place.child("properties")
        inputs: list[Input] = []
        for name, schema in properties.items():
            encoding = as_object(encodings.get(name))
            argument = self._field(name, declared.get(name), where.child(name), kind, encoding)
            asked = schema if isinstance(schema, dict) else {}
            if argument.raw == "bytes" and asked.get("type") == "string" and "description" not in asked:
                asked = described(asked, _HINTS["bytes"])
            inputs.append(Input(argument, asked, name in required))
        return tuple(inputs)

    def _field(self, name: str, node: JsonValue, place: Place, kind: BodyKind, encoding: Node) -> Argument:
        if kind == "json":
            return Argument("", "body", name)
        raw = raw_kind(self._document, node, place) if kind == "multipart" else ""
        styled = {"style", "explode", "allowReserved"} & encoding.keys()
        if not styled:
            return Argument("", "body", name, media_type=as_text(encoding.get("contentType")), raw=raw)
        declared = as_text(encoding.get("style")) or "form"
        style: Style = _BODY_STYLES.get(declared, "form")
        explode = encoding.get("explode")
        exploded = explode if isinstance(explode, bool) else style in ("form", "deepObject")
        return Argument(
            "", "body", name, style, explode=exploded, allow_reserved=encoding.get("allowReserved") is True, raw=raw
        )


def _is_object(node: Node) -> bool:
    declared = node.get("type")
    types = [declared] if isinstance(declared, str) else texts(declared)
    return isinstance(node.get("properties"), dict) and (not types or "object" in types)
