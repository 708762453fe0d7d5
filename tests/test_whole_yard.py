"""A whole yard through its outermost face: what a user asks of it, end to end."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faces.http.client import client_of
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.core.errors import StoreUnavailable
from toolyard.faces.asgi import build
from toolyard.manifest import loads, parse_provider

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2

TOOLS = f"""
import toolyard

@toolyard.tool(read_only=True)
def repeat(text: str, times: int = 1) -> str:
    '''Repeat a text.'''
    return text * times

@toolyard.tool
def picture() -> dict[str, str]:
    '''Draw.'''
    return {{"shot": "data:image/png;base64,{base64.b64encode(PNG).decode()}", "title": "a cat"}}

@toolyard.tool
def search(query: str) -> str:
    '''Search the first place.'''
    return "first " + query
"""

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Kennel", "version": "1"},
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {
        "/search": {"get": {"operationId": "search", "parameters": [{"name": "q", "in": "query", "schema": {}}]}},
        "/dogs": {"post": {"operationId": "addDog", "requestBody": {"content": {"application/json": {"schema": {
            "type": "object", "properties": {"mail": {"type": "string", "format": "email"}}}}}}}},
    },
}  # fmt: skip


def settings(folder: Path) -> Settings:
    return Settings(data_dir=folder / "data", manifest_dir=folder, demo=True)


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[App]:
    (tmp_path / "whole_yard_tools.py").write_text(TOOLS)
    manifest = loads(b"providers:\n  - {id: local, kind: python, module: whole_yard_tools, required: true}\n")
    async with App.running(settings(tmp_path), manifest) as app:
        yield app


@pytest.fixture
async def http(yard: App) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(build(yard)) as client:
        yield client


async def call(http: httpx2.AsyncClient, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    answer = await http.post(f"/v1/tools/{tool}/call", json={"arguments": arguments})
    return answer.json()


async def mcp(http: httpx2.AsyncClient, method: str, name: str = "", **params: Any) -> dict[str, Any]:
    """One modern request; the result."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "accept": "application/json, text/event-stream",
    }
    if name:
        headers["mcp-name"] = name
        params["name"] = name
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    answer = await http.post("/mcp", json=body, headers=headers)
    reply: dict[str, Any] = answer.json()
    assert "result" in reply, reply
    return reply["result"]


@requirement("call.validate")
async def test_arguments_that_do_not_fit_are_refused_in_every_face(http: httpx2.AsyncClient) -> None:
    expected = "Invalid arguments for local:repeat: text: 3 is not of type \"string\"; unknown field 'time'."
    answer = await call(http, "local:repeat", {"text": 3, "time": 2})
    assert (answer["status"], answer["code"]) == (422, "invalid_arguments")
    assert (answer["error"], answer["suggestion"]) == (expected, "Did you mean 'times'?")
    result = await mcp(http, "tools/call", "local_repeat_action", arguments={"text": 3, "time": 2})
    assert result["isError"] is True
    assert expected in result["content"][0]["text"]
    assert "Did you mean 'times'?" in result["content"][0]["text"]


@requirement("call.validate")
async def test_formats_count_for_our_tools_and_are_hints_in_imported_ones(http: httpx2.AsyncClient) -> None:
    imported = await http.post("/v1/agents/default/tools/import-openapi", json={"document": DOCUMENT})
    assert imported.status_code in (200, 201), imported.text
    answer = await call(http, "kennel:addDog", {"mail": "not an address"})
    assert answer["error"]["code"] == "upstream"  # it was sent, and nobody listens there


@requirement("call.result-truncation")
async def test_a_long_result_is_cut_and_the_rest_can_be_read(http: httpx2.AsyncClient) -> None:
    result = await mcp(http, "tools/call", "local_repeat_action", arguments={"text": "0123456789", "times": 3_000})
    text = result["content"][0]["text"]
    assert len(text) <= 10_000
    assert "20,500 of 30,000 characters left out" in text
    call_id = text.partition("The whole result of ")[2].partition(" ")[0]
    whole = (await http.get(f"/v1/calls/{call_id}/result")).json()
    assert whole["content"][0]["text"] == "0123456789" * 3_000
    parts = ""
    offset = 0
    while offset < 30_000:
        arguments = {"call_id": call_id, "offset": offset}
        part = await mcp(http, "tools/call", "toolyard_get_call_result_action", arguments=arguments)
        text, _, note = part["content"][0]["text"].rpartition("\n\n[characters ")
        assert len(part["content"][0]["text"]) <= 10_000
        parts += text
        offset = int(note.split(" ")[2])
    assert parts == "0123456789" * 3_000
    record = (await http.get(f"/v1/calls/{call_id}")).json()
    assert record["preview"].startswith("0123456789")
    assert len(record["preview"]) <= 200


@requirement("call.images")
async def test_an_image_is_stored_and_served_and_the_model_reads_a_placeholder(http: httpx2.AsyncClient) -> None:
    answer = await call(http, "local:picture", {})
    assert answer["result"]["structured"] == {"shot": "[image displayed above]", "title": "a cat"}
    assert json.loads(answer["result"]["content"][0]["text"]) == answer["result"]["structured"]
    (image,) = answer["result"]["images"]
    served = await http.get(image["url"])
    assert served.content == PNG
    assert served.headers["content-type"] == "image/png"
    assert served.headers["x-content-type-options"] == "nosniff"


