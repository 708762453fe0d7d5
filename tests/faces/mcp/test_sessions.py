"""Legacy sessions live in their ids: signed, bound to one server and one principal, and gone only when ended."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from tests.faces.mcp.conftest import Yard
from tests.faces.mcp.yard import SERVED, LegacySession, Scripted, Wire, fill, legacy_headers, rpc
from toolyard.app import App, Settings
from toolyard.catalog import Server
from toolyard.core.clock import SystemClock
from toolyard.core.principal import LOCAL_OPERATOR, PrincipalKind, Scope
from toolyard.faces.mcp import build
from toolyard.faces.mcp.sessions import LIFETIME, Capability, Sessions, capabilities_of
from toolyard.faces.mcp.wire import RpcError
from toolyard.store.base import Store


class TurnedClock(SystemClock):
    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


async def begin(sessions: Sessions) -> bytes:
    session_id, _ = await sessions.begin(
        version="2025-11-25", server="default", principal=LOCAL_OPERATOR, capabilities=Capability.ROOTS, client="t" * 99
    )
    return session_id.encode()


async def refused(sessions: Sessions, session_id: bytes, **other: object) -> int | None:
    given: dict[str, object] = {"server": "default", "principal": LOCAL_OPERATOR} | other
    with pytest.raises(RpcError) as caught:
        await sessions.verify(session_id, **given)  # type: ignore[arg-type]
    return caught.value.status


async def test_a_session_is_read_back_from_its_id_by_another_node(store: Store) -> None:
    session_id = await begin(Sessions(store))
    session = await Sessions(store).verify(session_id, server="default", principal=LOCAL_OPERATOR)
    assert replace(session, nonce="", issued=0.0) == replace(
        session,
        version="2025-11-25",
        server="default",
        principal="local:local",
        capabilities=Capability.ROOTS,
        client="t" * 64,
        nonce="",
        issued=0.0,
    )
    assert all(33 <= byte <= 126 for byte in session_id)


async def test_an_id_that_was_changed_anywhere_is_refused(sqlite_store: Store) -> None:
    sessions = Sessions(sqlite_store)
    session_id = await begin(sessions)
    for place in range(len(session_id)):
        other = b"A" if session_id[place : place + 1] != b"A" else b"B"
        changed = session_id[:place] + other + session_id[place + 1 :]
        assert await refused(sessions, changed) == 404


def mangled(session_id: bytes) -> Iterator[bytes]:
    payload, _, mac = session_id.partition(b".")
    yield from (b"", b".", payload, payload + b".", b"." + mac, mac + b"." + payload, session_id * 2, b"\xff" * 40)
    yield b"bm90LWpzb24." + mac


async def test_an_id_of_any_other_form_is_refused(sqlite_store: Store) -> None:
    sessions = Sessions(sqlite_store)
    for wrong in mangled(await begin(sessions)):
        assert await refused(sessions, wrong) == 404


async def test_an_id_of_another_server_or_principal_is_refused(sqlite_store: Store) -> None:
    sessions = Sessions(sqlite_store)
    session_id = await begin(sessions)
    namesake = replace(LOCAL_OPERATOR, kind=PrincipalKind.KEY)
    assert await refused(sessions, session_id, server="sales") == 404
    assert await refused(sessions, session_id, principal=namesake) == 404
    assert await refused(sessions, session_id, principal=replace(LOCAL_OPERATOR, id="other")) == 404


async def test_an_id_runs_out(sqlite_store: Store) -> None:
    clock = TurnedClock()
    sessions = Sessions(sqlite_store, clock)
    session_id = await begin(sessions)
    clock.ahead = LIFETIME - 10
    await sessions.verify(session_id, server="default", principal=LOCAL_OPERATOR)
    clock.ahead = LIFETIME + 10
    assert await refused(sessions, session_id) == 404


async def test_an_ended_session_is_refused_here_at_once_and_elsewhere_soon(store: Store) -> None:
    clock = TurnedClock()
    here, elsewhere = Sessions(store), Sessions(store, clock)
    session_id = await begin(here)
    session = await elsewhere.verify(session_id, server="default", principal=LOCAL_OPERATOR)
    await here.end(session_id, session)
    assert await refused(here, session_id) == 404
    clock.ahead = 3
    await elsewhere.verify(session_id, server="default", principal=LOCAL_OPERATOR)
    await elsewhere.refreshed()
    assert await refused(elsewhere, session_id) == 404
    assert await refused(Sessions(store), session_id) == 404


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({}, Capability.NONE),
        ({"elicitation": {}}, Capability.ELICITATION_FORM),
        ({"elicitation": {"url": {}}}, Capability.ELICITATION_URL),
        ({"elicitation": {"form": {}, "url": {}}}, Capability.ELICITATION_FORM | Capability.ELICITATION_URL),
        ({"sampling": {}, "roots": {"listChanged": True}}, Capability.SAMPLING | Capability.ROOTS),
        ({"elicitation": None, "else": 1}, Capability.NONE),
    ],
)
def test_capabilities_become_bits(declared: dict[str, object], expected: Capability) -> None:
    assert capabilities_of(declared) is expected


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1.0", "2025-11-25"),
    ],
)
async def test_initialize_settles_the_version(wire: Wire, asked: str, answered: str) -> None:
    session = await wire.initialize(asked)
    assert session.welcome["protocolVersion"] == answered
    assert session.welcome["capabilities"] == SERVED
    assert session.welcome["serverInfo"]["name"] == "toolyard"
    assert session.welcome["instructions"] == "Every tool of this yard."


async def test_a_session_works_from_initialize_to_delete(wire: Wire) -> None:
    session = await wire.initialize()
    assert (await session.send("notifications/initialized", request_id=None)).status == 202
    assert (await session.send("ping")).json == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (await session.send("logging/setLevel", {"level": "debug"})).json["result"] == {}
    assert (await session.send("logging/setLevel", {"level": "loud"})).error == (200, -32602)
    response = {"jsonrpc": "2.0", "id": 9, "result": {}}
    assert (await wire.send(headers=legacy_headers(session.id), body=orjson.dumps(response))).status == 202
    assert (await wire.send("DELETE", headers=legacy_headers(session.id))).status == 204
    for answer in (
        await session.send("ping"),
        await session.send("notifications/initialized", request_id=None),
        await wire.send("DELETE", headers=legacy_headers(session.id)),
        await wire.send("GET", headers=legacy_headers(session.id)),
    ):
        assert answer.error == (404, -32600)


async def test_a_request_without_a_version_header_goes_by_its_session(wire: Wire) -> None:
    session = await wire.initialize("2025-03-26")
    headers = {k: v for k, v in legacy_headers(session.id).items() if k != "MCP-Protocol-Version"}
    assert (await wire.send(headers=headers, body=rpc("ping"))).status == 200


async def test_a_restart_loses_no_session(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, demo=True)
    async with App.running(settings) as app:
        session = await Wire(build(app)).initialize()
    async with App.running(settings) as app:
        provider = Scripted("kit")
        fill(provider)
        await app.supervisor.add_and_start(provider)
        answer = await LegacySession(Wire(build(app)), session.id, {}).send("tools/call", {"name": "kit_echo_action"})
    assert answer.json["result"]["structuredContent"] == {"text": ""}


async def test_another_key_cannot_use_a_session(tmp_path: Path) -> None:
    async with App.running(Settings(data_dir=tmp_path)) as app:
        _, one = await app.keys.create("one", [Scope.CALL])
        _, two = await app.keys.create("two", [Scope.CALL])
        wire = Wire(build(app))
        session = await wire.initialize(headers={"Authorization": f"Bearer {one}"})
        mine = await session.send("ping", Authorization=f"Bearer {one}")
        theirs = await session.send("ping", Authorization=f"Bearer {two}")
    assert (mine.status, theirs.status) == (200, 404)


async def test_a_session_of_one_server_is_none_of_another(yard: Yard) -> None:
    await yard.app.save_server(Server("sales"))
    session = await yard.wire.initialize()
    answer = await yard.wire.send(path="/mcp/sales", headers=legacy_headers(session.id), body=rpc("ping"))
    assert answer.status == 404


async def test_an_id_holds_no_more_than_it_must(wire: Wire) -> None:
    session = await wire.initialize()
    payload = session.id.partition(".")[0]
    fields = orjson.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert fields[:5] == ["2025-11-25", "default", "local:local", 0, "tests"]
    assert len(session.id) < 200
