"""What goes on the wire, as a table: one row per rule of the OpenAPI parameter and body formats."""

from __future__ import annotations

from typing import Any

import pytest
from tests.providers.openapi.documents import api_with, imported, with_body, with_parameters
from tests.requirements import requirement

from toolyard.core.errors import CallError, ErrorCode
from toolyard.providers.openapi.request import Request, build_request

C = ["blue", "black"]
O = {"R": 100, "G": 200}  # noqa: E741
ANY: dict[str, Any] = {}


def request_of(document: Any, arguments: dict[str, Any], **more: Any) -> Request:
    api = imported(document)
    return build_request(api.operations["op"], arguments, **more)


def target(parameter: dict[str, Any], value: Any, path: str = "/x") -> str:
    document = with_parameters({"name": "c", "schema": ANY, **parameter}, path=path)
    return request_of(document, {"c": value}).target


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("simple", False, "a/b?c", "/a%2Fb%3Fc"),
        ("simple", False, C, "/blue,black"),
        ("simple", False, O, "/R,100,G,200"),
        ("simple", True, O, "/R=100,G=200"),
        ("label", False, "blue", "/.blue"),
        ("label", False, C, "/.blue,black"),
        ("label", True, C, "/.blue.black"),
        ("label", False, O, "/.R,100,G,200"),
        ("label", True, O, "/.R=100.G=200"),
        ("matrix", False, "blue", "/;c=blue"),
        ("matrix", False, C, "/;c=blue,black"),
        ("matrix", True, C, "/;c=blue;c=black"),
        ("matrix", False, O, "/;c=R,100,G,200"),
        ("matrix", True, O, "/;R=100;G=200"),
        ("simple", False, "é ü", "/%C3%A9%20%C3%BC"),
        ("simple", False, 7.0, "/7"),
        ("simple", False, "..a", "/..a"),
        ("simple", False, "%2e%2e", "/%252e%252e"),
    ],
)
@requirement("openapi.execute")
def test_path_styles(style: str, explode: bool, value: Any, expected: str) -> None:
    parameter = {"in": "path", "required": True, "style": style, "explode": explode}
    assert target(parameter, value, "/{c}") == expected


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        ({}, "", "?c="),
        ({}, C, "?c=blue&c=black"),
        ({}, O, "?R=100&G=200"),
        ({}, [], ""),
        ({}, None, ""),
        ({}, {}, ""),
        ({}, True, "?c=true"),
        ({}, 5.0, "?c=5"),
        ({}, 1e-7, "?c=0.0000001"),
        ({}, 1e22, "?c=10000000000000000000000"),
        ({}, "a b+c&d=e", "?c=a%20b%2Bc%26d%3De"),
        ({"explode": False}, C, "?c=blue,black"),
        ({"explode": False}, ["a,b", "c"], "?c=a%2Cb,c"),
        ({"explode": False}, O, "?c=R,100,G,200"),
        ({"style": "spaceDelimited", "explode": False}, C, "?c=blue%20black"),
        ({"style": "pipeDelimited", "explode": False}, C, "?c=blue%7Cblack"),
        ({"style": "pipeDelimited", "explode": True}, C, "?c=blue&c=black"),
        (
            {"style": "deepObject"},
            {"a": 1, "b": {"c": 2}, "l": ["x"]},
            "?c%5Ba%5D=1&c%5Bb%5D%5Bc%5D=2&c%5Bl%5D%5B0%5D=x",
        ),
        ({"allowReserved": True}, "a/b:c", "?c=a/b:c"),
        ({"allowReserved": True}, "a#b&c+d e%", "?c=a%23b%26c%2Bd%20e%25"),
        ({"schema": None, "content": {"application/json": {"schema": {}}}}, {"x": 1}, "?c=%7B%22x%22%3A1%7D"),
    ],
)
@requirement("openapi.execute")
def test_query_styles(parameter: dict[str, Any], value: Any, expected: str) -> None:
    assert target({"in": "query", **parameter}, value) == f"/x{expected}"


