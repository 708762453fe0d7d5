"""A write that carries an Idempotency-Key does its work once."""

from __future__ import annotations

import asyncio
from functools import partial

import httpx2
import pytest
from starlette.types import ASGIApp

from tests.faces.http.client import client_of
from tests.faces.http.conftest import Clients
from tests.identity.clock import HandClock
from toolyard.app import App
from toolyard.core.principal import Scope
from toolyard.faces.http import build
from toolyard.faces.http.idempotency import CLAIM_FOR, KEPT_FOR
from toolyard.store import Store
from toolyard.store import idempotency as rows

KEY = {"idempotency-key": "9d1f"}


async def make_server(
    client: httpx2.AsyncClient, server_id: str = "sales", *, key: str = "9d1f", title: str | None = None
) -> httpx2.Response:
    body = {"id": server_id} | ({"title": title} if title else {})
    return await client.post("/v1/servers", json=body, headers={"idempotency-key": key})


async def test_the_same_request_gets_the_first_answer_again(local: httpx2.AsyncClient) -> None:
    first, second = await make_server(local), await make_server(local)
    assert (first.status_code, first.text, first.headers["location"]) == (
        second.status_code,
        second.text,
        second.headers["location"],
    )
    assert second.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert (await make_server(local, key="other")).status_code == 409


async def test_the_same_key_for_another_request_is_a_conflict(local: httpx2.AsyncClient) -> None:
    await make_server(local)
    other = await make_server(local, "support")
    assert (other.status_code, "another request" in other.json()["error"]) == (409, True)
    assert (await local.get("/v1/servers/support")).status_code == 404
    elsewhere = await local.delete("/v1/servers/sales", headers=KEY)
    assert elsewhere.status_code == 409
    assert (await local.get("/v1/servers/sales")).status_code == 200


async def test_a_refusal_did_nothing_so_the_request_may_be_tried_again(local: httpx2.AsyncClient) -> None:
    refused = await local.patch("/v1/servers/sales", json={"title": "x"}, headers=KEY)
    assert refused.status_code == 404
    await local.post("/v1/servers", json={"id": "sales"})
    assert (await local.patch("/v1/servers/sales", json={"title": "x"}, headers=KEY)).status_code == 200


