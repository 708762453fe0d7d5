"""API keys: made once, verified from memory, revoked everywhere."""

from __future__ import annotations

import asyncio
import hashlib
import re

import pytest

from tests.identity.clock import HandClock
from tests.requirements import requirement
from toolyard.core.errors import BadInput, Conflict, NotFound, Unauthenticated
from toolyard.core.principal import Principal, PrincipalKind, Scope
from toolyard.identity.keys import LAST_USE_EVERY, TRUSTED_FOR, Keys
from toolyard.store import Store
from toolyard.store import keys as rows


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def keys(store: Store, clock: HandClock) -> Keys:
    return Keys(store, clock)


@requirement("http.keys")
async def test_a_key_is_shown_once_and_stored_as_a_hash(keys: Keys, store: Store) -> None:
    info, token = await keys.create("ci", [Scope.CALL])
    row = await store.read(lambda c: rows.find(c, info.id))
    assert re.fullmatch(r"ty_[a-z2-7]{12}_[A-Za-z0-9_-]{43}", token)
    assert token.split("_")[1] == info.id
    assert row is not None
    assert row.secret_hash == hashlib.sha256(token.encode()).hexdigest()
    assert token not in repr(row)
    assert token not in repr(await keys.list())


async def test_a_key_is_its_principal_with_its_scopes(keys: Keys) -> None:
    info, token = await keys.create("ci", [Scope.CALL, Scope.READ])
    expected = Principal(PrincipalKind.KEY, info.id, "ci", frozenset({Scope.CALL, Scope.READ}))
    assert await keys.verify(token) == expected
    assert expected.label == "key:ci"


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "ty_",
        "sk-12345",
        "ty_aaaaaaaaaaaa_" + "x" * 43,
        "ty_" + "é" * 12 + "_" + "x" * 43,
        "x" * 100_000,
        "ty_aaaaaaaaaaaa_" + "x" * 42 + "\n",
        "\udcff" * 20,
    ],
)
async def test_what_is_no_key_is_refused_without_saying_why(keys: Keys, wrong: str) -> None:
    with pytest.raises(Unauthenticated, match="unknown, expired or revoked"):
        await keys.verify(wrong)


async def test_another_secret_for_a_known_id_is_refused(keys: Keys) -> None:
    _, token = await keys.create("ci", [Scope.CALL])
    last = "A" if token[-1] != "A" else "B"
    with pytest.raises(Unauthenticated):
        await keys.verify(token[:-1] + last)


async def test_a_second_look_asks_no_store(keys: Keys, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    _, token = await keys.create("ci", [Scope.CALL])
    first = await keys.verify(token)

    async def refuse(fn: object) -> object:
        raise AssertionError("the store was asked")

    monkeypatch.setattr(store, "read", refuse)
    assert await keys.verify(token) is first


@requirement("http.keys")
async def test_a_key_revoked_here_is_refused_at_once(keys: Keys) -> None:
    info, token = await keys.create("ci", [Scope.CALL])
    await keys.verify(token)
    revoked = await keys.revoke(info.id)
    assert revoked.revoked is not None
    with pytest.raises(Unauthenticated):
        await keys.verify(token)


@requirement("http.keys")
async def test_a_key_revoked_on_another_node_is_refused_within_two_seconds(
    keys: Keys, store: Store, clock: HandClock
) -> None:
    info, token = await keys.create("ci", [Scope.CALL])
    await keys.verify(token)
    await Keys(store, clock).revoke(info.id)
    clock.pass_(TRUSTED_FOR)
    assert TRUSTED_FOR < 2
    with pytest.raises(Unauthenticated):
        await keys.verify(token)


async def test_a_look_up_that_overlaps_a_revocation_leaves_nothing_behind(
    keys: Keys, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, token = await keys.create("ci", [Scope.CALL])
    read = store.read

    async def read_then_revoked(fn: object) -> object:
        found = await read(fn)  # type: ignore[arg-type]
        monkeypatch.setattr(store, "read", read)
        await keys.revoke(info.id)
        return found

    monkeypatch.setattr(store, "read", read_then_revoked)
    await keys.verify(token)
    with pytest.raises(Unauthenticated):
        await keys.verify(token)


@requirement("http.keys")
async def test_a_key_dies_at_its_expiry_even_when_it_is_remembered(keys: Keys, clock: HandClock) -> None:
    _, token = await keys.create("short", [Scope.CALL], expires=clock.now() + 1)
    await keys.verify(token)
    clock.pass_(1)
    with pytest.raises(Unauthenticated):
        await keys.verify(token)
    with pytest.raises(Unauthenticated):
        await keys.verify(token)


@requirement("http.keys")
async def test_the_last_use_is_written_at_most_once_a_minute(keys: Keys, store: Store, clock: HandClock) -> None:
    info, token = await keys.create("ci", [Scope.CALL])
    first = clock.now()
    seen: list[float | None] = [info.last_used]
    for seconds in (0, 30, LAST_USE_EVERY - 30):
        clock.pass_(seconds)
        await keys.verify(token)
        await store.flush()
        seen.append((await keys.get(info.id)).last_used)
    assert seen == [None, first, first, first + LAST_USE_EVERY]


async def test_two_live_keys_cannot_share_a_name(keys: Keys, clock: HandClock) -> None:
    info, _ = await keys.create("ci", [Scope.CALL])
    with pytest.raises(Conflict, match="'ci'"):
        await keys.create("ci", [Scope.READ])
    await keys.revoke(info.id)
    second, _ = await keys.create("ci", [Scope.READ], expires=clock.now() + 5)
    clock.pass_(5)
    third, _ = await keys.create("ci", [Scope.READ])
    assert {key.id for key in await keys.list()} == {info.id, second.id, third.id}


async def test_of_many_who_want_one_name_at_once_one_gets_it(keys: Keys) -> None:
    answers = await asyncio.gather(*(keys.create("ci", [Scope.CALL]) for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(answer, Conflict) for answer in answers) == 7
    assert len(await keys.list()) == 1


@pytest.mark.parametrize(
    ("name", "scopes", "expires", "where"),
    [
        ("", [Scope.CALL], None, "name"),
        (" ci", [Scope.CALL], None, "name"),
        ("a\nb", [Scope.CALL], None, "name"),
        ("x" * 65, [Scope.CALL], None, "name"),
        ("ci", [], None, "scopes"),
        ("ci", [Scope.CALL], 1.0, "expires"),
        ("ci", [Scope.CALL], float("nan"), "expires"),
    ],
)
async def test_a_key_that_makes_no_sense_is_not_made(
    keys: Keys, name: str, scopes: list[Scope], expires: float | None, where: str
) -> None:
    with pytest.raises(BadInput) as refused:
        await keys.create(name, scopes, expires)
    assert refused.value.where == where
    assert await keys.list() == []


async def test_an_unknown_key_cannot_be_revoked(keys: Keys) -> None:
    with pytest.raises(NotFound):
        await keys.revoke("nosuchkey")


async def test_keys_are_listed_newest_first_and_revoked_ones_stay(keys: Keys, clock: HandClock) -> None:
    old, _ = await keys.create("old", [Scope.CALL])
    clock.pass_(1)
    new, _ = await keys.create("new", [Scope.CALL])
    await keys.revoke(old.id)
    listed = await keys.list()
    assert [key.id for key in listed] == [new.id, old.id]
    assert [key.is_live(clock.now()) for key in listed] == [True, False]
