"""Operators come in by a link that works once, and stay by a cookie."""

from __future__ import annotations

import asyncio

import pytest

from tests.identity.clock import HandClock
from tests.requirements import requirement
from toolyard.core.errors import Unauthenticated
from toolyard.core.principal import PrincipalKind, Scope
from toolyard.identity.cookies import clear_cookie, read_cookie, set_cookie
from toolyard.identity.operators import LINK_LIFETIME, SESSION_LIFETIME, TRUSTED_FOR, ConsoleSession, Operators
from toolyard.store import Store

BASE = "http://127.0.0.1:8420"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def operators(store: Store, clock: HandClock) -> Operators:
    return Operators(store, clock)


def token_of(link: str | None) -> str:
    assert link is not None
    assert link.startswith(f"{BASE}/login/")
    return link.removeprefix(f"{BASE}/login/")


@requirement("http.keys")
async def test_the_first_start_prints_a_link_that_logs_an_operator_in(operators: Operators) -> None:
    session = await operators.redeem(token_of(await operators.first_link(BASE + "/")))
    assert session.operator.kind is PrincipalKind.OPERATOR
    assert session.operator.may(Scope.ADMIN)
    assert await operators.session(session.cookie) == session


@requirement("http.keys")
async def test_a_link_works_once(operators: Operators) -> None:
    token = token_of(await operators.first_link(BASE))
    await operators.redeem(token)
    with pytest.raises(Unauthenticated, match="used before"):
        await operators.redeem(token)


async def test_of_many_who_use_a_link_at_once_one_gets_in(operators: Operators) -> None:
    token = token_of(await operators.first_link(BASE))
    answers = await asyncio.gather(*(operators.redeem(token) for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(answer, ConsoleSession) for answer in answers) == 1


async def test_a_link_expires(operators: Operators, clock: HandClock) -> None:
    token = token_of(await operators.first_link(BASE))
    clock.pass_(LINK_LIFETIME)
    with pytest.raises(Unauthenticated):
        await operators.redeem(token)


async def test_each_start_prints_a_link_until_somebody_logged_in(operators: Operators) -> None:
    first = token_of(await operators.first_link(BASE))
    second = token_of(await operators.first_link(BASE))
    with pytest.raises(Unauthenticated):
        await operators.redeem(first)
    await operators.redeem(second)
    assert await operators.first_link(BASE) is None


async def test_another_link_can_be_made_at_any_time(operators: Operators) -> None:
    await operators.redeem(token_of(await operators.first_link(BASE)))
    again = await operators.redeem(token_of(await operators.new_link(BASE)))
    assert await operators.session(again.cookie) == again


@pytest.mark.parametrize("wrong", ["", "nonsense", "\udcff", "x" * 100_000])
async def test_what_is_no_token_opens_nothing(operators: Operators, wrong: str) -> None:
    with pytest.raises(Unauthenticated):
        await operators.redeem(wrong)
    assert await operators.session(wrong) is None


async def test_a_session_ends_by_itself(operators: Operators, clock: HandClock) -> None:
    session = await operators.redeem(token_of(await operators.first_link(BASE)))
    assert await operators.session(session.cookie) == session
    clock.pass_(SESSION_LIFETIME)
    assert await operators.session(session.cookie) is None


async def test_a_logout_ends_the_session_here_at_once_and_elsewhere_within_two_seconds(
    operators: Operators, store: Store, clock: HandClock
) -> None:
    elsewhere = Operators(store, clock)
    session = await operators.redeem(token_of(await operators.first_link(BASE)))
    assert await operators.session(session.cookie) is not None
    assert await elsewhere.session(session.cookie) is not None
    await operators.logout(session.cookie)
    assert await operators.session(session.cookie) is None
    clock.pass_(TRUSTED_FOR)
    assert await elsewhere.session(session.cookie) is None


async def test_the_cookie_is_kept_from_scripts_and_other_sites(operators: Operators, clock: HandClock) -> None:
    session = await operators.redeem(token_of(await operators.first_link(BASE)))
    plain = set_cookie(session, BASE, now=clock.now())
    secure = set_cookie(session, "https://yard.example.com", now=clock.now())
    week = int(SESSION_LIFETIME)
    assert plain == f"toolyard_session={session.cookie}; Path=/; Max-Age={week}; HttpOnly; SameSite=Lax"
    assert secure == (
        f"__Host-toolyard_session={session.cookie}; Path=/; Max-Age={week}; HttpOnly; SameSite=Lax; Secure"
    )
    assert clear_cookie(BASE) == "toolyard_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"


@pytest.mark.parametrize(
    ("header", "public_url", "found"),
    [
        (b"toolyard_session=abc", BASE, "abc"),
        (b"a=b; toolyard_session=abc; c=d", BASE, "abc"),
        (b"toolyard_session=", BASE, None),
        (b"xtoolyard_session=abc", BASE, None),
        (b"toolyard_session=planted", "https://yard.example.com", None),
        (b"__Host-toolyard_session=abc", "https://yard.example.com", "abc"),
        (b"\xff\xfe;;;==", BASE, None),
    ],
)
def test_the_session_is_read_from_its_own_cookie_only(header: bytes, public_url: str, found: str | None) -> None:
    assert read_cookie([(b"host", b"x"), (b"cookie", header)], public_url) == found
