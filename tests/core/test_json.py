"""Canonical JSON is RFC 8785's, byte for byte: its own examples, and Node's JSON.stringify as the oracle."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.node import node
from toolyard.core.json import JsonValue, canonical, dumps, sha256

LARGEST_EXACT = 2**53 - 1

# RFC 8785, appendix B
NUMBERS = [
    (0.0, "0"),
    (-0.0, "0"),
    (5e-324, "5e-324"),
    (-5e-324, "-5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (-1.7976931348623157e308, "-1.7976931348623157e+308"),
    (9007199254740992.0, "9007199254740992"),
    (-9007199254740992.0, "-9007199254740992"),
    (295147905179352830000.0, "295147905179352830000"),
    (9.999999999999997e22, "9.999999999999997e+22"),
    (1e23, "1e+23"),
    (1.0000000000000001e23, "1.0000000000000001e+23"),
    (999999999999999700000.0, "999999999999999700000"),
    (999999999999999900000.0, "999999999999999900000"),
    (1e21, "1e+21"),
    (9.999999999999997e-7, "9.999999999999997e-7"),
    (0.000001, "0.000001"),
    (333333333.3333332, "333333333.3333332"),
    (333333333.33333325, "333333333.33333325"),
    (333333333.3333333, "333333333.3333333"),
    (333333333.3333334, "333333333.3333334"),
    (333333333.33333343, "333333333.33333343"),
    (-0.0000033333333333333333, "-0.0000033333333333333333"),
    (1424953923781206.2, "1424953923781206.2"),
]


@pytest.mark.parametrize(("number", "text"), NUMBERS, ids=[text for _, text in NUMBERS])
def test_numbers_are_written_as_ecmascript_writes_them(number: float, text: str) -> None:
    assert canonical(number) == text.encode()


def test_the_rfcs_example_object() -> None:
    text = (
        r'{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
        r' "string": "\u20ac$\u000F\u000aA' + r"'\u0042\u0022\u005c\\\"\/" + r'", "literals": [null, true, false]}'
    )
    assert canonical(json.loads(text)).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_the_rfcs_example_of_key_order() -> None:
    """By UTF-16 code units, so an emoji (surrogates) comes before U+FB33."""
    keys = {
        "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
        "\U0001f600": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis",
    }  # fmt: skip
    assert list(json.loads(canonical(keys)).values()) == [
        "Carriage Return", "One", "Control", "Latin Small Letter O With Diaeresis", "Euro Sign",
        "Emoji: Grinning Face", "Hebrew Letter Dalet With Dagesh",
    ]  # fmt: skip


def test_integers_beyond_2_to_the_53_keep_their_digits() -> None:
    assert canonical([2**53 + 1, -(2**64), 10**30]) == b"[9007199254740993,-18446744073709551616,%d]" % 10**30


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (math.nan, "NaN"),
        (math.inf, "infinities"),
        ("\ud800", "lone surrogate"),
        ({"\ud800": 1}, "lone surrogate"),
        ({1: 2}, "object key 1 is no string"),
        ({"a": {1, 2}}, "set is no JSON value"),
        ([b"bytes"], "no JSON value"),
    ],
)
def test_what_is_no_json_is_refused(value: JsonValue, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        canonical(value)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_EXACT, LARGEST_EXACT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=30,
)

_ORACLE = """
const write = v =>
  v === null || typeof v !== 'object' ? JSON.stringify(v)
  : Array.isArray(v) ? '[' + v.map(write).join(',') + ']'
  : '{' + Object.keys(v).sort().map(k => JSON.stringify(k) + ':' + write(v[k])).join(',') + '}';
require('readline').createInterface({input: process.stdin})
  .on('line', line => process.stdout.write(write(JSON.parse(line)) + '\\n'));
"""


@pytest.fixture(scope="module")
def ecmascript() -> Iterator[Callable[[object], bytes]]:
    """The canonical form as Node makes it, one line there, one line back."""
    process = subprocess.Popen([str(node()), "-e", _ORACLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def ask(value: object) -> bytes:
        stdin.write(json.dumps(value).encode() + b"\n")
        stdin.flush()
        return stdout.readline().removesuffix(b"\n")

    yield ask
    process.communicate()


@pytest.mark.node
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(json_values)
@example({"__proto__": 1, "a": '\u2028\u007f\u0000\b\f\n\r\t"\\/\x1f'})
@example([1e21, 1e20, 123456789012345680000.0, 1e-6, 1e-7, 1.5e300, -1e-7, 1.234e-5])
def test_the_canonical_form_is_what_ecmascript_writes(ecmascript: Callable[[object], bytes], value: JsonValue) -> None:
    assert canonical(value) == ecmascript(value)


@pytest.mark.node
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=20))
def test_any_number_is_written_as_ecmascript_writes_it(
    ecmascript: Callable[[object], bytes], numbers: list[float]
) -> None:
    assert canonical(numbers) == ecmascript(numbers)


@given(json_values)
def test_the_canonical_form_says_the_same_and_is_stable(value: JsonValue) -> None:
    text = canonical(value)
    assert json.loads(text, parse_int=float) == value
    assert canonical(json.loads(text)) == text


@given(st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=6), st.randoms(use_true_random=False))
def test_the_hash_does_not_depend_on_the_order_of_keys(value: dict[str, int], random: object) -> None:
    items = list(value.items())
    getattr(random, "shuffle")(items)  # noqa: B009 - hypothesis' Random is untyped
    try:
        assert sha256(dict(items)) == sha256(value)
    except ValueError:
        assert any(0xD800 <= ord(c) <= 0xDFFF for key in value for c in key)


def test_the_hash_is_of_the_canonical_bytes() -> None:
    assert sha256({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_compact_json_takes_integers_of_any_size() -> None:
    assert dumps({"b": 2**70, "a": [1.5, "é"]}) == b'{"a":[1.5,"\xc3\xa9"],"b":%d}' % 2**70
    assert dumps({"b": 1, "a": [1.5, "é"]}) == b'{"b":1,"a":[1.5,"\xc3\xa9"]}'