@pytest.mark.parametrize(
    ("collection_format", "expected"),
    [("csv", "a,b"), ("ssv", "a%20b"), ("tsv", "a%09b"), ("pipes", "a%7Cb"), (None, "a,b"), ("multi", "a&c=b")],
)
@requirement("openapi.execute")
def test_collection_formats_of_2_0(collection_format: str | None, expected: str) -> None:
    parameter = {"name": "c", "in": "query", "type": "array", "items": {"type": "string"}}
    if collection_format:
        parameter["collectionFormat"] = collection_format
    paths = {"/x": {"get": {"operationId": "op", "parameters": [parameter]}}}
    document = {"swagger": "2.0", "info": {"title": "T"}, "host": "h.test", "paths": paths}
    assert request_of(document, {"c": ["a", "b"]}).target == f"/x?c={expected}"


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        ({}, "bl ue/ä", "bl ue/ä"),
        ({}, C, "blue,black"),
        ({}, O, "R,100,G,200"),
        ({"explode": True}, O, "R=100,G=200"),
        ({}, 3.0, "3"),
        ({"schema": None, "content": {"application/json": {"schema": {}}}}, {"x": 1}, '{"x":1}'),
    ],
)
@requirement("openapi.execute")
def test_header_styles(parameter: dict[str, Any], value: Any, expected: str) -> None:
    document = with_parameters({"name": "X-C", "in": "header", "schema": ANY, **parameter})
    assert dict(request_of(document, {"X-C": value}).headers)["X-C"] == expected


@requirement("openapi.execute")
def test_cookies_make_one_header_and_cannot_make_a_second_cookie() -> None:
    cookies = [{"name": name, "in": "cookie", "schema": ANY} for name in ("a", "c", "e")]
    flat = {"name": "f", "in": "cookie", "explode": False, "schema": ANY}
    arguments = {"a": "1;evil=2", "c": ["x", "y"], "e": 'q",\\% \n', "f": ["x,1", "y"]}
    request = request_of(with_parameters(*cookies, flat), arguments)
    assert dict(request.headers)["Cookie"] == "a=1%3Bevil=2; c=x; c=y; e=q%22%2C%5C%25%20%0A; f=x%2C1,y"


@pytest.mark.parametrize("value", ["", ".", "..", None, [], {}])
@requirement("openapi.execute")
def test_a_path_value_that_would_call_another_address_is_refused(value: Any) -> None:
    with pytest.raises(CallError) as caught:
        target({"in": "path", "required": True}, value, "/users/{c}")
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS
    assert "'c'" in caught.value.message


def test_two_values_cannot_make_a_dot_segment_together() -> None:
    parameters = [{"name": name, "in": "path", "required": True, "schema": ANY} for name in ("a", "b")]
    with pytest.raises(CallError, match=r"segment '\.\.'"):
        request_of(with_parameters(*parameters, path="/u/{a}{b}/k"), {"a": ".", "b": "."})


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/delta(token='{c}')", "/delta(token='a%20b')"),
        ("/{c}:verb", "/a%20b:verb"),
        ("/x/{c}#versions", "/x/a%20b"),
        ("/ö/{c}?fixed=1", "/%C3%B6/a%20b?fixed=1"),
    ],
)
def test_paths_are_filled_in_place(path: str, expected: str) -> None:
    assert target({"in": "path", "required": True}, "a b", path) == expected


def test_a_multi_segment_value_keeps_its_slashes_and_no_dots() -> None:
    assert target({"in": "path", "required": True}, "a/b c", "/f/{+c}") == "/f/a/b%20c"
    with pytest.raises(CallError):
        target({"in": "path", "required": True}, "a/../b", "/f/{+c}")


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b"])
@requirement("openapi.execute")
def test_a_header_value_with_control_characters_is_refused(value: str) -> None:
    document = with_parameters({"name": "X-C", "in": "header", "schema": ANY})
    with pytest.raises(CallError, match="'X-C' holds a line break"):
        request_of(document, {"X-C": value})


OBJECT = {"type": "object", "properties": {"a": {}, "b": {}, "m": {}}}
FILE = {"type": "string", "format": "binary"}


