"""`/docs`: the API on one page, rendered here from its OpenAPI document. No script, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, Template
from starlette.responses import HTMLResponse, Response

_HERE = "toolyard.faces.http"


def reference_page(document: Mapping[str, Any]) -> Response:
    style = _text("reference.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = _template().render(document=document, groups=_groups(document), style=style)
    headers = {
        "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }
    return HTMLResponse(page, headers=headers)


def schema_name(schema: Mapping[str, Any] | None) -> str:
    """A schema in a few words: `ToolOut`, `array of string`, `string or null`."""
    if not schema:
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return " or ".join(dict.fromkeys(schema_name(option) for option in schema[word]))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    kind = str(schema.get("type", "any"))
    return f"array of {schema_name(schema.get('items'))}" if kind == "array" else kind


def _groups(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Operations by tag, in the order in which the routes were declared."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            entry = {**operation, "method": method.upper(), "path": path}
            groups.setdefault(operation.get("tags", ["Other"])[0], []).append(entry)
    return groups


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_text("reference.html"), globals={"schema_name": schema_name})


@cache
def _text(name: str) -> str:
    return resources.files(_HERE).joinpath(name).read_text("utf-8")
