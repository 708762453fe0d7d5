"""The outer edge: limits, probes, images, the reference page, and what is imported when."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from starlette.types import ASGIApp, Message

from tests.faces.http.conftest import Clients
from tests.faces.http.tools import YardTools
from toolyard.app import App
from toolyard.core.errors import StoreUnavailable
from toolyard.core.principal import Scope
from toolyard.faces.http.body import MIB

IMPORT = "/v1/agents/default/tools/import-openapi"


@pytest.mark.parametrize("path", ["/v1/tools/yard:echo/call", "/v1/servers", "/v1/keys"])
async def test_a_body_that_is_too_large_is_refused(local: httpx2.AsyncClient, tools: YardTools, path: str) -> None:
    announced = await local.post(path, content=b"x" * (4 * MIB + 1))
    assert (announced.status_code, announced.json()["code"]) == (413, "too_large")
    assert "4 MiB" in announced.json()["error"]

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * MIB

    streamed = await local.post(path, content=endless())
    assert (streamed.status_code, streamed.json()["code"]) == (413, "too_large")
    assert tools.ran == []


async def test_an_import_takes_more(local: httpx2.AsyncClient) -> None:
    document = b'{"openapi": "3.1.0", "info": {"title": "A"}, "paths": {}, "x": "' + b"y" * (5 * MIB) + b'"}'
    files = {"document": ("a.json", document, "application/json")}
    answer = await local.post(IMPORT, files=files, data={"base_url": "http://127.0.0.1:9"})
    assert answer.status_code == 201, answer.text
    refused = await local.post(IMPORT, content=b"", headers={"content-length": str(71 * MIB)})
    assert (refused.status_code, "70 MiB" in refused.json()["error"]) == (413, True)


async def test_nobody_without_a_key_makes_us_read_a_body(app: App, face: ASGIApp) -> None:
    asked, sent = list[str](), list[Message]()

    async def receive() -> Message:
        asked.append("body")
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = _scope("POST", "/v1/servers", [(b"host", b"other.example.com")])
    async with asyncio.timeout(5):
        await face(scope, receive, send)
    assert (sent[0]["status"], asked) == (401, [])


async def test_a_client_that_leaves_in_the_middle_of_its_request_changes_nothing(
    face: ASGIApp, local: httpx2.AsyncClient
) -> None:
    messages: list[Message] = [
        {"type": "http.request", "body": b'{"id": "sales"', "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent = list[Message]()

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    async with asyncio.timeout(5):
        await face(_scope("POST", "/v1/servers", [(b"host", b"127.0.0.1")]), receive, send)
    assert sent == []
    assert (await local.get("/v1/servers/sales")).status_code == 404


def _scope(method: str, path: str, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 50000),
    }


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nosuch", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/v1/tools/", 422, "invalid"),
        ("POST", "/v1/clusters", 405, "method_not_allowed"),
        ("PUT", "/v1/tools/yard:echo", 405, "method_not_allowed"),
        ("GET", "/api/nosuch", 404, "not_found"),
        ("GET", "/v1/keys/", 404, "not_found"),
    ],
)
async def test_what_is_not_there_is_a_problem_too(
    local: httpx2.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    answer = await local.request(method, path)
    assert (answer.status_code, answer.json()["code"], answer.headers["content-type"]) == (
        status,
        code,
        "application/problem+json",
    )


@pytest.mark.parametrize("path", ["/healthz", "/v1/tools", "/v1/nosuch", "/docs", "/metrics", "/blobs/x"])
async def test_no_answer_is_guessed_at_or_kept_by_a_cache(local: httpx2.AsyncClient, path: str) -> None:
    answer = await local.get(path)
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert answer.headers.get_list("cache-control") == ["no-store"]


async def test_every_problem_has_the_same_shape(local: httpx2.AsyncClient) -> None:
    answer = await local.get("/v1/calls/call_nosuch")
    assert answer.json() == {
        "type": "about:blank",
        "title": "Not found",
        "status": 404,
        "detail": "There is no call 'call_nosuch'.",
        "error": "There is no call 'call_nosuch'.",
        "code": "not_found",
        "suggestion": None,
    }


async def test_a_disk_that_is_nearly_full_is_not_ready(
    local: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.faces.http.health._free_bytes", lambda _: 5 * 2**20)
    unready = await local.get("/readyz")
    assert (unready.status_code, unready.json()["reasons"]) == (
        503,
        [{"part": "disk", "reason": "only 5 MiB are free where the data is kept."}],
    )


async def test_a_database_that_takes_no_writes_is_not_ready(
    local: httpx2.AsyncClient, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(fn: object) -> object:
        raise StoreUnavailable("The disk is full.")

    monkeypatch.setattr(app.store, "tx", refuse)
    lease = app.engine.lease
    lease.renewed(lease.sending() - 0.4 * lease.ttl)
    assert (await local.get("/readyz")).status_code == 200
    lease.renewed(lease.sending() - 0.6 * lease.ttl)
    unready = await local.get("/readyz")
    assert (unready.status_code, unready.json()["reasons"]) == (
        503,
        [{"part": "store", "reason": "Nothing could be written of late: this node's lease was not renewed."}],
    )
    monkeypatch.undo()
    lease.renewed(lease.sending())
    assert (await local.get("/readyz")).status_code == 200


async def test_ready_says_what_is_missing_to_those_who_may_read(
    local: httpx2.AsyncClient, clients: Clients, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await local.get("/readyz")).json() == {"status": "ready", "reasons": []}

    async def refuse(fn: object) -> object:
        raise StoreUnavailable("The database does not answer.")

    monkeypatch.setattr(app.store, "read", refuse)
    unready = await local.get("/readyz")
    assert (unready.status_code, unready.json()) == (
        503,
        {"status": "unready", "reasons": [{"part": "store", "reason": "The database does not answer."}]},
    )
    tools = await local.get("/v1/metrics/tools")
    assert (tools.status_code, tools.json()["code"]) == (503, "unavailable")
    assert (await local.get("/healthz")).status_code == 200


async def test_ready_waits_for_required_providers(local: httpx2.AsyncClient, app: App) -> None:
    class Down(YardTools):
        id = "down"

        async def health(self) -> None:
            raise AssertionError

    await app.supervisor.add_and_start(Down(), required=True)
    real = app.supervisor.statuses

    def statuses() -> list[Any]:
        from dataclasses import replace

        from toolyard.providers.supervisor import ProviderState

        return [
            replace(status, state=ProviderState.DOWN, last_error="refused") if status.id == "down" else status
            for status in real()
        ]

    app.supervisor.statuses = statuses  # type: ignore[method-assign]
    answer = await local.get("/readyz")
    assert (answer.status_code, answer.json()["reasons"]) == (503, [{"part": "provider:down", "reason": "refused"}])


async def test_an_image_is_served_with_its_type_and_runs_nothing(local: httpx2.AsyncClient, clients: Clients) -> None:
    mine, other = (
        await clients.with_scopes(Scope.CALL, name="mine"),
        await clients.with_scopes(Scope.CALL, name="other"),
    )
    called = await mine.post("/v1/tools/yard:image/call", json={"arguments": {"text": "x"}})
    record = (await local.get(f"/v1/calls/{called.json()['id']}")).json()
    url = f"/blobs/calls/{record['created'][:10]}/{record['id']}-0.png"
    assert url in called.text
    image = await mine.get(url)
    assert image.content.startswith(b"\x89PNG")
    assert {name: image.headers[name] for name in ("content-type", "x-content-type-options")} == {
        "content-type": "image/png",
        "x-content-type-options": "nosniff",
    }
    assert "sandbox" in image.headers["content-security-policy"]
    assert (await local.get(url)).status_code == 200
    assert (await other.get(url)).status_code == 404


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x",
        "apis/pets/api_abc",
        "calls/2026-11-20/call_abc-result.json",
        "calls/2026-11-20/call_abc-0.png",
        "calls/2026-11-20/..%2F..%2Ftoolyard.db-0.png",
        "../toolyard.db",
        "%2e%2e/toolyard.db",
    ],
)
async def test_nothing_but_images_is_served_as_a_blob(local: httpx2.AsyncClient, name: str) -> None:
    answer = await local.get(f"/blobs/{name}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert (await local.delete(f"/blobs/{name}")).status_code == 404


async def test_the_reference_page_needs_nothing_from_elsewhere_and_runs_nothing(local: httpx2.AsyncClient) -> None:
    page = await local.get("/docs")
    policy = page.headers["content-security-policy"]
    document = (await local.get("/openapi.json")).json()
    assert page.status_code == 200
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "<script" not in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text
    for path, operations in document["paths"].items():
        assert path in page.text
        for operation in operations.values():
            assert f'id="{operation["operationId"]}"' in page.text
            assert "Needs the scope" in operation["description"]
    assert (await local.get("/v1/openapi.json")).json() == document


def test_building_the_face_imports_nothing_heavy() -> None:
    heavy = ("fastapi", "pydantic", "prometheus_client", "jinja2", "mcp", "numpy", "obstore", "psycopg")
    code = (
        "import sys; import toolyard.faces.http.edge; from toolyard.identity import Gate;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
