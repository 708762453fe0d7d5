"""Documents as a whole: versions, names, servers, damage."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.providers.openapi.documents import api_with, imported, schema_of, tool_of, with_parameters
from tests.requirements import requirement

from toolyard.core.tool import Annotations

OPERATION = {"responses": {}}


@requirement("openapi.import")
def test_path_level_parameters_apply_and_an_operation_s_own_come_before_them() -> None:
    shared = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
        {"name": "q", "in": "query", "schema": {"type": "string"}},
    ]
    own = [{"name": "q", "in": "query", "required": True, "schema": {"type": "integer"}}]
    api = imported(api_with({"/x/{id}": {"parameters": shared, "get": {"operationId": "op", "parameters": own}}}))
    assert schema_of(api) == {
        "type": "object",
        "properties": {"id": {"type": "string"}, "q": {"type": "integer"}},
        "required": ["id", "q"],
        "additionalProperties": False,
    }


@requirement("openapi.import")
def test_names_come_from_the_operation_id_or_from_method_and_path() -> None:
    paths = {
        "/pets/{id}": {"get": OPERATION, "delete": {"operationId": "pets/remove!", **OPERATION}},
        "/same1": {"get": {"operationId": "Same"}},
        "/same2": {"get": {"operationId": "same"}},
        "/long": {"get": {"operationId": "x" * 300}},
    }
    api = imported(api_with(paths))
    names = {operation.key: operation.name for operation in api.imported.operations}
    assert names["GET /pets/{id}"] == "get_pets_id"
    assert names["DELETE /pets/{id}"] == "pets_remove"
    assert names["GET /same1"].startswith("Same_")
    assert names["GET /same2"].startswith("same_")
    assert max(map(len, names.values())) == 64
    backwards = imported(api_with(dict(reversed(paths.items()))))
    assert names == {operation.key: operation.name for operation in backwards.imported.operations}


@requirement("openapi.import")
def test_annotations_follow_the_method() -> None:
    methods = ("get", "put", "post", "delete")
    api = imported(api_with({"/x": {method: {"operationId": method} for method in methods}}))
    read, destroy = Annotations(True, False, True, True), Annotations(False, True, True, True)
    assert [tool.annotations for tool in api.tools] == [
        read,
        Annotations(False, False, True, True),
        Annotations(False, False, False, True),
        destroy,
    ]


def test_a_tool_is_told_by_summary_and_description() -> None:
    operation = {
        "operationId": "op",
        "summary": "Lists pets",
        "description": "All of them.",
        "deprecated": True,
        "tags": ["p"],
    }
    tool = tool_of(imported(api_with({"/x": {"get": operation}})))
    assert tool.description == "Deprecated. Lists pets\n\nAll of them."
    assert (tool.title, tool.tags, dict(tool.origin)) == ("Lists pets", ("p",), {"method": "GET", "path": "/x"})
    assert tool_of(imported(api_with({"/x": {"get": {"operationId": "op"}}}))).description == "GET /x"


SWAGGER = {"swagger": "2.0", "info": {"title": "T"}, "paths": {"/x": {"get": {"operationId": "op"}}}}


@pytest.mark.parametrize(
    ("document", "document_url", "server"),
    [
        ({"servers": [{"url": "https://a.test/v1/"}]}, "", "https://a.test/v1"),
        ({"servers": [{"url": "/v1"}]}, "https://h.test/docs/api.json", "https://h.test/v1"),
        ({"servers": [{"url": "v1"}]}, "https://h.test/docs/api.json", "https://h.test/docs/v1"),
        ({"servers": [{"url": "//o.test/v1"}]}, "https://h.test/api.json", "https://o.test/v1"),
        ({}, "https://h.test/docs/api.json", "https://h.test"),
        ({"servers": [{"url": "/v1"}]}, "", ""),
        (
            {
                "servers": [
                    {"url": "https://{r}.test/{v}", "variables": {"r": {"default": "eu"}, "v": {"enum": ["v2"]}}}
                ]
            },
            "",
            "https://eu.test/v2",
        ),
    ],
)
@requirement("openapi.import")
def test_servers_of_3_x(document: Any, document_url: str, server: str) -> None:
    whole = {"openapi": "3.1.0", "info": {}, "paths": {"/x": {"get": {"operationId": "op"}}}, **document}
    assert imported(whole, document_url=document_url).server == server


@pytest.mark.parametrize(
    ("document", "server"),
    [
        ({"host": "h.test", "basePath": "/v1", "schemes": ["http", "https"]}, "https://h.test/v1"),
        ({"host": "h.test", "schemes": ["http"]}, "http://h.test"),
        ({}, "https://docs.test"),
    ],
)
@requirement("openapi.import")
def test_the_server_of_2_0(document: Any, server: str) -> None:
    assert imported({**SWAGGER, **document}, document_url="https://docs.test/a/swagger.json").server == server


def test_an_operation_s_own_server_comes_first() -> None:
    item = {
        "servers": [{"url": "https://item.test"}],
        "get": {"operationId": "a", "servers": [{"url": "https://op.test"}]},
        "put": {"operationId": "b"},
    }
    api = imported(api_with({"/x": item, "/y": {"get": {"operationId": "c"}}}))
    assert [api.operations[name].server for name in "abc"] == ["https://op.test", "https://item.test", ""]


def test_a_placeholder_server_is_asked_for() -> None:
    api = imported(api_with({"/x": {"get": OPERATION}}, servers=[{"url": "https://{host}/v1"}]))
    assert api.report.needs == ("a base URL: the document does not say where the API is",)
    api = imported(api_with({"/x": {"get": OPERATION}}, servers=[{"url": "http://localhost:3000"}]))
    assert api.report.needs == ("a base URL: the document names only the placeholder http://localhost:3000",)


def test_webhooks_and_callbacks_are_no_tools() -> None:
    operation = {"operationId": "op", "callbacks": {"c": {"{$url}": {"post": OPERATION}}}}
    document = {**api_with({"/x": {"post": operation}}), "openapi": "3.1.0", "webhooks": {"w": {"post": OPERATION}}}
    assert [tool.name for tool in imported(document).tools] == ["op"]


def test_3_2_has_query_and_additional_operations() -> None:
    item = {"query": {"operationId": "q"}, "additionalOperations": {"COPY": {"operationId": "c"}}}
    api = imported({**api_with({"/x": item}), "openapi": "3.2.0"})
    assert [(tool.name, tool.origin["method"]) for tool in api.tools] == [("q", "QUERY"), ("c", "COPY")]


def test_path_items_and_operations_may_be_references() -> None:
    document = with_parameters(path="/real")
    document["paths"]["/item"] = {"$ref": "#/paths/~1real"}
    assert [operation.path for operation in imported(document).imported.operations] == ["/real", "/item"]


def test_two_operations_of_one_path_may_be_told_apart_by_a_fragment() -> None:
    api = imported(api_with({"/x#one": {"get": {"operationId": "one"}}, "/x#two": {"get": {"operationId": "two"}}}))
    assert [tool.name for tool in api.tools] == ["one", "two"]


# --- damage


def sound() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for name in ("a", "b", "c"):
        parameter = {
            "name": "q",
            "in": "query",
            "schema": {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
        }
        body = {
            "content": {"application/json": {"schema": {"type": "object", "properties": {"x": {"type": "string"}}}}}
        }
        paths[f"/{name}/{{id}}"] = {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "post": {
                "operationId": name,
                "tags": [name],
                "parameters": [parameter],
                "requestBody": body,
                "responses": {},
            },
        }
    number = {"type": "integer", "minimum": 1}
    schemas = {name: {"type": "object", "properties": {"n": {**number}}} for name in ("a", "b", "c")}
    return api_with(paths, components={"schemas": schemas}, tags=[])


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [found for key, value in inner for found in [(*path, key), *places(value, (*path, key))]]


OF_A = [
    place
    for place in places(sound())
    if place[:2] in (("paths", "/a/{id}"),) or place[:3] == ("components", "schemas", "a")
]
WRONG = st.sampled_from(
    [None, True, 7, -1.5, "text", [], {}, [None], {"$ref": "#/nowhere"}, {"$ref": 5}, {"$ref": "#"}, [[[]]]]
)


@settings(max_examples=250, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OF_A), WRONG), min_size=1, max_size=4))
@requirement("openapi.import")
def test_damage_costs_no_operation_that_it_does_not_touch(damages: list[tuple[tuple[Any, ...], Any]]) -> None:
    document = copy.deepcopy(sound())
    for place, wrong in damages:
        node: Any = document
        try:
            for key in place[:-1]:
                node = node[key]
            if isinstance(node, dict) and isinstance(place[-1], int):
                continue
            node[place[-1]] = copy.deepcopy(wrong)
        except (TypeError, KeyError, IndexError):
            continue  # an earlier damage took away what this one would hit
    whole, damaged = imported(sound()), imported(document)
    untouched = {tool.name: tool for tool in damaged.tools}
    for name in ("b", "c"):
        assert untouched[name] == tool_of(whole, name)
        assert damaged.operations[name] == whole.operations[name]
    if "a" not in untouched:
        assert damaged.report.dropped or damages_rename(document)
    if damaged.report.dropped or damaged.report.repaired:
        pointers = {note.pointer for note in (*damaged.report.dropped, *damaged.report.repaired)}
        assert any("~1a~1" in pointer or "/a" in pointer for pointer in pointers)


def damages_rename(document: Any) -> bool:
    """Whether the damage hit what names the tool, or took the operation away altogether."""
    operation = document["paths"]["/a/{id}"]
    operation = operation.get("post") if isinstance(operation, dict) else None
    return not (isinstance(operation, dict) and operation.get("operationId") == "a" and "$ref" not in operation)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5) | st.just("#/paths/~1x"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "$ref",
                    "get",
                    "parameters",
                    "schema",
                    "type",
                    "properties",
                    "items",
                    "allOf",
                    "in",
                    "name",
                    "content",
                    "requestBody",
                    "servers",
                    "url",
                    "enum",
                    "required",
                    "application/json",
                    "/x",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=250, deadline=None)
@given(st.dictionaries(st.sampled_from(["/x", "/y/{id}", ""]), JSON), JSON, st.sampled_from(["3.0.0", "3.1.0"]))
def test_no_document_with_paths_makes_the_import_raise(paths: Any, more: Any, version: str) -> None:
    report = imported({"openapi": version, "info": more, "paths": paths, "servers": more, "components": more}).report
    assert report.imported <= 3 * 9


@settings(max_examples=100, deadline=None)
@given(JSON, JSON)
def test_no_2_0_document_with_paths_makes_the_import_raise(item: Any, more: Any) -> None:
    imported({"swagger": "2.0", "paths": {"/x": item}, "definitions": more, "schemes": more, "host": more})
