"""Which era a request belongs to: the table."""

from __future__ import annotations

import pytest

from toolyard.faces.mcp.classify import capabilities_in, check_version, classify, is_modern
from toolyard.faces.mcp.wire import Era, RpcError

META = "io.modelcontextprotocol/protocolVersion"
MODERN, LEGACY, SESSION = b"2026-07-28", b"2025-11-25", b"abc.def"
REFUSED_META, REFUSED_VERSION, REFUSED_NEITHER = -32602, -32022, -32600

TABLE = [
    # method, version in _meta, version header, session id -> (era, version) or the error's code
    ("initialize", None, None, None, (Era.LEGACY, None)),
    ("initialize", None, LEGACY, None, (Era.LEGACY, None)),
    ("initialize", None, MODERN, None, (Era.LEGACY, None)),
    ("initialize", "2026-07-28", MODERN, None, (Era.MODERN, "2026-07-28")),
    ("tools/list", "2026-07-28", MODERN, None, (Era.MODERN, "2026-07-28")),
    ("tools/list", "2026-07-28", MODERN, SESSION, (Era.MODERN, "2026-07-28")),
    ("tools/list", "2026-07-28", None, None, (Era.MODERN, "2026-07-28")),
    ("tools/list", "2099-01-01", b"2099-01-01", None, (Era.MODERN, "2099-01-01")),
    ("tools/list", "2025-11-25", LEGACY, SESSION, (Era.MODERN, "2025-11-25")),
    ("tools/list", 7, MODERN, None, REFUSED_META),
    ("tools/list", None, MODERN, None, REFUSED_META),
    ("tools/list", None, MODERN, SESSION, REFUSED_META),
    ("tools/list", None, b"2099-01-01", None, REFUSED_VERSION),
    ("tools/list", None, b"2099-01-01", SESSION, REFUSED_VERSION),
    ("tools/list", None, b"2024-11-05", SESSION, REFUSED_VERSION),
    ("tools/list", None, LEGACY, SESSION, (Era.LEGACY, "2025-11-25")),
    ("tools/list", None, b"2025-06-18", SESSION, (Era.LEGACY, "2025-06-18")),
    ("tools/list", None, b"2025-03-26", SESSION, (Era.LEGACY, "2025-03-26")),
    ("tools/list", None, None, SESSION, (Era.LEGACY, None)),
    ("tools/list", None, LEGACY, None, REFUSED_NEITHER),
    ("tools/list", None, None, None, REFUSED_NEITHER),
]


@pytest.mark.parametrize(("method", "in_meta", "header", "session", "expected"), TABLE)
def test_a_request_is_classified_by_itself_alone(
    method: str,
    in_meta: object,
    header: bytes | None,
    session: bytes | None,
    expected: tuple[Era, str | None] | int,
) -> None:
    meta = {} if in_meta is None else {META: in_meta}
    if isinstance(expected, int):
        with pytest.raises(RpcError) as refused:
            classify(method, meta, header, session)
        assert (refused.value.code, refused.value.status) == (expected, 400)
    else:
        route = classify(method, meta, header, session)
        assert (route.era, route.version) == expected


def test_a_request_of_neither_era_is_told_both_ways_in() -> None:
    with pytest.raises(RpcError) as refused:
        classify("tools/list", {}, None, None)
    assert "initialize" in refused.value.message
    assert META in refused.value.message


def test_an_unknown_modern_version_is_told_which_are_served() -> None:
    route = classify("tools/list", {META: "2099-01-01"}, b"2099-01-01", None)
    with pytest.raises(RpcError) as refused:
        check_version(route)
    assert refused.value.code == -32022
    assert refused.value.data == {"supported": ["2026-07-28"], "requested": "2099-01-01"}


@pytest.mark.parametrize("capabilities", [None, [], "all", 1])
def test_a_modern_request_must_declare_its_capabilities(capabilities: object) -> None:
    with pytest.raises(RpcError) as refused:
        capabilities_in({"io.modelcontextprotocol/clientCapabilities": capabilities})
    assert refused.value.code == -32602


def test_only_a_modern_header_says_modern() -> None:
    assert [is_modern(header) for header in (MODERN, LEGACY, b"2099-01-01", None)] == [True, False, False, False]
