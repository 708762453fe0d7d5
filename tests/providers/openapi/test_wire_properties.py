"""Whatever a value is, it arrives as that value and as nothing else."""

from __future__ import annotations

import re
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, unquote

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.providers.openapi.documents import imported, with_body, with_parameters

from toolyard.core.errors import CallError
from toolyard.providers.openapi.request import build_request

LEGAL_TARGET = re.compile(r"/[A-Za-z0-9\-._~:/?@!$&'()*+,;=%]*")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)


def operation_of(parameter: dict[str, Any], path: str = "/x") -> Any:
    return imported(with_parameters({"name": "c", "schema": {}, **parameter}, path=path)).operations["op"]


QUERY = operation_of({"in": "query"})
PATH = operation_of({"in": "path"}, "/a/{c}/b")
COOKIE = operation_of({"in": "cookie"})
FORM = imported(with_body("application/x-www-form-urlencoded", {"properties": {"c": {}, "d": {}}})).operations["op"]
JSON = imported(with_body("application/json", {})).operations["op"]
STYLED = [
    operation_of({"in": place, "style": style, "explode": explode}, path)
    for place, path, styles in (
        ("path", "/a/{c}", ("simple", "label", "matrix")),
        ("query", "/a", ("form", "spaceDelimited", "pipeDelimited", "deepObject")),
    )
    for style in styles
    for explode in (True, False)
]


@given(TEXT)
def test_a_query_value_comes_back(text: str) -> None:
    target = build_request(QUERY, {"c": text}).target
    assert parse_qsl(target.partition("?")[2], keep_blank_values=True) == [("c", text)]


@given(TEXT)
def test_a_path_value_comes_back_in_its_own_segment(text: str) -> None:
    if text in ("", ".", ".."):
        with pytest.raises(CallError):
            build_request(PATH, {"c": text})
        return
    start, a, segment, b = build_request(PATH, {"c": text}).target.split("/")
    assert (start, a, unquote(segment), b) == ("", "a", text, "b")


@given(TEXT)
def test_a_cookie_stays_one_cookie(text: str) -> None:
    header = dict(build_request(COOKIE, {"c": text}).headers)["Cookie"]
    assert {name: unquote(morsel.value) for name, morsel in SimpleCookie(header).items()} == {"c": text}


@given(TEXT, TEXT)
def test_form_fields_come_back(one: str, two: str) -> None:
    body = build_request(FORM, {"c": one, "d": two}).body
    assert body is not None
    assert parse_qsl(body.decode(), keep_blank_values=True) == [("c", one), ("d", two)]


@given(VALUE)
def test_a_json_body_comes_back(value: Any) -> None:
    body = build_request(JSON, {"body": value}).body
    assert body is not None
    if not any(abs(number) >= 2**63 for number in integers(value)):
        assert orjson.loads(body) == value


def integers(value: Any) -> list[int]:
    if isinstance(value, list | dict):
        return [each for item in (value.values() if isinstance(value, dict) else value) for each in integers(item)]
    return [value] if isinstance(value, int) else []


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(STYLED), VALUE)
def test_every_target_is_legal_whatever_the_value(operation: Any, value: Any) -> None:
    try:
        target = build_request(operation, {"c": value}).target
    except CallError:
        return
    assert LEGAL_TARGET.fullmatch(target)
    path = target.partition("?")[0]
    assert path.count("/") == operation.path.count("/")
    assert not {".", ".."} & {unquote(segment) for segment in path.split("/")}
