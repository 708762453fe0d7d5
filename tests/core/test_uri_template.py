"""URI templates read backwards."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.core.uri_template import LONGEST_URI, uri_template


def values(template: str, uri: str) -> dict[str, str] | None:
    made = uri_template(template)
    assert made is not None
    return made.values(uri)


@pytest.mark.parametrize(
    ("template", "uri", "found"),
    [
        ("n://{a}/x/{b}", "n://1/x/2", {"a": "1", "b": "2"}),
        ("n://{a}/x", "n://1/y", None),
        ("n://{a}", "n://", None),
        ("n://{a}", "n://1/2", None),
        ("n://{a}.json", "n://v1.2.json", {"a": "v1.2"}),
        ("n://{a}-{b}", "n://1-2-3", {"a": "1-2", "b": "3"}),
        ("n://{+path}", "n://1/2?q#f", {"path": "1/2?q#f"}),
        ("n://{path*}/end", "n://1/2/end", {"path": "1/2"}),
        ("n://{a,b}", "n://1,2", {"a": "1", "b": "2"}),
        ("n://x{/a,b}", "n://x/1/2", {"a": "1", "b": "2"}),
        ("n://x{;a}", "n://x;a=1", {"a": "1"}),
        ("n://x{#a}", "n://x#1/2", {"a": "1/2"}),
        ("n://x{?q,r}", "n://x?r=2&q=1&other=3", {"q": "1", "r": "2"}),
        ("n://x{?q,r}", "n://x", {}),
        ("n://x{?q}", "n://xq", None),
        ("n://x{?q}#end", "n://x?q=1#end", {"q": "1"}),
        ("n://{a}{?q}", "n://1", {"a": "1"}),
        ("n://{a}?fixed=1{&q}", "n://1?fixed=1&q=2", {"a": "1", "q": "2"}),
        ("n://x", "n://x", {}),
        ("n://{user-id:3}", "n://abc", {"user_id": "abc"}),
    ],
)
def test_a_uri_is_taken_apart_as_its_template_made_it(template: str, uri: str, found: dict[str, str] | None) -> None:
    assert values(template, uri) == found


def test_a_template_that_repeats_a_name_or_is_endless_is_none() -> None:
    assert uri_template("n://{a}/{a}") is None
    assert uri_template("n://{a}{?a}") is None
    assert uri_template("n://" + "a" * 2000) is None
    assert uri_template("n://" + "".join(f"{{v{index}}}/" for index in range(21))) is None


@given(
    st.lists(st.one_of(st.sampled_from("-./ab"), st.sampled_from(["{v}", "{+v}"])), max_size=5),
    st.text("-./ab?#", max_size=12),
)
def test_it_finds_what_a_regular_expression_finds(pieces: list[str], uri: str) -> None:
    template, expression = "", ""
    for index, piece in enumerate(pieces):
        template += piece.replace("v", f"v{index}") if piece[0] == "{" else piece
        variable = "." if piece == "{+v}" else "[^/?#]"
        expression += f"(?P<v{index}>{variable}+)" if piece[0] == "{" else re.escape(piece)
    found = re.fullmatch(expression, uri)
    assert values(template, uri) == (None if found is None else found.groupdict())


def test_no_template_keeps_us_busy() -> None:
    template = "n://" + "".join(f"{{v{index}}}-" for index in range(10)) + "!"
    began = time.perf_counter()
    assert values(template, "n://" + "-" * (LONGEST_URI - 4)) is None
    assert time.perf_counter() - began < 5  # some hundredths of a second; a regular expression takes years
    assert values("n://{a}", "n://" + "a" * LONGEST_URI) is None
