"""The schema conversion, row by row."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from tests.providers.openapi.documents import imported, schema_of, with_body, with_parameters
from tests.requirements import requirement

REF = {"$ref": "#/components/schemas/A"}


def converted(schema: Any, **components: Any) -> Any:
    """What becomes of a query parameter's schema, with its `$defs`."""
    parameter = {"name": "p", "in": "query", "schema": schema}
    return schema_of(imported(with_parameters(parameter, components={"schemas": components})))


def property_of(schema: Any, **components: Any) -> Any:
    return converted(schema, **components)["properties"]["p"]


def notes_for(schema: Any, **components: Any) -> list[str]:
    parameter = {"name": "p", "in": "query", "schema": schema}
    return [
        note.what for note in imported(with_parameters(parameter, components={"schemas": components})).report.repaired
    ]


@pytest.mark.parametrize(
    ("found", "becomes"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"enum": ["a"], "type": "string", "nullable": True}, {"enum": ["a", None], "type": ["string", "null"]}),
        ({"type": "string", "x-nullable": True}, {"type": ["string", "null"]}),
        (
            {"allOf": [{"type": "object"}], "nullable": True},
            {"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]},
        ),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}),
        ({"exclusiveMinimum": 1}, {"exclusiveMinimum": 1}),
        ({"type": "file"}, {"type": "string", "format": "binary"}),
        ({"type": "array", "items": [{"type": "string"}]}, {"type": "array", "prefixItems": [{"type": "string"}]}),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, {"anyOf": [{"type": "integer"}, {"type": "number"}]}),
        ({"pattern": r"^[a-z]+$"}, {"pattern": r"^[a-z]+$"}),
        ({"pattern": "(unclosed"}, {}),
        ({"multipleOf": 0}, {}),
        ({"enum": [1, 1, 2]}, {"enum": [1, 2]}),
        ({"required": ["a", "a", 3]}, {"required": ["a"]}),
        ({"type": "any"}, {}),
        ({"minLength": "3", "maxLength": -1, "minItems": 2.0}, {"minItems": 2}),
        ({"description": 5, "title": "T"}, {"title": "T"}),
        ({"properties": [], "type": "object"}, {"type": "object"}),
        ({"properties": {"a": "x"}}, {"properties": {"a": {}}}),
        ({"$id": "http://x", "$anchor": "a", "$schema": "s", "xml": {}, "example": 1, "x-a": 1}, {}),
        ({"additionalProperties": {"type": "string"}}, {"additionalProperties": {"type": "string"}}),
        ({"default": [1], "format": "email"}, {"default": [1], "format": "email"}),
    ],
)
@requirement("openapi.import")
def test_keywords_of_all_versions_become_json_schema_2020_12(found: Any, becomes: Any) -> None:
    assert property_of(found) == becomes
    assert jsonschema_rs.meta.is_valid(converted(found))


@pytest.mark.parametrize(
    "found",
    [
        {"pattern": "(unclosed"}, {"multipleOf": 0}, {"enum": [1, 1]}, {"required": "name"}, {"type": "any"},
        {"minLength": "3"}, {"properties": []}, {"properties": {"a": "x"}}, {"allOf": {}}, {"items": 3},
    ],
)  # fmt: skip
def test_what_is_left_out_is_reported(found: Any) -> None:
    assert len(notes_for(found)) == 1


def test_read_only_properties_are_not_asked_for() -> None:
    schema = {"required": ["id", "name"], "properties": {"id": {"readOnly": True}, "name": {}}}
    assert property_of(schema) == {"required": ["name"], "properties": {"name": {}}}


def test_a_reference_keeps_what_is_said_beside_it() -> None:
    assert property_of({**REF, "description": "d", "nullable": True}, A={"type": "string"}) == {
        "anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}],
        "description": "d",
    }


def test_only_the_components_that_are_used_come_along() -> None:
    schema = converted(REF, A={"items": {"$ref": "#/components/schemas/B"}}, B={"type": "string"}, C={"type": "null"})
    assert schema["$defs"] == {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"type": "string"}}