@pytest.mark.parametrize(
    ("document", "arguments", "content_type", "expected"),
    [
        (with_body("application/json; charset=utf-8", OBJECT), {"a": 1, "b": None}, None, b'{"a":1,"b":null}'),
        (with_body("application/json", OBJECT), {}, None, b"{}"),
        (with_body("application/vnd.x+json", {"type": "array"}), {"body": [1]}, None, b"[1]"),
        (with_body("application/json", {}), {"body": "text"}, None, b'"text"'),
        (with_body("application/json", {}), {"body": None}, None, b"null"),
        (with_body("application/x-www-form-urlencoded", OBJECT), {"a": "x y&", "b": True}, None, b"a=x+y%26&b=true"),
        (with_body("application/x-www-form-urlencoded", OBJECT), {"a": ["1", "2"]}, None, b"a=1&a=2"),
        (with_body("application/x-www-form-urlencoded", OBJECT), {"m": {"k": "v"}}, None, b"m=%7B%22k%22%3A%22v%22%7D"),
        (
            with_body("application/x-www-form-urlencoded", OBJECT, encoding={"m": {"style": "deepObject"}}),
            {"m": {"k": "v"}},
            None,
            b"m%5Bk%5D=v",
        ),
        (with_body("text/plain", {"type": "string"}), {"body": "grüß"}, "text/plain; charset=utf-8", "grüß".encode()),
        (with_body("application/octet-stream", FILE), {"body": "AAEC"}, None, b"\x00\x01\x02"),
        (with_body("image/*", FILE), {"body": "data:image/png;name=a.png;base64,AAEC"}, "image/png", b"\x00\x01\x02"),
        (with_body("image/jpeg", {"type": "string", "format": "byte"}), {"body": "AAEC"}, None, b"AAEC"),
        (with_body("*/*", {}), {"body": {"a": 1}}, "application/json", b'{"a":1}'),
        (with_body("*/*", {}), {"body": "a"}, "text/plain; charset=utf-8", b"a"),
        (
            with_body("application/x-ndjson", {"type": "object"}),
            {"body": [{"a": 1}, {"a": 2}]},
            None,
            b'{"a":1}\n{"a":2}\n',
        ),
    ],
)
@requirement("openapi.execute")
def test_bodies(document: Any, arguments: dict[str, Any], content_type: str | None, expected: bytes) -> None:
    request = request_of(document, arguments)
    declared = next(iter(document["paths"]["/x"]["post"]["requestBody"]["content"]))
    assert (request.body, dict(request.headers)["Content-Type"]) == (expected, content_type or declared)


@requirement("openapi.execute")
def test_multipart_parts_come_in_schema_order_with_their_types() -> None:
    schema = {
        "type": "object",
        "properties": {"attributes": {"type": "object"}, "tags": {"type": "array"}, "file": FILE, 'q"\n': {}},
    }
    document = with_body("multipart/form-data", schema, encoding={"tags": {"contentType": "text/csv"}})
    arguments = {
        "file": "data:image/png;name=a%22.png;base64,AAEC",
        "tags": ["x", "y"],
        "attributes": {"n": 1},
        "q": "z",
    }
    request = request_of(document, arguments, boundary="B")
    assert dict(request.headers)["Content-Type"] == "multipart/form-data; boundary=B"
    assert request.body == (
        b'--B\r\nContent-Disposition: form-data; name="attributes"\r\nContent-Type: application/json\r\n\r\n{"n":1}\r\n'
        b'--B\r\nContent-Disposition: form-data; name="tags"\r\nContent-Type: text/csv\r\n\r\nx\r\n'
        b'--B\r\nContent-Disposition: form-data; name="tags"\r\nContent-Type: text/csv\r\n\r\ny\r\n'
        b'--B\r\nContent-Disposition: form-data; name="file"; filename="a%22.png"\r\n'
        b"Content-Type: image/png\r\n\r\n\x00\x01\x02\r\n"
        b'--B\r\nContent-Disposition: form-data; name="q%22%0A"\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nz\r\n'
        b"--B--\r\n"
    )


def test_a_2_0_file_upload_is_multipart_and_plain_fields_are_a_form() -> None:
    def document(kind: str) -> Any:
        parameters = [{"name": "f", "in": "formData", "type": kind}, {"name": "n", "in": "formData", "type": "integer"}]
        paths = {"/x": {"post": {"operationId": "op", "consumes": ["multipart/form-data"], "parameters": parameters}}}
        if kind != "file":
            paths["/x"]["post"]["consumes"] = ["application/x-www-form-urlencoded"]
        return {"swagger": "2.0", "info": {}, "host": "h.test", "paths": paths}

    upload = request_of(document("file"), {"f": "AAEC", "n": 1}, boundary="B")
    assert b'name="f"; filename="f"\r\nContent-Type: application/octet-stream\r\n\r\n\x00\x01\x02\r\n' in (
        upload.body or b""
    )
    assert request_of(document("string"), {"f": "a b", "n": 1}).body == b"f=a+b&n=1"


