"""The gate: a key, a login, or demo mode on this very machine; nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.requirements import requirement
from toolyard.core.errors import BadInput, Forbidden, Unauthenticated
from toolyard.core.principal import LOCAL_OPERATOR, Scope
from toolyard.identity import Caller, ConsoleSession, Gate, Keys, Operators, check_exposure, is_loopback
from toolyard.store import Store

BASE = "http://127.0.0.1:8420"


def request(
    method: str = "GET", headers: Mapping[str, str] | None = None, client: tuple[str, int] | None = ("127.0.0.1", 50000)
) -> dict[str, Any]:
    given = {"host": "127.0.0.1:8420", **(headers or {})}
    return {
        "type": "http",
        "method": method,
        "path": "/v1/tools",
        "client": client,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
    }


def gate_of(store: Store, *, demo: bool = False, host: str = "127.0.0.1") -> Gate:
    return Gate(Keys(store), Operators(store), demo=demo, host=host, public_url=BASE)


@pytest.fixture
def gate(sqlite_store: Store) -> Gate:
    return gate_of(sqlite_store)


@pytest.fixture
def demo(sqlite_store: Store) -> Gate:
    return gate_of(sqlite_store, demo=True)


@pytest.fixture
async def session(sqlite_store: Store) -> ConsoleSession:
    operators = Operators(sqlite_store)
    link = await operators.new_link(BASE)
    return await operators.redeem(link.rpartition("/")[2])


@requirement("http.keys")
async def test_nobody_gets_in_without_a_key_or_a_login(gate: Gate) -> None:
    with pytest.raises(Unauthenticated, match="API key or an operator's login"):
        await gate.principal(request())


async def test_a_key_gets_in(gate: Gate, sqlite_store: Store) -> None:
    info, token = await Keys(sqlite_store).create("ci", [Scope.CALL])
    assert await gate.caller(request(headers={"authorization": f"Bearer {token}"})) == Caller(info.principal)
    assert await gate.principal(request("POST", {"authorization": f"bearer  {token} "})) == info.principal


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "Bearer nonsense", "\xff\xfe"])
async def test_a_bad_key_is_refused_also_in_demo_mode(gate: Gate, demo: Gate, value: str) -> None:
    for refusing in (gate, demo):
        with pytest.raises(Unauthenticated):
            await refusing.principal(request(headers={"authorization": value}))


async def test_a_cookie_may_read(gate: Gate, session: ConsoleSession) -> None:
    caller = await gate.caller(request(headers={"cookie": f"toolyard_session={session.cookie}"}))
    assert caller == Caller(session.operator, session, session.csrf)


@pytest.mark.parametrize("token", [None, "", "wrong", "é"])
async def test_a_cookie_changes_nothing_without_its_csrf_token(
    gate: Gate, session: ConsoleSession, token: str | None
) -> None:
    headers = {"cookie": f"toolyard_session={session.cookie}"}
    if token is not None:
        headers["x-csrf-token"] = token
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(Forbidden, match="CSRF"):
            await gate.principal(request(method, headers))
    with pytest.raises(Forbidden, match="CSRF"):
        await gate.principal(request("POST", {**headers, "x-csrf-token": session.csrf}), csrf=token or "")


async def test_a_cookie_with_its_csrf_token_may_change_things(gate: Gate, session: ConsoleSession) -> None:
    headers = {"cookie": f"toolyard_session={session.cookie}"}
    assert await gate.principal(request("POST", {**headers, "x-csrf-token": session.csrf})) == session.operator
    assert await gate.principal(request("POST", headers), csrf=session.csrf) == session.operator


async def test_the_csrf_token_of_another_session_does_not_count(
    gate: Gate, session: ConsoleSession, sqlite_store: Store
) -> None:
    operators = Operators(sqlite_store)
    other = await operators.redeem((await operators.new_link(BASE)).rpartition("/")[2])
    with pytest.raises(Forbidden):
        await gate.principal(
            request("POST", {"cookie": f"toolyard_session={session.cookie}", "x-csrf-token": other.csrf})
        )


@requirement("http.keys")
async def test_demo_mode_on_loopback_is_open_to_this_machine(demo: Gate) -> None:
    assert await demo.principal(request()) is LOCAL_OPERATOR
    assert await demo.principal(request("POST")) is LOCAL_OPERATOR
    assert (await demo.caller(request())).csrf
    ipv6 = request(headers={"host": "[::1]:8420"}, client=("::1", 50000))
    assert await demo.principal(ipv6) is LOCAL_OPERATOR
    assert await demo.principal(request(headers={"host": "localhost"})) is LOCAL_OPERATOR


@pytest.mark.parametrize(
    "foreign",
    [
        request(client=("192.0.2.7", 50000)),
        request(client=None),
        request(headers={"host": "rebound.example.com"}),
        request(headers={"host": "rebound.example.com:8420"}),
        request(headers={"host": "127.0.0.1.example.com"}),
        request(headers={"host": ""}),
        request(headers={"host": "[::2]:8420"}),
        request(headers={"x-forwarded-for": "192.0.2.7"}),
        request(headers={"forwarded": "for=192.0.2.7"}),
        request(headers={"x-real-ip": "192.0.2.7"}),
        request(headers={"via": "1.1 proxy"}),
    ],
)
async def test_demo_mode_is_closed_to_other_machines_and_rebound_names(demo: Gate, foreign: dict[str, Any]) -> None:
    with pytest.raises(Unauthenticated):
        await demo.principal(foreign)


async def test_demo_mode_on_another_address_opens_nothing(sqlite_store: Store) -> None:
    with pytest.raises(Unauthenticated):
        await gate_of(sqlite_store, demo=True, host="0.0.0.0").principal(request())


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example.com"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1.example.com"},
        {"sec-fetch-site": "cross-site"},
    ],
)
async def test_in_demo_mode_another_sites_page_changes_nothing(demo: Gate, headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden, match="Another site"):
        await demo.principal(request("POST", headers))
    assert await demo.principal(request("GET", headers)) is LOCAL_OPERATOR


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8420", "http://localhost:6274", "http://[::1]:3000"])
async def test_in_demo_mode_pages_of_this_machine_may_change_things(demo: Gate, origin: str) -> None:
    assert await demo.principal(request("POST", {"origin": origin})) is LOCAL_OPERATOR


@dataclass(frozen=True)
class Bound:
    host: str
    demo: bool


@requirement("http.keys")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "yard.example.com", ""])
def test_demo_mode_does_not_start_where_others_can_reach_it(host: str) -> None:
    with pytest.raises(BadInput, match="Demo mode"):
        check_exposure(Bound(host, demo=True))
    check_exposure(Bound(host, demo=False))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("LocalHost.", True),
        ("yard.localhost", True),
        ("128.0.0.1", False),
        ("localhost.example.com", False),
        ("::ffff:8.8.8.8", False),
        ("2130706433", False),
        ("", False),
    ],
)
def test_loopback_is_told_by_spelling(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
