"""Documents for the tests of this room: small ones made here, real ones read where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from toolyard.core.principal import LOCAL_OPERATOR
from toolyard.core.tool import Tool
from toolyard.providers.base import Invocation
from toolyard.providers.openapi.api import ImportedApi
from toolyard.providers.openapi.files import NoFiles
from toolyard.providers.openapi.importer import import_data, read_source

CORPUS = Path(__file__).parents[4] / "shared" / "data" / "openapi"
MULTI_FILE = "digitalocean/specification/DigitalOcean-public.v2.yaml"


def corpus_names() -> list[str]:
    if not CORPUS.is_dir():
        return []
    names = [path.name for path in CORPUS.iterdir() if path.suffix in (".json", ".yaml", ".yml")]
    return sorted([*names, MULTI_FILE])


def corpus_path(name: str) -> Path:
    path = CORPUS / name
    if not path.exists():
        pytest.skip(f"the corpus is not there: {name} belongs in shared/data/openapi beside the repository")
    return path


def imported_file(path: Path) -> ImportedApi:
    data, files = read_source(str(path), None, lambda url: b"")
    return ImportedApi("api", "API", import_data(data, files))


def imported(document: Any, *, document_url: str = "") -> ImportedApi:
    """Import a document that is given as Python values."""
    return ImportedApi("api", "API", import_data(orjson.dumps(document), NoFiles(), document_url=document_url))


def api_with(paths: Any, **more: Any) -> dict[str, Any]:
    """A 3.0 document around some paths."""
    info = {"title": "T", "version": "1"}
    return {"openapi": "3.0.3", "info": info, "servers": [{"url": "https://api.test/v1"}], "paths": paths, **more}


def with_parameters(*parameters: Any, path: str = "/x", method: str = "get", **more: Any) -> dict[str, Any]:
    operation = {"operationId": "op", "parameters": list(parameters), "responses": {}}
    return api_with({path: {method: operation}}, **more)


def with_body(media_type: str, schema: Any, *, method: str = "post", **media: Any) -> dict[str, Any]:
    body = {"required": True, "content": {media_type: {"schema": schema, **media}}}
    return api_with({"/x": {method: {"operationId": "op", "requestBody": body, "responses": {}}}})


def tool_of(api: ImportedApi, name: str = "op") -> Tool:
    return next(tool for tool in api.tools if tool.name == name)


def schema_of(api: ImportedApi, name: str = "op") -> Any:
    return tool_of(api, name).input_schema.document()


def invocation(tool: Tool, arguments: dict[str, Any], *, time_limit: float = 10, **more: Any) -> Invocation:
    return Invocation("call_1", tool, arguments, LOCAL_OPERATOR, time_limit, **more)