def test_bytes_that_are_no_base64_are_refused() -> None:
    with pytest.raises(CallError, match="'body' must hold bytes as base64"):
        request_of(with_body("application/octet-stream", FILE), {"body": "not base64!"})


@pytest.mark.parametrize(
    ("value", "media_type"), [([], "application/json-patch+json"), ({}, "application/merge-patch+json")]
)
def test_several_patch_types_go_by_the_value(value: Any, media_type: str) -> None:
    types = ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json")
    content = {name: {"schema": {"type": "object"}} for name in types}
    operation = {"operationId": "op", "requestBody": {"content": content}, "responses": {}}
    request = request_of(api_with({"/x": {"patch": operation}}), {"body": value})
    assert dict(request.headers)["Content-Type"] == media_type


@requirement("openapi.execute")
def test_get_and_head_have_no_body_even_if_declared() -> None:
    for method in ("get", "head"):
        api = imported(with_body("application/json", OBJECT, method=method))
        assert api.operations["op"].body is None
        assert [note.what for note in api.report.repaired] == [f"the body is left out: {method.upper()} has none"]


def test_a_post_without_arguments_for_an_optional_body_has_none() -> None:
    document = with_body("application/json", OBJECT)
    document["paths"]["/x"]["post"]["requestBody"]["required"] = False
    request = request_of(document, {})
    assert (request.body, "Content-Type" in dict(request.headers)) == (None, False)


@requirement("openapi.execute")
def test_odd_names_have_legal_keys_and_go_out_under_their_own_names() -> None:
    names = ["$filter", "filter[name]", "@odata.type", "statuses[]"]
    api = imported(with_parameters(*({"name": name, "in": "query", "schema": ANY} for name in names)))
    keys = [argument.key for argument in api.operations["op"].arguments]
    assert keys == ["filter", "filter_name", "odata.type", "statuses"]
    request = build_request(api.operations["op"], dict.fromkeys(keys, "v"))
    assert request.target == "/x?%24filter=v&filter%5Bname%5D=v&%40odata.type=v&statuses%5B%5D=v"


def test_one_name_in_two_places_makes_two_arguments() -> None:
    document = with_body("application/json", {"type": "object", "properties": {"id": {}}}, method="put")
    document["paths"] = {"/x/{id}": document["paths"]["/x"]}
    document["paths"]["/x/{id}"]["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": ANY}]
    request = request_of(document, {"id": "p", "id__body": "b"})
    assert (request.target, request.body) == ("/x/p", b'{"id":"b"}')


def test_accept_names_the_answers_of_the_operation_json_first() -> None:
    document = with_parameters()
    document["paths"]["/x"]["get"]["responses"] = {
        "200": {"content": {"application/pdf": {}, "application/json": {}}},
        "400": {"content": {"text/html": {}}},
    }
    assert dict(request_of(document, {}).headers)["Accept"] == "application/json, application/pdf, */*;q=0.1"


def test_a_header_with_one_possible_value_is_always_sent_and_no_argument() -> None:
    version = {
        "name": "X-Version",
        "in": "header",
        "required": True,
        "schema": {"type": "string", "enum": ["2022-06-28"]},
    }
    api = imported(with_parameters(version))
    assert api.operations["op"].arguments == ()
    assert ("X-Version", "2022-06-28") in build_request(api.operations["op"], {}).headers


def test_an_idempotency_header_is_filled_when_the_caller_gives_none() -> None:
    header = {"name": "Idempotency-Key", "in": "header", "required": True, "schema": {"type": "string"}}
    api = imported(with_parameters(header, method="post"))
    operation = api.operations["op"]
    assert ("Idempotency-Key", "k1") in build_request(operation, {}, idempotency_key="k1").headers
    given = build_request(operation, {"Idempotency-Key": "mine"}, idempotency_key="k1")
    assert [value for name, value in given.headers if name == "Idempotency-Key"] == ["mine"]
