"""Every real document imports, and every operation of it is a sound tool."""

from __future__ import annotations

import re
from typing import Any

import jsonschema_rs
import orjson
import pytest
import yaml
from tests.providers.openapi.documents import CORPUS, MULTI_FILE, corpus_names, corpus_path, imported_file
from tests.requirements import requirement

from toolyard.providers.openapi.api import ImportedApi

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
SCHEMAS_PER_DOCUMENT = 120
LEGAL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
LEGAL_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def independent_count(name: str) -> int:
    """Operations counted by other means than the importer's."""
    path = corpus_path(name)
    text = path.read_bytes()
    document: Any = orjson.loads(text) if path.suffix == ".json" else yaml.load(text, yaml.CSafeLoader)
    return sum(
        isinstance(operation, dict)
        for item in document["paths"].values()
        for method, operation in item.items()
        if method in METHODS
    )


def dangling(value: Any, known: set[str]) -> list[str]:
    if isinstance(value, list):
        return [each for item in value for each in dangling(item, known)]
    if not isinstance(value, dict):
        return []
    reference = value.get("$ref")
    own = [reference] if isinstance(reference, str) and reference.removeprefix("#/$defs/") not in known else []
    return own + [each for item in value.values() for each in dangling(item, known)]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared/data/openapi beside the repository")
@pytest.mark.parametrize("name", corpus_names())
@requirement("openapi.import")
def test_every_operation_becomes_a_sound_tool(name: str) -> None:
    api = imported_file(corpus_path(name))
    assert len(api.tools) == independent_count(name)
    assert api.report.dropped == ()
    assert api.report.imported == len(api.tools)
    names = [tool.name for tool in api.tools]
    assert len({each.lower() for each in names}) == len(names)
    assert [each for each in names if not LEGAL_NAME.fullmatch(each)] == []
    for tool in api.tools[:: max(1, len(api.tools) // SCHEMAS_PER_DOCUMENT)]:
        schema: Any = tool.input_schema.document()
        assert jsonschema_rs.meta.is_valid(schema), tool.name
        jsonschema_rs.Draft202012Validator(schema, offline=True)
        assert dangling(schema, set(schema.get("$defs", {}))) == [], tool.name
        assert [key for key in schema["properties"] if not LEGAL_KEY.fullmatch(key)] == [], tool.name
        assert schema["additionalProperties"] is False
        assert tool.description


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared/data/openapi beside the repository")
@pytest.mark.parametrize("name", ["kubernetes.json", "spotify.yml", MULTI_FILE])
def test_importing_twice_gives_equal_bytes_and_they_read_back(name: str) -> None:
    first, second = (imported_file(corpus_path(name)) for _ in range(2))
    assert first.to_bytes() == second.to_bytes()
    restored = ImportedApi.from_bytes(first.to_bytes())
    assert restored.tools == first.tools
    assert restored.report == first.report
    assert [tool.definition_hash for tool in restored.tools] == [tool.definition_hash for tool in first.tools]


def test_a_multi_file_document_brings_its_files_along() -> None:
    api = imported_file(corpus_path(MULTI_FILE))
    create = next(tool for tool in api.tools if tool.origin == {"method": "POST", "path": "/v2/domains"})
    assert "name" in create.input_schema.document()["properties"]  # type: ignore[operator]
    assert not [note for note in api.report.repaired if "leads nowhere" in note.what]


def test_damage_in_one_document_is_reported_with_pointers() -> None:
    report = imported_file(corpus_path("broken.yaml")).report
    notes = {(note.pointer, note.what) for note in report.repaired}
    schema = "#/paths/~1dangling/post/requestBody/content/application~1json/schema"
    assert (schema, "the reference '#/components/schemas/Missing' leads nowhere; anything is accepted here") in notes
    assert ("#/paths/~1nopathparam~1{id}/get", "the path's {id} is declared nowhere; taken as required text") in notes
