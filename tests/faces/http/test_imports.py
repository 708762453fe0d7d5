"""OpenAPI documents over HTTP: by URL, inline, uploaded, under both prefixes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from aiohttp import web

from tests.faces.http.conftest import Clients
from tests.requirements import requirement
from toolyard.core.principal import Scope

IMPORT = "/v1/agents/default/tools/import-openapi"
PETS: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pet Corner", "version": "1"},
    "paths": {
        "/pets": {
            "get": {"operationId": "listPets", "summary": "All pets", "responses": {"200": {"description": "ok"}}},
            "post": {"operationId": "makePet", "responses": {"201": {"description": "ok"}}},
        },
        "/pets/{id}": {"get": {"responses": {"200": {"description": "ok"}}}},
        "/broken": {"get": 5},
    },
}


class Upstream:
    """A service with its own document, on a free port."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.url = ""

    async def document(self, request: web.Request) -> web.Response:
        return web.json_response({**PETS, "servers": [{"url": self.url}]})

    async def pets(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.path_qs}")
        return web.json_response([{"name": "Rex"}])


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    upstream = Upstream()
    service = web.Application()
    service.add_routes([web.get("/openapi.json", upstream.document), web.get("/pets", upstream.pets)])
    runner = web.AppRunner(service)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    upstream.url = f"http://{host}:{port}"
    yield upstream
    await runner.cleanup()


@requirement("openapi.api")
@pytest.mark.parametrize("path", [IMPORT, IMPORT.replace("/v1/", "/api/")])
async def test_a_document_at_a_url_becomes_tools_that_can_be_called(
    local: httpx2.AsyncClient, upstream: Upstream, path: str
) -> None:
    answer = await local.post(path, json={"url": f"{upstream.url}/openapi.json", "cluster": "Pets"})
    body = answer.json()
    assert answer.status_code == 201, answer.text
    assert (body["cluster"], body["provider"], answer.headers["location"]) == ("Pets", "pets", "/v1/providers/pets")
    assert [(tool["id"], tool["method"], tool["path"]) for tool in body["tools"]][:2] == [
        ("pets:listPets", "GET", "/pets"),
        ("pets:makePet", "POST", "/pets"),
    ]
    assert body["report"]["imported"] == len(body["tools"]) == 3
    assert [note["pointer"] for note in body["report"]["dropped"]] == ["#/paths/~1broken/get"]
    called = await local.post("/v1/tools/pets:listPets/call", json={})
    assert (called.status_code, called.json()["state"]) == (200, "COMPLETE"), called.text
    assert upstream.asked == ["GET /pets"]


@requirement("openapi.api", "cluster.list-delete")
async def test_an_imported_cluster_is_listed_with_method_path_and_summary_and_deleted_as_one(
    local: httpx2.AsyncClient,
) -> None:
    await local.post(IMPORT, json={"document": PETS, "base_url": "http://127.0.0.1:9"})
    listed = (await local.get("/v1/tools?cluster=Pet Corner")).json()["items"]
    assert {(tool["method"], tool["path"]) for tool in listed} == {
        ("GET", "/pets"),
        ("POST", "/pets"),
        ("GET", "/pets/{id}"),
    }
    assert "All pets" in next(tool["description"] for tool in listed if tool["name"] == "listPets")
    assert (await local.delete("/v1/clusters/Pet%20Corner")).json() == {"name": "Pet Corner", "deleted": 3}
    assert (await local.get("/v1/tools?cluster=Pet Corner")).json()["items"] == []
    assert (await local.get("/v1/providers/pet-corner")).status_code == 404


@pytest.mark.parametrize("document", [PETS, json.dumps(PETS), "openapi: 3.1.0\ninfo: {title: Pet Corner}\npaths: {}\n"])
async def test_a_document_is_taken_inline_as_object_or_text(local: httpx2.AsyncClient, document: object) -> None:
    answer = await local.post(IMPORT, json={"document": document, "base_url": "http://127.0.0.1:9"})
    assert (answer.status_code, answer.json()["cluster"]) == (201, "Pet Corner"), answer.text