def test_recursion_is_kept_and_a_chain_that_leads_only_to_itself_accepts_anything() -> None:
    tree = {"properties": {"child": REF, "name": {"type": "string"}}}
    schema = converted(REF, A=tree)
    validator = jsonschema_rs.Draft202012Validator(schema, offline=True)
    assert validator.is_valid({"p": {"child": {"child": {"name": "x"}}}})
    assert not validator.is_valid({"p": {"child": {"child": {"name": 1}}}})
    loop = converted(REF, A={"$ref": "#/components/schemas/B"}, B=REF)
    assert loop["$defs"] == {"A": {}}
    assert "the reference only leads to itself; anything is accepted here" in notes_for(REF, A=REF)


def test_a_dangling_reference_accepts_anything_and_is_reported() -> None:
    assert property_of(REF) == {}
    assert notes_for(REF) == ["the reference '#/components/schemas/A' leads nowhere; anything is accepted here"]


def test_pointers_are_unescaped_and_may_lead_anywhere() -> None:
    schema = converted({"$ref": "#/components/schemas/a~1b%20c"}, **{"a/b c": {"type": "string"}})
    assert list(schema["$defs"].values()) == [{"type": "string"}]
    assert jsonschema_rs.Draft202012Validator(schema, offline=True).is_valid({"p": "x"})


def test_a_discriminator_shows_in_its_branches() -> None:
    schema = {
        "oneOf": [REF, {"type": "string"}],
        "discriminator": {"propertyName": "kind", "mapping": {"a": "#/components/schemas/A", "b": "A"}},
    }
    assert property_of(schema, A={"type": "object"}) == {
        "anyOf": [
            {"allOf": [{"$ref": "#/$defs/A"}, {"properties": {"kind": {"enum": ["a", "b"]}}}]},
            {"type": "string"},
        ]
    }


def test_endless_nesting_stops() -> None:
    schema: Any = {"type": "string"}
    for _ in range(120):
        schema = {"type": "array", "items": schema}
    assert jsonschema_rs.meta.is_valid(converted(schema))
    assert any("levels deep" in note for note in notes_for(schema))


def test_unknown_arguments_are_refused_at_the_root_only() -> None:
    body = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}
    validator = jsonschema_rs.Draft202012Validator(
        schema_of(imported(with_body("application/json", body))), offline=True
    )
    assert validator.is_valid({"a": {"anything": 1}})
    assert not validator.is_valid({"b": 1})


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"type": "object", "properties": {"a": {}}}]},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}},
        {"type": "object"},
        {"type": "array", "items": {}},
        {"type": "object", "properties": {"a b": {}, "a_b": {}}},
    ],
)
def test_a_body_that_cannot_be_laid_flat_is_one_argument(schema: Any) -> None:
    root = schema_of(imported(with_body("application/json", schema)))
    assert (list(root["properties"]), root["required"]) == (["body"], ["body"])


def test_a_body_with_required_fields_is_required_even_if_the_document_forgot() -> None:
    document = with_body("application/json", {"properties": {"a": {}, "b": {}}, "required": ["a"]})
    document["paths"]["/x"]["post"]["requestBody"]["required"] = False
    assert schema_of(imported(document))["required"] == ["a"]
    document["paths"] = {"/x": {"delete": document["paths"]["/x"]["post"]}}
    assert "required" not in schema_of(imported(document))


CREDENTIALS = [
    {"name": "api_key", "in": "header"},
    {"name": "access_token", "in": "query"},
    {"name": "token", "in": "query", "description": "Authentication token. Requires scope: admin"},
    {"name": "X-Own", "in": "header"},
    {"name": "Authorization", "in": "header"},
]


def test_credentials_are_no_arguments() -> None:
    keep = {"name": "token", "in": "cookie", "description": "Where to continue", "schema": {}}
    schemes = {"own": {"type": "apiKey", "in": "header", "name": "X-Own"}}
    parameters = [{"schema": {"type": "string"}, **each} for each in CREDENTIALS]
    api = imported(with_parameters(*parameters, keep, components={"securitySchemes": schemes}))
    assert list(schema_of(api)["properties"]) == ["token"]
    assert len(api.report.repaired) == len(CREDENTIALS)
    assert api.report.needs[-1] == "credentials: API key in header X-Own"
