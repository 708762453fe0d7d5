"""The manifest's JSON Schema, for editors."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from toolyard.core.json import JsonObject
from toolyard.manifest.models import Manifest
from toolyard.manifest.secret import Secret


def json_schema() -> JsonObject:
    """Draft 2020-12. Rules between fields, references and the form of addresses are checked on load only."""
    schema = msgspec.json.schema(Manifest, schema_hook=_schema_of)
    return cast(
        "JsonObject",
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Toolyard manifest", **schema},
    )


def _schema_of(kind: type) -> dict[str, Any]:
    if kind is Secret:
        return {"type": "string"}
    raise NotImplementedError(kind)