async def test_a_document_is_uploaded(local: httpx2.AsyncClient) -> None:
    files = {"document": ("pets.json", json.dumps(PETS).encode(), "application/json")}
    answer = await local.post(IMPORT, files=files, data={"cluster": "Up", "base_url": "http://127.0.0.1:9"})
    assert (answer.status_code, answer.json()["cluster"]) == (201, "Up"), answer.text


async def test_changing_an_uploaded_api_keeps_its_document(local: httpx2.AsyncClient, upstream: Upstream) -> None:
    files = {"document": ("pets.json", json.dumps(PETS).encode(), "application/json")}
    await local.post(IMPORT, files=files, data={"cluster": "Up", "base_url": "http://127.0.0.1:9"})
    changed = await local.patch("/v1/providers/up", json={"base_url": upstream.url, "timeout": 5})
    assert (changed.status_code, changed.json()["state"], changed.json()["tool_count"]) == (200, "up", 3), changed.text
    called = await local.post("/v1/tools/up:listPets/call", json={})
    assert (called.json()["state"], upstream.asked) == ("COMPLETE", ["GET /pets"])


async def test_importing_again_replaces(local: httpx2.AsyncClient) -> None:
    body = {"document": PETS, "base_url": "http://127.0.0.1:9"}
    first, second = await local.post(IMPORT, json=body), await local.post(IMPORT, json=body)
    assert (first.status_code, second.status_code) == (201, 201)
    assert len((await local.get("/v1/tools?cluster=Pet Corner")).json()["items"]) == 3


async def test_of_two_imports_of_one_cluster_at_once_none_is_half_done(local: httpx2.AsyncClient) -> None:
    body = {"document": PETS, "cluster": "Pets", "base_url": "http://127.0.0.1:9"}
    answers = await asyncio.gather(*(local.post(IMPORT, json=body) for _ in range(4)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert any(answer.status_code == 201 for answer in answers)
    assert len((await local.get("/v1/tools?cluster=Pets")).json()["items"]) == 3


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({}, 422, "/url"),
        ({"url": "http://127.0.0.1:9/x", "document": "{}"}, 422, "/url"),
        ({"urls": "x"}, 422, "/urls"),
        ({"document": 5}, 422, "/document/str"),
        ({"document": PETS, "provider_id": "Not An Id"}, 422, "/id"),
        ({"document": PETS, "cluster": ""}, 422, "/cluster"),
        ({"document": "not: [a document"}, 422, None),
        ({"document": "just text"}, 422, None),
        ({"url": "http://127.0.0.1:9/openapi.json"}, 422, None),
        ({"url": "file:///etc/passwd"}, 422, None),
    ],
)
async def test_an_import_that_cannot_be_is_refused_and_leaves_nothing(
    local: httpx2.AsyncClient, body: object, status: int, pointer: str | None
) -> None:
    answer = await local.post(IMPORT, json=body)
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    assert answer.status_code == status, answer.text
    if pointer is not None:
        assert problem["errors"][0]["pointer"] == pointer
    assert [item["id"] for item in (await local.get("/v1/providers")).json()["items"]] == ["toolyard", "yard"]


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 422),
        (b"[]", "application/json", 422),
        (b"openapi: 3.1.0", "application/yaml", 415),
        (b"", "", 415),
        (b"nonsense", "multipart/form-data; boundary=x", 400),
        (b"nonsense", "multipart/form-data", 400),
        (
            b'--x\r\nContent-Disposition: form-data; name="cluster"\r\n\r\nA\r\n--x--\r\n',
            "multipart/form-data; boundary=x",
            422,
        ),
    ],
)
async def test_a_body_of_another_kind_is_refused(
    local: httpx2.AsyncClient, content: bytes, kind: str, status: int
) -> None:
    answer = await local.post(IMPORT, content=content, headers={"content-type": kind})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text


async def test_an_unknown_agent_and_a_key_without_the_scope_are_refused(
    local: httpx2.AsyncClient, clients: Clients
) -> None:
    body = {"document": PETS, "base_url": "http://127.0.0.1:9"}
    assert (await local.post(IMPORT.replace("default", "nosuch"), json=body)).status_code == 404
    refused = await (await clients.with_scopes(Scope.CALL, Scope.READ)).post(IMPORT, json=body)
    assert (refused.status_code, "'manage'" in refused.json()["error"]) == (403, True)
