"""Imports as callers make them: from a URL, a file or text, in a process of their own."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.egress.recorder import Recorded, answering, plain, recording
from tests.providers.openapi.documents import api_with, corpus_path, invocation
from tests.requirements import requirement

from toolyard.core.call import Progress
from toolyard.core.errors import BadInput, DocumentError
from toolyard.egress import Egress
from toolyard.providers.openapi import (
    DeferredOpenApiProvider,
    DocumentSource,
    ImportedApi,
    OpenApiProvider,
    import_document,
    running,
)

DOCUMENT = orjson.dumps(
    api_with({"/pets": {"get": {"operationId": "list"}}}, info={"title": "Pet Store!", "version": "1"})
)


@requirement("openapi.import")
async def test_the_title_names_cluster_and_namespace_unless_the_caller_does(egress: Egress) -> None:
    api = await import_document(DocumentSource.bytes(DOCUMENT), egress=egress)
    assert (api.namespace, api.cluster, api.title, api.version) == ("pet-store", "Pet Store!", "Pet Store!", "1")
    api = await import_document(DocumentSource.text(DOCUMENT.decode()), egress=egress, namespace="pets", cluster="Pets")
    assert [(tool.id, tool.cluster) for tool in api.tools] == [("pets:list", "Pets")]
    with pytest.raises(BadInput):
        await import_document(DocumentSource.bytes(DOCUMENT), egress=egress, namespace="Not Legal")


@requirement("openapi.import")
async def test_a_document_comes_from_a_url_and_its_relative_server_is_there(egress: Egress) -> None:
    document = {"openapi": "3.0.0", "paths": {"/pets": {"get": {"operationId": "list"}}}, "servers": [{"url": "/v1"}]}
    async with recording(answering(body=orjson.dumps(document))) as server:
        api = await import_document(DocumentSource.url(f"{server.url}/docs/api.json"), egress=egress)
        assert api.server == f"{server.url}/v1"


@requirement("openapi.import")
async def test_a_worker_process_reads_the_same_and_tells_how_far_it_is(egress: Egress) -> None:
    source = DocumentSource.file(corpus_path("github.json"))
    progress: list[Progress] = []
    api = await import_document(source, egress=egress, namespace="github", on_progress=progress.append)
    here = await import_document(source, egress=egress, namespace="github", in_worker=False)
    assert api == here
    assert len(api.tools) == 1223
    assert [each.message for each in progress[:2]] == ["Reading the document", "Reading operations"]
    assert progress[-1] == Progress(1223, 1223, "Done")


@pytest.mark.parametrize("in_worker", [True, False])
async def test_the_other_files_of_a_url_s_document_are_fetched_by_us_and_only_from_its_origin(
    egress: Egress, in_worker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SMALL_YAML", 0)
    files = {
        "/api/root.yaml": b"openapi: 3.0.0\npaths:\n  /a: {$ref: 'paths/a.yaml'}\n"
        b"  /b: {$ref: 'http://evil.test/b.yaml'}\n  /c: {$ref: 'paths/missing.yaml'}\n",
        "/api/paths/a.yaml": b"get:\n  operationId: a\n"
        b"  parameters: [{name: q, in: query, schema: {$ref: '../s.yaml#/S'}}]\n",
        "/api/s.yaml": b"S: {type: integer}\n",
    }

    async def serve(request: Recorded, writer: asyncio.StreamWriter) -> None:
        found = files.get(request.target)
        writer.write(plain(200, found, "text/yaml") if found else plain(404, b"no"))

    async with recording(serve) as server:
        api = await import_document(
            DocumentSource.url(f"{server.url}/api/root.yaml"), egress=egress, in_worker=in_worker
        )
        targets = [request.target for request in server.requests]
    document: Any = api.tools[0].input_schema.document()
    assert [tool.name for tool in api.tools] == ["a"]
    assert list(document["$defs"].values()) == [{"type": "integer"}]
    assert targets == ["/api/root.yaml", "/api/paths/a.yaml", "/api/paths/missing.yaml", "/api/s.yaml"]
    assert {note.pointer for note in api.report.dropped} >= {"#/paths/~1b", "#/paths/~1c"}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (answering(404, b"nope"), "answered with status 404"),
        (answering(200, b"<!doctype html><title>Docs</title>", "text/html"), "HTML page"),
        (answering(200, b'{"openapi": "3.0.0"}'), "has no `paths`"),
        (answering(200, b'{"openapi": "3.0.0", "paths": []}'), "`paths` is not an object"),
        (answering(200, b'{"asyncapi": "2.0"}'), "AsyncAPI"),
        (answering(200, b'{"swaggerVersion": "1.2"}'), "Swagger 1"),
        (answering(200, b'{"hello": 1}'), "not an OpenAPI document"),
        (answering(200, b"just text"), "not an OpenAPI document"),
        (answering(200, b"[1, 2]"), "not an OpenAPI document"),
    ],
)
async def test_what_is_no_document_is_refused_with_a_reason(egress: Egress, answer: Any, message: str) -> None:
    async with recording(answer) as server:
        with pytest.raises(DocumentError, match=message) as caught:
            await import_document(DocumentSource.url(f"{server.url}/x?token=hunter2"), egress=egress)
        assert "hunter2" not in str(caught.value)
        assert caught.value.suggestion


async def test_an_unreachable_url_and_a_missing_file_say_so(egress: Egress, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"nowhere\.invalid cannot be resolved"):
        await import_document(DocumentSource.url("https://nowhere.invalid/api.json"), egress=egress)
    with pytest.raises(DocumentError, match=r"none\.json cannot be read: No such file"):
        await import_document(DocumentSource.file(tmp_path / "none.json"), egress=egress)


async def test_an_endless_document_is_refused_at_the_cap(egress: Egress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LARGEST_DOCUMENT", 2_000_000)

    async def endless(_: Recorded, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{")
        while True:
            writer.write(b'"a": "' + b"x" * 65_536 + b'",')
            await writer.drain()

    async with recording(endless) as server:
        with pytest.raises(DocumentError, match="is larger than"):
            await import_document(DocumentSource.url(server.url), egress=egress)


async def test_a_file_of_100_mb_is_refused(egress: Egress, tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.write(b"{")
        file.truncate(100_000_000)
    with pytest.raises(DocumentError, match="larger than 64 MiB"):
        await import_document(DocumentSource.file(path), egress=egress)


async def test_a_bomb_is_refused_by_the_worker(egress: Egress) -> None:
    lines = ["openapi: 3.0.0", "l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12)]
    text = "\n".join(lines) + "\n#" + "x" * running.SMALL_YAML
    with pytest.raises(DocumentError, match="aliases expanded"):
        await import_document(DocumentSource.text(text), egress=egress)


async def test_a_cancelled_import_leaves_no_process_behind(egress: Egress, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def remember(*command: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*command, **options))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", remember)
    reading = asyncio.Event()

    def told(progress: Progress) -> None:
        if progress.message == "Reading operations":
            reading.set()

    source = DocumentSource.file(corpus_path("kubernetes.json"))
    task = asyncio.create_task(import_document(source, egress=egress, on_progress=told))
    async with asyncio.timeout(20):
        await reading.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert [await process.wait() for process in started] == [-9]


async def test_a_stored_import_that_cannot_be_read_says_what_to_do() -> None:
    with pytest.raises(DocumentError, match="Import the document again"):
        ImportedApi.from_bytes(b"\x81\xa1a\x01")


async def test_a_deferred_provider_reads_its_document_at_start_and_again_after_a_failure(
    egress: Egress, tmp_path: Path
) -> None:
    path = tmp_path / "api.json"
    async with recording() as server:
        provider = DeferredOpenApiProvider.of_document(
            "pets", DocumentSource.file(path), egress=egress, base_url=server.url
        )
        with pytest.raises(DocumentError, match="No such file"):
            await provider.start()
        path.write_bytes(DOCUMENT)
        await provider.start()
        (tool,) = await provider.tools()
        await provider.call(invocation(tool, {}))
        assert (server.last.target, provider.address) == ("/pets", server.url)


async def test_progress_and_restart_agree_about_the_tools(egress: Egress) -> None:
    api = await import_document(DocumentSource.bytes(DOCUMENT), egress=egress)
    assert await OpenApiProvider(ImportedApi.from_bytes(api.to_bytes()), egress=egress).tools() == api.tools
