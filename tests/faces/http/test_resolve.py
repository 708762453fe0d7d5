"""POST /v1/resolve: as RESOLVE_ACTIONS, over HTTP."""

from __future__ import annotations

import httpx2
import pytest

from tests.requirements import requirement
from toolyard.app import App
from toolyard.catalog import Server


@requirement("agentmode.resolve")
async def test_entries_are_answered_with_their_actions(local: httpx2.AsyncClient) -> None:
    answer = await local.post("/v1/resolve", json={"integration_query": ["Echo Yard"]})
    assert answer.status_code == 200
    assert answer.json()[0]["slug"] == "yard"
    assert answer.json()[0]["identifier"] == "echo"
    assert set(answer.json()[0]) == {"slug", "type", "identifier", "json_schema"}


async def test_nothing_that_matches_is_a_sentence(local: httpx2.AsyncClient) -> None:
    answer = await local.post("/v1/resolve", json={"integration_query": ["Frobnicate Zyzzyva"]})
    assert (answer.status_code, type(answer.json())) == (200, str)


async def test_only_tools_of_the_named_server_are_found(local: httpx2.AsyncClient, app: App) -> None:
    await app.save_server(Server("none", tools=("nosuch:*",)))
    answer = await local.post("/v1/resolve", json={"integration_query": ["Echo Yard"], "server": "none"})
    assert isinstance(answer.json(), str)
    unknown = await local.post("/v1/resolve", json={"integration_query": ["Echo Yard"], "server": "nosuch"})
    assert unknown.status_code == 404


@pytest.mark.parametrize(
    "body",
    [{}, {"integration_query": []}, {"integration_query": "Echo"}, {"integration_query": [""]}, {"query": ["x"]}],
)
async def test_bad_entries_are_refused(local: httpx2.AsyncClient, body: object) -> None:
    assert (await local.post("/v1/resolve", json=body)).status_code == 422


async def test_a_search_is_filtered_before_it_is_cut(local: httpx2.AsyncClient) -> None:
    first = (await local.get("/v1/tools", params={"q": "yard", "limit": 1, "kind": "builtin"})).json()["items"]
    assert all(item["kind"] == "builtin" for item in first)
    both = (await local.get("/v1/tools", params={"q": "echo", "limit": 1, "provider": "yard"})).json()["items"]
    assert [item["id"] for item in both] == ["yard:echo"]
