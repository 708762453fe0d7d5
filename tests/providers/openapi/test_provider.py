"""Calls against a real server that keeps every byte: what goes out, and what becomes of the answer."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from tests.egress.recorder import Recorded, answering, plain, recording
from tests.providers.openapi.documents import api_with, corpus_path, imported, imported_file, invocation, tool_of
from tests.requirements import requirement

from toolyard.core.call import ToolResult
from toolyard.core.errors import BadInput, CallError, ErrorCode, ProviderError
from toolyard.egress import Egress
from toolyard.providers.openapi import OpenApiProvider
from toolyard.providers.openapi import provider as provider_module

ONE = api_with({"/x": {method: {"operationId": method} for method in ("get", "post", "delete")}})


async def call(egress: Egress, url: str, method: str = "get", **more: Any) -> ToolResult:
    api = imported(ONE)
    provider = OpenApiProvider(api, egress=egress, base_url=url)
    return await provider.call(invocation(tool_of(api, method), {}, **more))


async def failed(egress: Egress, url: str, method: str = "get", **more: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        await call(egress, url, method, **more)
    return caught.value


# --- real documents: import, call, compare exact bytes

REAL_CALLS: list[tuple[str, str, dict[str, Any], str, bytes]] = [
    ("petstore30.yaml", "findPetsByStatus", {"status": "sold"}, "GET /pet/findByStatus?status=sold", b""),
    ("petstore30.yaml", "getPetById", {"petId": 7}, "GET /pet/7", b""),
    ("petstore30.yaml", "addPet", {"name": "Rex", "photoUrls": ["u"], "category": {"id": 1}}, "POST /pet",
     b'{"name":"Rex","category":{"id":1},"photoUrls":["u"]}'),
    ("petstore30.yaml", "uploadFile", {"petId": 7, "body": "AAEC"}, "POST /pet/7/uploadImage", b"\x00\x01\x02"),
    ("petstore-expanded.yaml", "findPets", {"tags": ["a b", "c"], "limit": 3},
     "GET /pets?tags=a%20b&tags=c&limit=3", b""),
    ("petstore-expanded.yaml", "deletePet", {"id": 3}, "DELETE /pets/3", b""),
    ("notion.json", "retrieve-a-page", {"page_id": "a/b"}, "GET /v1/pages/a%2Fb", b""),
    ("notion.json", "post-search", {"query": "x", "page_size": 5}, "POST /v1/search", b'{"query":"x","page_size":5}'),
    ("spotify.yml", "search", {"q": "miles davis", "type": ["album", "track"]},
     "GET /search?q=miles%20davis&type=album,track", b""),
    ("spotify.yml", "upload-custom-playlist-cover", {"playlist_id": "p", "body": "AAEC"},
     "PUT /playlists/p/images", b"AAEC"),
    ("github.json", "issues_create", {"owner": "o", "repo": "r", "title": "t", "labels": ["a"]},
     "POST /repos/o/r/issues", b'{"title":"t","labels":["a"]}'),
    ("github.json", "repos_get-content", {"owner": "o", "repo": "r", "path": "b c.md"},
     "GET /repos/o/r/contents/b%20c.md", b""),
    ("github.json", "markdown_render-raw", {"body": "# hi"}, "POST /markdown/raw", b"# hi"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "name", "arguments", "line", "body"), REAL_CALLS)
@requirement("openapi.execute")
async def test_operations_of_real_documents_go_out_exactly(
    document: str, name: str, arguments: dict[str, Any], line: str, body: bytes
) -> None:
    api, egress = imported_file(corpus_path(document)), Egress()
    async with recording() as server:
        provider = OpenApiProvider(api, egress=egress, base_url=server.url)
        result = await provider.call(invocation(tool_of(api, name), arguments))
        sent = server.last
        assert (f"{sent.method} {sent.target}", sent.body) == (line, body)
        assert sent.header("Content-Length") == (str(len(body)) if body or sent.method == "DELETE" else None)
    await egress.close()
    assert result.structured == {}


@requirement("openapi.execute")
async def test_a_document_s_version_header_goes_along(egress: Egress) -> None:
    api = imported_file(corpus_path("notion.json"))
    async with recording() as server:
        provider = OpenApiProvider(api, egress=egress, base_url=server.url, headers={"Authorization": "Bearer s"})
        await provider.call(invocation(tool_of(api, "get-self"), {}))
        assert server.last.header("Notion-Version")
        assert server.last.header("Authorization") == "Bearer s"


# --- servers and credentials


async def test_the_base_url_takes_the_place_of_the_document_s_server_with_its_path(egress: Egress) -> None:
    paths = {
        "/a": {"get": {"operationId": "a"}},
        "/b": {"get": {"operationId": "b", "servers": [{"url": "https://api.test/v2"}]}},
    }
    api = imported(api_with(paths))
    async with recording() as server:
        provider = OpenApiProvider(api, egress=egress, base_url=f"{server.url}/proxy/v1/")
        for name in "ab":
            await provider.call(invocation(tool_of(api, name), {}))
        assert [request.target for request in server.requests] == ["/proxy/v1/a", "/v2/b"]


@pytest.mark.parametrize("status", [200, 401, 500])
async def test_a_credential_that_the_api_says_back_is_hidden(egress: Egress, status: int) -> None:
    secret = "tok-0123456789"
    said = (
        b'{"sent": {"authorization": "Bearer tok-0123456789", "token": "tok-0123456789", "accept": "application/json"}}'
    )
    api = imported(api_with({"/a": {"get": {"operationId": "a"}}}))
    async with recording(answering(status, said)) as server:
        headers = {"Authorization": f"Bearer {secret}", "Accept": "application/json"}
        provider = OpenApiProvider(api, egress=egress, base_url=server.url, headers=headers)
        try:
            told = str((await provider.call(invocation(tool_of(api, "a"), {}))).structured)
            assert "'authorization': '***', 'token': '***', 'accept': 'application/json'" in told
        except CallError as error:
            told = str(error)
        assert server.last.header("Authorization") == f"Bearer {secret}"
    assert secret not in told


async def test_operator_headers_come_last_and_go_only_to_trusted_origins(egress: Egress) -> None:
    async with recording() as ours, recording() as other:
        parameter = {"name": "X-Tenant", "in": "header", "schema": {"type": "string"}}
        paths = {
            "/a": {"get": {"operationId": "a", "parameters": [parameter]}},
            "/b": {"get": {"operationId": "b", "servers": [{"url": other.url}]}},
        }
        api = imported(api_with(paths))
        headers = {"X-Tenant": "operator", "X-Key": "secret"}
        provider = OpenApiProvider(api, egress=egress, base_url=ours.url, headers=headers)
        await provider.call(invocation(tool_of(api, "a"), {"X-Tenant": "model"}))
        assert (ours.last.header("X-Tenant"), ours.last.header("X-Key")) == ("operator", "secret")
        await provider.call(invocation(tool_of(api, "b"), {}))
        assert other.last.header("X-Key") is None
        trusting = OpenApiProvider(api, egress=egress, base_url=ours.url, headers=headers, trusted_origins=[other.url])
        await trusting.call(invocation(tool_of(api, "b"), {}))
        assert other.last.header("X-Key") == "secret"


async def test_without_any_server_a_call_says_what_is_missing(egress: Egress) -> None:
    api = imported(api_with({"/x": {"get": {"operationId": "get"}}}, servers=[]))
    with pytest.raises(CallError, match="set the provider's base URL") as caught:
        await OpenApiProvider(api, egress=egress).call(invocation(tool_of(api, "get"), {}))
    assert caught.value.code is ErrorCode.UPSTREAM


@pytest.mark.parametrize("url", ["api.test/v1", "ftp://h/x", "https://", "https://h/x?key=hunter2", "http://h:bad/"])
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadInput) as caught:
        OpenApiProvider(imported(ONE), egress=Egress(), base_url=url)
    assert "hunter2" not in str(caught.value)


# --- answers

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("answer", "content", "structured"),
    [
        (plain(200, b'{"a":1}'), [{"type": "text", "text": '{"a":1}'}], {"a": 1}),
        (plain(200, b"[1]", "application/vnd.x+json; charset=utf-8"), [{"type": "text", "text": "[1]"}], [1]),
        (plain(200, b"not json"), [{"type": "text", "text": "not json"}], None),
        (plain(200, "grüß".encode("latin-1"), "text/plain; charset=latin-1"), [{"type": "text", "text": "grüß"}], None),
        (plain(200, b"a,b\n1,2", "text/csv"), [{"type": "text", "text": "a,b\n1,2"}], None),
        (plain(200, PNG, "image/png"), [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}], None),
        (
            plain(200, b"\0\1", "application/zip"),
            [{"type": "resource", "resource": {"uri": "attachment:x", "mimeType": "application/zip", "blob": "AAE="}}],
            None,
        ),
        (
            plain(303, b"<a>see other</a>", "text/html", {"Location": "/x/1"}),
            [{"type": "text", "text": '{"status":303,"location":"/x/1"}'}],
            {"status": 303, "location": "/x/1"},
        ),
        (plain(204, b"", None), [{"type": "text", "text": '{"status":204}'}], {"status": 204}),
        (
            plain(201, b"", None, {"Location": "/x/1"}),
            [{"type": "text", "text": '{"status":201,"location":"/x/1"}'}],
            {"status": 201, "location": "/x/1"},
        ),
        (
            plain(200, b"[]", headers={"Link": '</x?page=2>; rel="next"'}),
            [{"type": "text", "text": "[]"}, {"type": "text", "text": 'Link: </x?page=2>; rel="next"'}],
            [],
        ),
    ],
)
@requirement("openapi.execute")
async def test_answers_are_read_by_their_own_content_type(
    egress: Egress, answer: bytes, content: list[Any], structured: Any
) -> None:
    async def serve(_: Recorded, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    async with recording(serve) as server:
        result = await call(egress, server.url, "post")
    assert (list(result.content), result.structured, result.is_error) == (content, structured, False)


async def test_status_and_useful_headers_are_kept_for_the_record(egress: Egress) -> None:
    headers = {"ETag": '"1"', "X-RateLimit-Remaining": "4", "Server": "x", "Set-Cookie": "s=1"}
    async with recording(answering(headers=headers)) as server:
        result = await call(egress, server.url)
    assert result.details == {"status": 200, "headers": {"etag": '"1"', "x-ratelimit-remaining": "4"}}


@pytest.mark.parametrize(
    ("status", "code", "suggestion"),
    [
        (400, ErrorCode.UPSTREAM, "Check the arguments"),
        (401, ErrorCode.REAUTH_REQUIRED, "credentials"),
        (403, ErrorCode.UPSTREAM, "credentials"),
        (404, ErrorCode.UPSTREAM, "identifiers"),
        (418, ErrorCode.UPSTREAM, "Check the arguments"),
        (500, ErrorCode.UPSTREAM, "try again later"),
        (599, ErrorCode.UPSTREAM, "try again later"),
    ],
)
@requirement("openapi.execute")
async def test_a_refusal_says_status_host_and_what_the_api_said(
    egress: Egress, status: int, code: ErrorCode, suggestion: str
) -> None:
    async with recording(answering(status, b'{"message": "no ' + b"x" * 600 + b'"}')) as server:
        error = await failed(egress, server.url)
        assert error.message.startswith(f"{server.url.removeprefix('http://')} answered {status}")
    assert error.code is code
    assert suggestion in (error.suggestion or "")
    said = error.message.partition(": {")[2]
    assert (len(said), said[-1]) == (500, "…")


async def test_an_html_error_page_is_quoted_as_text(egress: Egress) -> None:
    page = b"<html><head><style>p {}</style></head><body><h1>Bad  gateway</h1></body></html>"
    async with recording(answering(502, page, "text/html")) as server:
        assert (await failed(egress, server.url)).message.endswith("502 Bad Gateway: Bad gateway")


@pytest.mark.parametrize(("method", "requests"), [("get", 2), ("delete", 2), ("post", 1)])
async def test_a_busy_api_is_asked_once_more_if_that_is_harmless(egress: Egress, method: str, requests: int) -> None:
    async with recording(answering(503, b"busy", "text/plain", {"Retry-After": "0"})) as server:
        error = await failed(egress, server.url, method)
        assert len(server.requests) == requests
    assert error.suggestion == "Try again after 0 s."


async def test_a_long_wait_is_handed_on_instead_of_waited_for(egress: Egress) -> None:
    async with recording(answering(429, b"", headers={"Retry-After": "60"})) as server:
        assert (await failed(egress, server.url)).suggestion == "Try again after 60 s."
        assert len(server.requests) == 1


async def test_an_endless_answer_ends_at_the_time_limit_with_what_came(egress: Egress) -> None:
    async def watch(_: Recorded, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"type":"ADDED"}\n')
        await writer.drain()
        await asyncio.Event().wait()

    async with recording(watch) as server:
        result = await call(egress, server.url, time_limit=0.3)
    assert result.text == '{"type":"ADDED"}\n\n[cut: the answer did not end within the time limit; this is what came]'


async def test_an_answer_over_the_cap_is_cut_never_an_error(egress: Egress) -> None:
    async with recording(answering(200, b'["' + b"x" * 11_000_000 + b'"]')) as server:
        result = await call(egress, server.url, "post")
    assert result.text.startswith('["xxx')
    assert result.text.endswith("\n[cut: the answer is longer than 10 MiB; this is its beginning]")


async def test_no_answer_in_time_is_a_timeout_and_a_post_may_have_been_carried_out(egress: Egress) -> None:
    async def silent(_: Recorded, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with recording(silent) as server:
        error = await failed(egress, server.url, "post", time_limit=0.2)
        assert error.code is ErrorCode.TIMEOUT
        assert "The POST may have been carried out." in error.message
        assert "may have been" not in (await failed(egress, server.url, "get", time_limit=0.2)).message


async def test_a_lost_post_is_not_sent_again(egress: Egress) -> None:
    async def hang_up(_: Recorded, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with recording(hang_up) as server:
        error = await failed(egress, server.url, "post")
        assert len(server.requests) == 1
    assert (error.code, "may have been carried out" in error.message) == (ErrorCode.UPSTREAM, True)


async def test_an_api_that_is_down_fails_calls_and_health_alike(egress: Egress) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        error = await failed(egress, url, "post")
        assert error.code is ErrorCode.UPSTREAM
        assert "may have been" not in error.message
        with pytest.raises(ProviderError, match="No connection to"):
            await OpenApiProvider(imported(ONE), egress=egress, base_url=url).health()


async def test_any_answer_means_healthy(egress: Egress) -> None:
    async with recording(answering(404, b"")) as server:
        await OpenApiProvider(imported(ONE), egress=egress, base_url=server.url).health()
        assert server.last.method == "HEAD"


async def test_cancelling_a_call_ends_its_request(egress: Egress) -> None:
    arrived = asyncio.Event()

    async def say_nothing(_: Recorded, writer: asyncio.StreamWriter) -> None:
        arrived.set()

    async with recording(say_nothing) as server, asyncio.timeout(5):
        task = asyncio.create_task(call(egress, server.url))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.disconnected.wait()


async def test_an_operation_that_is_gone_is_not_found(egress: Egress) -> None:
    api = imported(ONE)
    other = imported(api_with({"/y": {"get": {"operationId": "gets"}}}))
    with pytest.raises(CallError, match="Did you mean 'get'") as caught:
        await OpenApiProvider(api, egress=egress).call(invocation(tool_of(other, "gets"), {}))
    assert caught.value.code is ErrorCode.NOT_FOUND


async def test_arguments_without_a_place_never_leave_us(egress: Egress) -> None:
    assert provider_module.LONGEST_WAIT == 10
    async with recording() as server:
        api = imported(ONE)
        provider = OpenApiProvider(api, egress=egress, base_url=server.url)
        await provider.call(invocation(tool_of(api, "get"), {"stray": "value"}))
        assert server.last.target == "/x"