@requirement("provider.namespace")
async def test_tools_of_one_name_from_two_providers_stay_apart(http: httpx2.AsyncClient) -> None:
    await http.post("/v1/agents/default/tools/import-openapi", json={"document": DOCUMENT, "cluster": "Kennel"})
    listed = await mcp(http, "tools/list")
    names = {tool["name"] for tool in listed["tools"]}
    assert {"local_search_action", "kennel_search_action"} <= names
    assert (await call(http, "local:search", {"query": "x"}))["result"]["content"][0]["text"] == "first x"
    assert (await call(http, "kennel:search", {"q": "x"}))["error"]["code"] == "upstream"


async def test_two_imports_of_one_cluster_at_once_do_not_mix(http: httpx2.AsyncClient) -> None:
    body = {"document": DOCUMENT, "cluster": "Twice"}
    answers = await asyncio.gather(*(http.post("/v1/agents/default/tools/import-openapi", json=body) for _ in range(4)))
    assert sorted({answer.status_code for answer in answers} - {409}) in ([200], [201])
    tools = (await http.get("/v1/tools", params={"cluster": "Twice"})).json()["items"]
    assert sorted(tool["id"] for tool in tools) == ["twice:addDog", "twice:search"]


async def test_what_was_made_at_run_time_is_there_after_a_restart(tmp_path: Path) -> None:
    async with App.running(settings(tmp_path)) as app, client_of(build(app)) as http:
        await http.post("/v1/agents/default/tools/import-openapi", json={"document": DOCUMENT})
        await http.patch("/v1/tools/kennel:search", json={"time_limit": 3, "description": "Finds dogs."})
        await http.post("/v1/servers", json={"id": "dogs", "tools": ["kennel:*"]})
        created = (await http.post("/v1/keys", json={"name": "ci", "scopes": ["call"]})).json()
        called = await call(http, "kennel:search", {})
    async with App.running(settings(tmp_path)) as app, client_of(build(app)) as http:
        tool = (await http.get("/v1/tools/kennel:search")).json()
        assert (tool["description"], tool["policy"]["time_limit"]) == ("Finds dogs.", 3)
        assert "dogs" in {server["id"] for server in (await http.get("/v1/servers")).json()["items"]}
        assert (await http.get(f"/v1/calls/{called['id']}")).json()["error_code"] == "upstream"
        key = created["key"]
        listed = await http.get("/v1/tools", headers={"authorization": f"Bearer {key}"})
        assert listed.status_code == 200


async def test_a_second_yard_on_the_same_database_is_refused(yard: App) -> None:
    with pytest.raises(StoreUnavailable, match="in use by another Toolyard"):
        async with App.running(yard.settings):
            pass


async def test_hosts_that_the_manifest_names_are_let_in_to_mcp(tmp_path: Path) -> None:
    statuses: dict[str, int] = {}
    manifest = loads(b"settings: {allowed_hosts: [yard.internal]}")
    async with App.running(settings(tmp_path), manifest) as app, client_of(build(app)) as client:
        for host in ("yard.internal:8420", "evil.example"):
            statuses[host] = (await client.post("/mcp", json={}, headers={"host": host})).status_code
    assert statuses == {"yard.internal:8420": 401, "evil.example": 421}  # the demo is open to loopback names only


async def test_an_import_that_is_lost_is_down_with_the_reason_and_costs_nothing_else(tmp_path: Path) -> None:
    document = json.dumps(DOCUMENT).encode()
    async with App.running(settings(tmp_path)) as app:
        await app.import_openapi(document=document, cluster="Lost")
        await app.import_openapi(document=document, cluster="Broken")
        await app.import_openapi(document=document, cluster="Kept")
    for blob in (tmp_path / "data" / "blobs" / "apis" / "lost").iterdir():
        blob.unlink()
    for blob in (tmp_path / "data" / "blobs" / "apis" / "broken").iterdir():
        blob.write_bytes(blob.read_bytes()[:-9])

    async with App.running(settings(tmp_path)) as app:
        states = {status.id: (status.state.value, status.last_error) for status in app.supervisor.statuses()}
        assert states["kept"] == ("up", None)
        for name, why in (("lost", "There is no blob"), ("broken", "cannot be read")):
            state, error = states[name]
            assert state == "down"
            assert why in str(error)
            assert "Import the document again." in str(error)
        await app.import_openapi(document=document, cluster="Lost")
        assert app.supervisor.status("lost").state == "up"
        async with client_of(build(app)) as client:
            assert (await client.get("/v1/providers/lost")).json()["config"] == {
                "kind": "openapi", "id": "lost", "cluster": "Lost",
            }  # fmt: skip


async def test_an_import_that_was_replaced_or_removed_leaves_no_document_behind(tmp_path: Path) -> None:
    async with App.running(settings(tmp_path)) as app:
        for _ in range(3):
            await app.import_openapi(document=json.dumps(DOCUMENT).encode(), cluster="Pets")
        assert len(await app.blobs.names("apis")) == 1
        await app.delete_cluster("Pets")
        assert await app.blobs.names("apis") == []


async def test_tools_of_a_deleted_cluster_are_back_when_their_provider_is_added_again(tmp_path: Path) -> None:
    (tmp_path / "whole_yard_tools.py").write_text(TOOLS)
    config = parse_provider({"id": "again", "kind": "python", "module": "whole_yard_tools"})
    async with App.running(settings(tmp_path)) as app:
        await app.add_provider(config)
        await app.delete_cluster("Ungrouped")
        assert app.catalog.snapshot.get("again:repeat") is None
        await app.refresh_provider("again")
        assert app.catalog.snapshot.get("again:repeat") is None
        await app.remove_provider("again")
        await app.add_provider(config)
        assert app.catalog.snapshot.get("again:repeat") is not None
