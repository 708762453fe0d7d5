"""Mirrored headers against the reference implementation: the same schemas and values, the same verdict."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import encode_header_value, find_invalid_x_mcp_header, validate_mcp_param_headers

from toolyard.core.schema import Schema
from toolyard.faces.mcp.headers import InvalidAnnotation, check_params, check_routing, declared, decode
from toolyard.faces.mcp.wire import RpcError

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
KINDS = st.sampled_from(["string", "integer", "boolean", "number", "object", ["string"], None])
TOKENS = st.sampled_from(["Region", "region", "A", "b c", "", "ü", 7])


def of_kind(kind: Any, token: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {} if kind is None else {"type": kind}
    return schema if token is None else {**schema, "x-mcp-header": token}


LEAVES = st.builds(of_kind, KINDS, st.one_of(st.none(), TOKENS))
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3)}),
        st.fixed_dictionaries({"items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, max_size=2)}),
        st.fixed_dictionaries({"$defs": st.dictionaries(st.sampled_from("xy"), inner, max_size=2)}),
        st.fixed_dictionaries({"default": inner}),
    ),
    max_leaves=6,
)


def is_valid(schema: dict[str, Any]) -> bool:
    try:
        declared(Schema(schema))
    except InvalidAnnotation:
        return False
    return True


@given(SCHEMAS)
def test_an_annotation_is_valid_when_the_reference_says_so(schema: dict[str, Any]) -> None:
    assert is_valid(schema) == (find_invalid_x_mcp_header(schema) is None)


NESTED = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "x-mcp-header": "Str"},
        "i": {"type": "integer", "x-mcp-header": "Int"},
        "o": {"properties": {"b": {"type": "boolean", "x-mcp-header": "Flag"}}},
    },
}
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={"s": SCALARS, "i": SCALARS, "o": st.one_of(SCALARS, st.fixed_dictionaries({}, optional={"b": SCALARS}))},
)
VALUES = st.one_of(
    SCALARS.map(lambda value: encode_header_value("true" if value is True else str(value))),
    st.sampled_from(["1", "1.0", "01", "1.5", "true", "=?base64?!?=", "=?base64?YQ==?=", "=?base64?YR==?=", ""]),
)
HEADERS = st.dictionaries(st.sampled_from(["mcp-param-str", "mcp-param-int", "mcp-param-flag"]), VALUES)


@given(ARGUMENTS, HEADERS)
def test_headers_agree_with_arguments_when_the_reference_says_so(
    arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    expected = validate_mcp_param_headers(NESTED, arguments, headers)
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    found = declared(Schema(NESTED))
    if expected is None:
        check_params(found, arguments, dict(raw), raw)
    else:
        with pytest.raises(RpcError) as refused:
            check_params(found, arguments, dict(raw), raw)
        assert refused.value.code == expected.code == -32020


@given(st.text())
def test_a_header_is_read_back_as_it_was_meant(value: str) -> None:
    assert decode(encode_header_value(value).encode("latin-1")) == value


@pytest.mark.parametrize("value", ["  tools/call", "tools/call\t "])
def test_whitespace_around_a_value_is_none_of_it(value: str) -> None:
    raw = [
        (b"mcp-protocol-version", b" 2026-07-28 "),
        (b"mcp-method", value.encode()),
        (b"mcp-name", b" echo "),
    ]
    check_routing("tools/call", "2026-07-28", {"name": "echo"}, dict(raw), raw)