async def test_of_many_at_once_one_does_the_work_and_all_get_its_answer(
    local: httpx2.AsyncClient, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved, save = list[str](), app.save_server

    async def save_slowly(server: object) -> None:
        saved.append("once")
        await asyncio.sleep(0)
        await save(server)  # type: ignore[arg-type]

    monkeypatch.setattr(app, "save_server", save_slowly)
    answers = await asyncio.gather(*(make_server(local) for _ in range(10)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert saved == ["once"]


async def test_a_key_belongs_to_its_caller(clients: Clients) -> None:
    one = await clients.with_scopes(Scope.MANAGE, name="one")
    two = await clients.with_scopes(Scope.MANAGE, name="two")
    assert (await make_server(one, "a")).status_code == 201
    assert (await make_server(two, "b")).status_code == 201


async def test_another_node_knows_the_answer_too(local: httpx2.AsyncClient, app: App) -> None:
    first = await make_server(local)
    async with client_of(build(app)) as other_node:
        assert (await make_server(other_node)).text == first.text


async def test_a_request_that_another_node_is_answering_is_told_to_wait(local: httpx2.AsyncClient, app: App) -> None:
    other = f"{app.engine.node_id}/other"
    claim = partial(rows.claim, principal="local:local", key="9d1f", request_hash="?", owner=other, now=app.clock.now())
    await app.store.tx(lambda c: claim(c, expires=app.clock.now() + CLAIM_FOR))
    answer = await make_server(local)
    assert answer.status_code == 409
    await app.store.tx(lambda c: claim(c, expires=0))  # a claim that has run out is nobody's
    await app.store.tx(lambda c: c.execute("UPDATE idempotency SET expires = 0"))
    assert (await make_server(local)).status_code == 201


async def test_a_key_whose_node_died_before_it_answered_is_free_again(local: httpx2.AsyncClient, app: App) -> None:
    claim = partial(rows.claim, principal="local:local", key="9d1f", request_hash="?", owner="node_dead/one")
    await app.store.tx(partial(claim, now=app.clock.now(), expires=app.clock.now() + CLAIM_FOR))
    assert (await make_server(local)).status_code == 201


async def test_a_bug_in_the_middle_gives_the_key_back(
    local: httpx2.AsyncClient, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(server: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(app, "save_server", fail)
        broken = await make_server(local)
    assert (broken.status_code, broken.json()["code"]) == (500, "internal")
    assert "a bug" not in broken.text
    assert (await make_server(local)).status_code == 201


async def test_an_answer_with_a_secret_is_never_stored(local: httpx2.AsyncClient, app: App) -> None:
    body = {"name": "ci", "scopes": ["call"]}
    made = await local.post("/v1/keys", json=body, headers=KEY)
    again = await local.post("/v1/keys", json=body, headers=KEY)
    assert (made.status_code, again.status_code) == (201, 409)
    assert "not kept" in again.json()["error"]
    stored = await app.store.read(lambda c: c.execute("SELECT * FROM idempotency").fetchall())
    assert made.json()["key"] not in repr(stored)
    assert len((await local.get("/v1/keys")).json()["items"]) == 1


async def test_a_retried_upload_may_choose_another_boundary(local: httpx2.AsyncClient) -> None:
    async def upload(boundary: str, title: str = "A") -> httpx2.Response:
        document = f'{{"openapi":"3.1.0","info":{{"title":"{title}"}},"paths":{{}},"servers":[{{"url":"http://127.0.0.1:9"}}]}}'
        content = f'--{boundary}\r\nContent-Disposition: form-data; name="document"; filename="a"\r\n\r\n{document}\r\n--{boundary}--\r\n'  # noqa: E501
        return await local.post(
            "/v1/agents/default/tools/import-openapi",
            content=content,
            headers={**KEY, "content-type": f"multipart/form-data; boundary={boundary}"},
        )

    first, second = await upload("one"), await upload("another")
    assert (first.status_code, second.status_code, first.text) == (201, 201, second.text)
    assert second.headers["idempotent-replayed"] == "true"
    assert (await upload("one", title="B")).status_code == 409


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "ü".encode().decode("latin-1")])
async def test_a_key_that_cannot_be_kept_is_refused(local: httpx2.AsyncClient, key: str) -> None:
    for path, body in (("/v1/servers", {"id": "sales"}), ("/v1/tools/yard:echo/call", {"arguments": {"text": "x"}})):
        answer = await local.post(path, json=body, headers=[("idempotency-key", key.encode("latin-1"))])  # type: ignore[arg-type]
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"].lower() == "header:idempotency-key"


async def test_rows_are_claimed_answered_released_and_expire(store: Store) -> None:
    clock = HandClock()
    await store.tx(
        lambda c: c.execute("INSERT INTO nodes (id, lease, version, url, started) VALUES ('n', 1e12, '', '', 0)")
    )

    async def claim(owner: str, request_hash: str = "h") -> rows.Claim:
        return await store.tx(
            partial(
                rows.claim,
                principal="key:a",
                key="k",
                request_hash=request_hash,
                owner=owner,
                now=clock.now(),
                expires=clock.now() + CLAIM_FOR,
            )
        )

    assert (await claim("n/one")).owner == "n/one"
    assert await claim("n/one") == rows.Claim("h", "n/one", None, None, None)
    assert (await claim("n/two")).owner == "n/one"
    await store.tx(partial(rows.release, principal="key:a", key="k", owner="n/two"))
    assert (await claim("n/two")).owner == "n/one"
    await store.tx(partial(rows.release, principal="key:a", key="k", owner="n/one"))
    assert (await claim("n/two")).owner == "n/two"
    answer = partial(rows.answer, principal="key:a", key="k", status=201, headers="{}", body="done")
    await store.tx(partial(answer, owner="n/one", expires=clock.now() + KEPT_FOR))
    assert (await claim("n/three")).status is None
    await store.tx(partial(answer, owner="n/two", expires=clock.now() + KEPT_FOR))
    await store.tx(partial(rows.release, principal="key:a", key="k", owner="n/two"))
    assert await claim("n/three", "other") == rows.Claim("h", "n/two", 201, "{}", "done")
    clock.pass_(KEPT_FOR)
    assert (await claim("n/three")).owner == "n/three"


async def test_reading_takes_no_notice_of_a_key(local: httpx2.AsyncClient, face: ASGIApp) -> None:
    for _ in range(2):
        assert (await local.get("/v1/servers", headers=KEY)).status_code == 200
