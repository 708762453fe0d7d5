"""Parameters to arguments: where each goes, in which style, and which are none of a model's business."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from toolyard.core.json import JsonObject, JsonValue
from toolyard.providers.openapi.keywords import KEYWORDS
from toolyard.providers.openapi.model import Argument, ParameterPlace, Raw, Style
from toolyard.providers.openapi.nodes import Node, Place, as_list, as_object, as_text
from toolyard.providers.openapi.references import Document
from toolyard.providers.openapi.report import Findings
from toolyard.providers.openapi.schemas import Schemas

_IN_TEMPLATE = re.compile(r"\{\+?([^{}]+?)\*?\}")
_STYLES: Mapping[str, tuple[Style, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_COLLECTION_FORMATS: Mapping[str, Style] = {
    "csv": "form", "ssv": "spaceDelimited", "tsv": "tabDelimited", "pipes": "pipeDelimited", "multi": "form",
}  # fmt: skip
_OURS = frozenset({
    "accept", "content-type", "authorization", "host", "connection", "content-length", "transfer-encoding", "cookie",
})  # fmt: skip
_IDEMPOTENCY = frozenset({"idempotency-key", "x-idempotency-key"})
_CREDENTIAL = re.compile(
    r"(x[-_])?((api|auth|access|oauth|session)[-_]?(key|token)|authorization|bearer|api[-_]?secret)", re.IGNORECASE
)
_ABOUT_CREDENTIALS = re.compile(r"\b(authenticat|authoriz|credential|api key|scope|bearer|oauth)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Declared:
    """A parameter as the document has it, with the place it stands at."""

    node: Node
    place: Place


@dataclass(frozen=True, slots=True)
class Input:
    """An argument together with its schema. Its `key` is not decided yet."""

    argument: Argument
    schema: JsonObject
    required: bool


class Parameters:
    """Reads the parameters of one document's operations."""

    def __init__(
        self,
        document: Document,
        schemas: Schemas,
        findings: Findings,
        *,
        swagger: bool,
        api_keys: frozenset[tuple[str, str]],
    ) -> None:
        self._document = document
        self._schemas = schemas
        self._findings = findings
        self._swagger = swagger
        self._api_keys = api_keys
        self._converted: dict[Place, tuple[JsonObject, str, set[str]]] = {}

    def declared(self, *lists: tuple[JsonValue, Place]) -> list[Declared]:
        """All parameters of a path item and its operation; the operation's replace those of the same name and place."""
        found: dict[tuple[str, str], Declared] = {}
        for items, place in lists:
            if items is not None and not isinstance(items, list):
                self._findings.repaired(place, "left out: parameters are a list")
            for index, item in enumerate(as_list(items)):
                here = place.child(index)
                target = self._document.follow(here, item)
                node = as_object(target.node) if target is not None else {}
                name, where = node.get("name"), node.get("in")
                if target is None or not isinstance(name, str) or not isinstance(where, str):
                    self._findings.repaired(here, "left out: a parameter needs a name and a place (`in`)")
                    continue
                found[name, where] = Declared(node, target.place)
        return list(found.values())

    def inputs(self, declared: list[Declared], path: str, where: Place, refs: set[str]) -> Iterator[Input]:
        """One input per parameter of path, query, header and cookie, and per name in the path that has none."""
        in_path = set(_IN_TEMPLATE.findall(path))
        for parameter in declared:
            place, name = parameter.node["in"], cast("str", parameter.node["name"])
            if place in ("body", "formData"):
                continue
            if place == "querystring":
                self._findings.repaired(parameter.place, "left out: `in: querystring` is not supported yet")
            elif place not in _STYLES:
                self._findings.repaired(parameter.place, f"left out: there is no place {place!r}")
            elif place == "path" and name not in in_path:
                self._findings.repaired(parameter.place, f"left out: the path has no {{{name}}}")
            elif not self._is_ours(parameter):
                in_path.discard(name)
                yield self._input(parameter, cast("ParameterPlace", place), name, refs)
        for name in sorted(in_path, key=path.index):
            self._findings.repaired(where, f"the path's {{{name}}} is declared nowhere; taken as required text")
            yield Input(Argument("", "path", name, "simple"), {"type": "string"}, required=True)

    def fixed_headers(self, declared: list[Declared]) -> Iterator[tuple[str, str]]:
        """Headers that always are sent: they have a default, or only one value to choose from."""
        for parameter in declared:
            if parameter.node["in"] == "header" and not self._is_ours(parameter, fixed=False):
                value = self._only_value(parameter.node)
                if value is not None:
                    yield cast("str", parameter.node["name"]), value

    def idempotency_header(self, declared: list[Declared]) -> str:
        names = (cast("str", each.node["name"]) for each in declared if each.node["in"] == "header")
        return next((name for name in names if name.lower() in _IDEMPOTENCY), "")

    def is_credential(self, parameter: Declared) -> bool:
        """Whether a parameter repeats a security scheme, or plainly carries a credential."""
        name, place = cast("str", parameter.node["name"]), parameter.node["in"]
        if place in ("path", "body"):
            return False
        if (place, name.lower()) in self._api_keys or _CREDENTIAL.fullmatch(name):
            return True
        about = as_text(parameter.node.get("description"))
        return name.lower() in ("token", "auth", "key") and bool(_ABOUT_CREDENTIALS.search(about))

    def _is_ours(self, parameter: Declared, *, fixed: bool = True) -> bool:
        name = cast("str", parameter.node["name"])
        if self.is_credential(parameter):
            self._findings.repaired(parameter.place, f"{name} is no argument: credentials are set on the provider")
            return True
        if parameter.node["in"] != "header":
            return False
        return name.lower() in _OURS or (fixed and self._only_value(parameter.node) is not None)

    def _only_value(self, node: Node) -> str | None:
        schema = node if self._swagger else as_object(node.get("schema"))
        default, choices = schema.get("default"), as_list(schema.get("enum"))
        value = choices[0] if len(choices) == 1 else default
        return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None

    def _input(self, parameter: Declared, place: ParameterPlace, name: str, refs: set[str]) -> Input:
        node, where = parameter.node, parameter.place
        schema, media_type = self.schema(parameter, refs)
        style, explode = self.style(node, place, where)
        argument = Argument(
            key="",
            place=place,
            name=name,
            style="" if media_type else style,
            explode=explode,
            allow_reserved=node.get("allowReserved") is True,
            media_type=media_type,
        )
        required = place == "path" or (node.get("required") is True and name.lower() not in _IDEMPOTENCY)
        return Input(argument, schema, required)

    def schema(self, parameter: Declared, refs: set[str]) -> tuple[JsonObject, str]:
        """A parameter's schema, and the media type when it is declared by `content`. Shared ones are read once."""
        known = self._converted.get(parameter.place)
        if known is None:
            used: set[str] = set()
            schema, media_type = self._schema(parameter, used)
            known = self._converted[parameter.place] = (schema, media_type, used)
        schema, media_type, used = known
        refs |= used
        return schema, media_type

    def _schema(self, parameter: Declared, refs: set[str]) -> tuple[JsonObject, str]:
        node, where = parameter.node, parameter.place
        media_type = ""
        if not self._swagger and isinstance(node.get("schema"), dict | bool):
            schema = self._schemas.convert(node["schema"], where.child("schema"), refs)
        elif content := as_object(node.get("content")):
            media_type, media = next(iter(content.items()))
            schema = self._schemas.convert(
                as_object(media).get("schema", {}), where.child("content", media_type, "schema"), refs
            )
        else:
            if not self._swagger:
                self._findings.repaired(where, "has no schema; its own keywords are taken as one")
            own = {key: value for key, value in node.items() if key in KEYWORDS and key != "required"}
            schema = self._schemas.convert(own, where, refs)
        return described(schema, node.get("description")), media_type

    def style(self, node: Node, place: ParameterPlace, where: Place) -> tuple[Style, bool]:
        """The style and `explode` of a parameter, by the rules of its version."""
        if self._swagger:
            return self.collection_style(node, place)
        allowed = _STYLES[place]
        declared = node.get("style", allowed[0])
        style: Style | None = next((known for known in allowed if known == declared), None)
        if style is None:
            self._findings.repaired(where, f"there is no style {declared!r} in {place}; taken as {allowed[0]!r}")
            style = allowed[0]
        explode = node.get("explode")
        return style, explode if isinstance(explode, bool) else style in ("form", "deepObject")

    def collection_style(self, node: Node, place: ParameterPlace) -> tuple[Style, bool]:
        """2.0's collectionFormat."""
        declared = as_text(node.get("collectionFormat")) or "csv"
        if place in ("path", "header"):
            return "simple", False
        style: Style = _COLLECTION_FORMATS.get(declared, "form")
        return style, declared == "multi"


def described(schema: JsonObject, description: JsonValue) -> JsonObject:
    return {**schema, "description": description} if isinstance(description, str) and description else schema


def raw_kind(document: Document, node: JsonValue, place: Place) -> Raw:
    """Whether a string, or each string of a list, stands for bytes."""
    found = document.follow(place, node, quiet=True)
    if found is None:
        return ""
    items = as_object(found.node).get("items")
    if isinstance(items, dict):
        found = document.follow(found.place.child("items"), items, quiet=True)
    return _raw_string(as_object(found.node)) if found is not None else ""


def _raw_string(schema: Node) -> Raw:
    if schema.get("format") in ("byte", "base64") or schema.get("contentEncoding") == "base64":
        return "base64"
    if schema.get("format") == "binary" or schema.get("type") == "file":
        return "bytes"
    media_type = as_text(schema.get("contentMediaType"))
    return "bytes" if media_type and not re.search(r"^text/|json|xml", media_type) else ""
