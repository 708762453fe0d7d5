"""The audit log over HTTP: filtered, paged, exported; and what is counted from it."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import httpx2
import pytest
from starlette.types import ASGIApp

from tests.faces.http.client import streaming
from tests.faces.http.conftest import Clients
from tests.requirements import requirement
from toolyard.app import App
from toolyard.core.principal import Scope


async def call(client: httpx2.AsyncClient, tool: str, text: str) -> str:
    answer = await client.post(f"/v1/tools/yard:{tool}/call", json={"arguments": {"text": text}})
    body: dict[str, Any] = answer.json()
    return str(body.get("id") or body["call_id"])


@requirement("call.audit")
async def test_a_record_says_who_called_what_with_what_and_what_came_of_it(
    local: httpx2.AsyncClient, clients: Clients
) -> None:
    caller = await clients.with_scopes(Scope.CALL, name="ci")
    call_id = await call(caller, "echo", "exact ✓")
    record = (await local.get(f"/v1/calls/{call_id}")).json()
    times = [record.pop(name) for name in ("created", "started", "finished")]
    duration, tokens = record.pop("duration_ms"), record.pop("tokens")
    assert record == {
        "id": call_id,
        "tool": "yard:echo",
        "state": "COMPLETE",
        "principal": "key:ci",
        "origin": "http",
        "server": None,
        "error_code": None,
        "error": None,
        "suggestion": None,
        "preview": record["preview"],
        "details": None,
        "input_bytes": len('{"text":"exact ✓"}'.encode()),
        "output_bytes": record["output_bytes"],
        "idempotency_key": None,
        "session": None,
        "arguments": {"text": "exact ✓"},
        "result_url": f"/v1/calls/{call_id}/result",
        "waiting": None,
    }
    assert times == sorted(times)
    assert all(time.endswith("Z") for time in times)
    assert duration >= 0
    assert tokens > 0
    result = await local.get(record["result_url"])
    assert result.json()["structuredContent"] == {"echo": "exact ✓"}
    assert len(result.content) == record["output_bytes"]


@requirement("call.audit")
async def test_a_failure_on_record_is_the_one_the_caller_saw(local: httpx2.AsyncClient) -> None:
    answer = await local.post("/v1/tools/yard:fail/call", json={"arguments": {"text": "x"}})
    seen = answer.json()
    record = (await local.get(f"/v1/calls/{seen['id']}")).json()
    assert seen["error"] == {
        "error": record["error"],
        "code": record["error_code"],
        "suggestion": record["suggestion"],
    }
    assert record["result_url"] is None
    missing = await local.get(f"/v1/calls/{seen['id']}/result")
    assert (missing.status_code, "failed before" in missing.json()["error"]) == (404, True)


@requirement("call.audit")
async def test_records_are_filtered_searched_and_paged_newest_first(
    local: httpx2.AsyncClient, clients: Clients
) -> None:
    caller = await clients.with_scopes(Scope.CALL, name="ci")
    made = [await call(local, "echo", f"n{number}") for number in range(5)]
    failed = await call(local, "fail", "needle")
    refused = await call(local, "echo-nosuch", "x")
    others = await call(caller, "write", "y")

    async def found(query: str) -> list[str]:
        answer = await local.get(f"/v1/calls?{query}")
        assert answer.status_code == 200, answer.text
        return [item["id"] for item in answer.json()["items"]]

    assert await found("") == [others, refused, failed, *reversed(made)]
    assert await found("tool=yard:echo") == made[::-1]
    assert await found("state=ERROR") == [refused, failed]
    assert await found("code=upstream") == [failed]
    assert await found("principal=key:ci") == [others]
    assert await found("q=needle") == [failed]
    assert await found("origin=mcp") == []
    assert await found("provider=yard&tool=yard:write") == [others]
    first = (await local.get(f"/v1/calls/{made[0]}")).json()["created"]
    assert await found(f"until={first}") == []
    assert await found(f"since={first}") == [others, refused, failed, *reversed(made)]
    pages, cursor = list[list[str]](), ""
    while True:
        page = (await local.get(f"/v1/calls?limit=3{cursor}")).json()
        pages.append([item["id"] for item in page["items"]])
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert [len(page) for page in pages] == [3, 3, 2]
    assert [call_id for page in pages for call_id in page] == [others, refused, failed, *reversed(made)]


@pytest.mark.parametrize(
    "query",
    ["since=yesterday", "since=2026-11-20T10:00:00", "state=DONE", "code=nope", "origin=x", "cursor=nonsense", "tol=x"],
)
async def test_a_filter_that_makes_no_sense_is_refused(local: httpx2.AsyncClient, query: str) -> None:
    answer = await local.get(f"/v1/calls?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), answer.text


async def test_since_must_be_before_until(local: httpx2.AsyncClient) -> None:
    answer = await local.get("/v1/calls?since=2026-11-20T10:00:00Z&until=2026-11-20T09:00:00Z")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "query:since")


@requirement("call.audit")
async def test_records_are_exported_as_json_lines(local: httpx2.AsyncClient) -> None:
    made = [await call(local, "echo", text) for text in ("a", "b")] + [await call(local, "fail", "c")]
    answer = await local.get("/v1/calls?limit=1", headers={"accept": "application/jsonl"})
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.headers["content-type"] == "application/jsonl"
    assert answer.headers["content-disposition"] == 'attachment; filename="calls.jsonl"'
    assert [line["id"] for line in lines] == made[::-1]
    assert [line["arguments"] for line in lines] == [{"text": "c"}, {"text": "b"}, {"text": "a"}]
    assert [line["result"] and line["result"]["structuredContent"] for line in lines] == [
        None,
        {"echo": "b"},
        {"echo": "a"},
    ]


@requirement("call.audit")
async def test_records_are_exported_as_csv_with_the_same_filters(local: httpx2.AsyncClient) -> None:
    await call(local, "fail", "left out")
    kept = await call(local, "echo", '=cmd|"quoted", and\nmore')
    answer = await local.get("/v1/calls?tool=yard:echo", headers={"accept": "text/csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert [(row["id"], row["tool"], row["state"]) for row in rows] == [(kept, "yard:echo", "COMPLETE")]
    assert json.loads(rows[0]["arguments"]) == {"text": '=cmd|"quoted", and\nmore'}


async def test_an_export_is_streamed(local: httpx2.AsyncClient, face: ASGIApp) -> None:
    made = await call(local, "echo", "a")
    async with streaming(face, "/v1/calls", headers={"accept": "application/x-ndjson"}) as stream:
        assert made in await stream.until("\n")
        await stream.ended.wait()
    assert (stream.status, stream.headers["content-type"]) == (200, "application/x-ndjson")


async def test_a_key_that_only_calls_sees_its_own_calls_and_no_others(
    local: httpx2.AsyncClient, clients: Clients
) -> None:
    mine, other = (
        await clients.with_scopes(Scope.CALL, name="mine"),
        await clients.with_scopes(Scope.CALL, name="other"),
    )
    own, foreign = await call(mine, "echo", "a"), await call(other, "echo", "b")
    for query in ("", "?principal=key:other"):
        assert [item["id"] for item in (await mine.get(f"/v1/calls{query}")).json()["items"]] == [own]
    export = await mine.get("/v1/calls", headers={"accept": "application/jsonl"})
    assert [json.loads(line)["id"] for line in export.text.splitlines()] == [own]
    assert (await mine.get(f"/v1/calls/{own}/result")).status_code == 200
    unknown = await mine.get("/v1/calls/call_nosuch")
    for path in ("", "/result"):
        hidden = await mine.get(f"/v1/calls/{foreign}{path}")
        assert hidden.status_code == unknown.status_code == 404
        assert hidden.json()["error"].replace(foreign, "call_nosuch") == unknown.json()["error"]
    assert (await mine.post(f"/v1/calls/{foreign}/cancel")).status_code == 404


@requirement("call.metrics")
async def test_metrics_count_calls_failures_times_and_tokens_per_tool(local: httpx2.AsyncClient) -> None:
    for text in ("a", "b", "c"):
        await call(local, "echo", text)
    await call(local, "fail", "d")
    by_tool = {item["tool"]: item for item in (await local.get("/v1/metrics/tools")).json()["items"]}
    echo, fail = by_tool["yard:echo"], by_tool["yard:fail"]
    assert (echo["calls"], echo["failed"], echo["success_rate"], echo["failure_rate"]) == (3, 0, 1.0, 0.0)
    assert (fail["calls"], fail["failed"], fail["success_rate"], fail["failure_rate"]) == (1, 1, 0.0, 1.0)
    assert 0 <= echo["p50_ms"] <= echo["p95_ms"]
    assert echo["result_tokens"] > 0
    assert echo["schema_tokens"] > 0
    later = await local.get("/v1/metrics/tools?since=2100-01-01T00:00:00Z")
    assert later.json() == {"items": [], "next_cursor": None}
    assert (await local.get("/v1/metrics/tools?sinc=x")).json()["suggestion"] == "Did you mean 'since'?"


@requirement("call.metrics")
async def test_prometheus_reads_calls_times_providers_and_catalog(local: httpx2.AsyncClient, app: App) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    await call(local, "echo", "a")
    await call(local, "fail", "b")
    for made_up in ("made-up-1", "made-up-2"):
        await call(local, made_up, "c")
    answer = await local.get("/metrics")
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }

    def value(name: str, **labels: str) -> float:
        return samples[name, tuple(sorted(labels.items()))]

    assert answer.headers["content-type"].startswith("text/plain")
    assert value("toolyard_calls_total", tool="yard:echo", state="COMPLETE", code="") == 1
    assert value("toolyard_calls_total", tool="yard:fail", state="ERROR", code="upstream") == 1
    assert value("toolyard_calls_total", tool="(unknown)", state="ERROR", code="not_found") == 2
    assert value("toolyard_call_duration_seconds_count", tool="yard:echo") == 1
    assert value("toolyard_call_duration_seconds_bucket", tool="yard:echo", le="+Inf") == 1
    assert value("toolyard_provider_up", provider="yard", kind="python") == 1
    assert value("toolyard_provider_tools", provider="yard") == 8
    assert value("toolyard_catalog_tools", available="true") == len(app.catalog.snapshot.entries)
    assert "made-up" not in answer.text


@pytest.mark.parametrize("path", ["/v1/metrics/tools", "/metrics"])
async def test_metrics_need_the_scope_read(clients: Clients, path: str) -> None:
    assert (await (await clients.with_scopes(Scope.READ)).get(path)).status_code == 200
    assert (await (await clients.with_scopes(Scope.CALL)).get(path)).status_code == 403
