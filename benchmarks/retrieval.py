"""Which tools does a request need: how often the engine finds them, how quickly, in how much memory.

    python -m benchmarks.retrieval [--json out.json] [--data FOLDER] [--quick]

Quality is measured with the data's own `eval.py`, on its development requests, on which the weights were chosen too:
the figures flatter, and nothing here is held out. Beside it the baselines that lie there (SQLite FTS5 as it comes,
the same tuned, trigger keywords), all in the same run. The data is read in place: `../shared/data/retrieval`, or
--data. Each engine and each size of catalog has a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from toolyard.catalog import Catalog, Hit, Server
from toolyard.core.names import NAMESPACE, slugify
from toolyard.core.schema import Schema
from toolyard.core.tool import Tool

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "retrieval"
ENGINES = ("toolyard", "fts5", "fts5_tuned", "triggers")
SIZES = (100, 1_000, 10_000, 30_000)
QUALITY = ("R@1", "R@5", "R@10", "all@10", "NDCG@10", "MRR")
ABSENT_APPS = ("Salesforce", "Airtable", "Shopify", "Workday", "Pipedrive", "Zendesk", "Monday", "SAP", "Oracle")
"""None of them is in the catalog of applications (saas)."""
Row = dict[str, Any]


class Engine:
    """Our catalog behind the interface of `eval.py`."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.catalog, self._ids = catalog_of(rows)
        self.catalog.snapshot.prepare_search()

    def search(self, query: str, k: int) -> list[str]:
        return self.ids(self.catalog.snapshot.search(query, limit=k))

    def ids(self, hits: Sequence[Hit]) -> list[str]:
        return [self._ids[hit.entry.id] for hit in hits]


def catalog_of(rows: Sequence[Row]) -> tuple[Catalog, dict[str, str]]:
    """A catalog of these tools, and the data's id of each of them."""
    by_namespace: dict[str, dict[str, Tool]] = {}
    ids: dict[str, str] = {}
    for row in rows:
        slug = row["app"].lower()
        namespace = slug if NAMESPACE.fullmatch(slug) else slugify(row["app"], default="tools")
        properties = {name: {"type": "string", "description": text} for name, text in row["args"]}
        tags = (row["field"],) if row["field"] else ()
        tools, name = by_namespace.setdefault(namespace, {}), row["name"]
        while name in tools:
            name += "'"
        tools[name] = Tool(namespace, name, row["description"], Schema({"properties": properties}), tags=tags)
        ids[tools[name].id] = row["id"]
    catalog = Catalog()
    for namespace, tools in by_namespace.items():
        catalog.publish(namespace, list(tools.values()))
    return catalog, ids


def module(data: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"retrieval_{name}", data / f"{name}.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{data / name}.py cannot be loaded")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def factory(data: Path, engine: str) -> Callable[[Sequence[Row]], Any]:
    return Engine if engine == "toolyard" else getattr(module(data, "baselines"), engine)


# -- quality


def quality(data: Path, engine: str) -> dict[str, Any]:
    """Per catalog and over all of them, and with one search per entry where the requests have entries."""
    evaluation = module(data, "eval")
    start = factory(data, engine)
    per_catalog: dict[str, Row] = {}
    entries: Row = {}
    for name in evaluation.DATASETS:
        tools = evaluation.read_catalog(data / name)
        requests = evaluation.read_jsonl(data / name / "queries.dev.jsonl")
        rows, cost = evaluation.run(start, tools, requests, entries=False)
        per_catalog[name] = evaluation.summary(rows) | cost
        if any(request.get("integration_query") for request in requests):
            rows, _ = evaluation.run(start, tools, requests, entries=True)
            entries = evaluation.summary(rows)
    macro = {figure: sum(one[figure] for one in per_catalog.values()) / len(per_catalog) for figure in QUALITY}
    return {"engine": engine, "macro": macro, "entries": entries, "per_catalog": per_catalog}


def refusals(data: Path) -> Row:
    """Entries for an app that is absent must find nothing, the same ones for their own app must."""
    evaluation = module(data, "eval")
    catalog = Engine(evaluation.read_catalog(data / "saas")).catalog
    entries: dict[str, str] = {}
    for request in evaluation.read_jsonl(data / "saas" / "queries.dev.jsonl"):
        for entry, group in zip(request["integration_query"], request["groups"], strict=True):
            entries.setdefault(entry, group[0].split("/")[1])
    apps = sorted({entry.tool.namespace for entry in catalog.snapshot.entries})
    absent: list[str] = []
    missing: list[str] = []
    for number, (entry, app) in enumerate(entries.items()):
        action = _without_app(entry, [*apps, "microsoft", "graph", "google", app])
        absent += [f"{action} {name}" for name in ABSENT_APPS[number % 3 :: 3]]
        missing.append(f"{action.split()[0]} Frobnicator {app}")

    async def refused(asked: Sequence[str]) -> float:
        empty = [not (await catalog.resolve([entry])).hits for entry in asked]
        return sum(empty) / len(empty)

    async def shares() -> Row:
        return {
            "answerable refused": await refused(list(entries)),
            "absent app refused": await refused(absent),
            "absent action refused": await refused(missing),
        }

    return {"answerable": len(entries), "absent": len(absent)} | asyncio.run(shares())


def _without_app(entry: str, apps: Sequence[str]) -> str:
    names = {part for app in apps for part in (app, *app.replace("_", " ").split())}
    return " ".join(word for word in entry.split() if word.lower() not in names)


# -- speed and memory


def speed(data: Path, engine: str, size: int) -> Row:
    """One catalog of `size` tools, all data sets merged, asked with requests of all of them."""
    evaluation = module(data, "eval")
    everything = [tool for name in evaluation.DATASETS for tool in evaluation.read_catalog(data / name)]
    tools = everything[:: max(1, len(everything) // size)][:size]
    requests = list(
        chain.from_iterable(evaluation.read_jsonl(data / name / "queries.dev.jsonl") for name in evaluation.DATASETS)
    )
    start = factory(data, engine)
    rows, cost = evaluation.run(start, tools, requests[::2], entries=False)
    found = evaluation.summary(rows)
    figures = {name: found[name] for name in ("p50_ms", "p95_ms")} | cost | {"engine": engine}
    if engine == "toolyard":
        entries = [request["integration_query"] for request in requests if request.get("integration_query")]
        figures |= asyncio.run(_resolving(Engine(tools).catalog, entries))
    return figures


async def _resolving(catalog: Catalog, asked: Sequence[Sequence[str]]) -> Row:
    """RESOLVE_ACTIONS as a server does it, schemas included; and publishing again after one tool has changed."""
    from toolyard.catalog.resolution import entities_of

    view = catalog.snapshot.view(Server("default"))
    entities_of(await catalog.resolve(asked[0], within=view))
    times: list[float] = []
    for entries in asked:
        began = time.perf_counter()
        entities_of(await catalog.resolve(entries, within=view))
        times.append((time.perf_counter() - began) * 1e3)
    times.sort()
    first = catalog.snapshot.entries[0].tool
    shelf = [entry.tool for entry in catalog.snapshot.shelves[first.namespace].entries]
    changed = [Tool(first.namespace, first.name, "Changed.", first.input_schema), *shelf[1:]]
    began = time.perf_counter()
    catalog.publish(first.namespace, changed).prepare_search()
    return {
        "resolve_p50_ms": times[len(times) // 2],
        "resolve_p95_ms": times[int(len(times) * 0.95)],
        "republish_s": time.perf_counter() - began,
    }


def through_the_face(data: Path, size: int) -> Row:
    """RESOLVE_ACTIONS as an MCP client calls it: JSON-RPC into the whole application, in process, without a socket."""
    return asyncio.run(_asked_over_mcp(data, size))


async def _asked_over_mcp(data: Path, size: int) -> Row:
    from toolyard.app import App, Settings
    from toolyard.faces.asgi import build

    evaluation = module(data, "eval")
    everything = [tool for name in evaluation.DATASETS for tool in evaluation.read_catalog(data / name)]
    catalog, _ = catalog_of(everything[:: max(1, len(everything) // size)][:size])
    requests = chain.from_iterable(
        evaluation.read_jsonl(data / name / "queries.dev.jsonl") for name in evaluation.DATASETS
    )
    asked = [request["integration_query"] for request in requests if request.get("integration_query")]
    with tempfile.TemporaryDirectory() as folder:
        async with App.running(Settings(data_dir=Path(folder), demo=True)) as app:
            for namespace, shelf in catalog.snapshot.shelves.items():
                app.catalog.publish(namespace, [entry.tool for entry in shelf.entries])
            await app.save_server(Server("agents", agent_mode=True))
            face = build(app)
            await _resolve_actions(face, asked[0])  # the index is built
            times: list[float] = []
            for entries in asked * 3:
                began = time.perf_counter()
                await _resolve_actions(face, entries)
                times.append((time.perf_counter() - began) * 1e3)
            tools = len(app.catalog.snapshot.entries)
    times.sort()
    return {
        "tools": tools,
        "calls": len(times),
        "p50_ms": times[len(times) // 2],
        "p95_ms": times[int(len(times) * 0.95)],
        "p99_ms": times[int(len(times) * 0.99)],
    }


_RESOLVE_HEADERS = [
    (b"host", b"127.0.0.1:8420"),
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"mcp-protocol-version", b"2026-07-28"),
    (b"mcp-method", b"tools/call"),
    (b"mcp-name", b"RESOLVE_ACTIONS"),
]
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def _resolve_actions(face: Any, entries: Sequence[str]) -> None:
    params = {"name": "RESOLVE_ACTIONS", "arguments": {"integration_query": entries}, "_meta": _META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    incoming = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Row] = []

    async def receive() -> Row:
        if incoming:
            return incoming.pop()
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Row) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp/agents",
        "raw_path": b"/mcp/agents",
        "root_path": "",
        "query_string": b"",
        "headers": [*_RESOLVE_HEADERS, (b"content-length", str(len(body)).encode())],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8420),
    }
    await face(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent).decode()
    if not text.startswith("{"):  # what takes long, as the first one does, is answered as a stream of events
        text = next(line[5:] for line in reversed(text.splitlines()) if line.startswith("data:"))
    answer = json.loads(text)
    if sent[0]["status"] != 200 or "result" not in answer or answer["result"].get("isError"):
        raise SystemExit(f"RESOLVE_ACTIONS was refused: {str(answer)[:300]}")


# -- tables


def quality_table(results: Sequence[dict[str, Any]]) -> str:
    head = f"{'macro over the catalogs':24s}" + "".join(f"{figure:>9s}" for figure in QUALITY)
    rows = [
        f"{result['engine']:24s}" + "".join(f"{result['macro'][figure]:9.3f}" for figure in QUALITY)
        for result in results
    ]
    entries = [
        f"{result['engine'] + ', entries (saas)':24s}"
        + "".join(f"{result['entries'][figure]:9.3f}" for figure in QUALITY)
        for result in results
    ]
    names = list(results[0]["per_catalog"])
    each = f"{'R@5 / R@10':24s}" + "".join(f"{name:>14s}" for name in names)
    per_catalog = [
        f"{result['engine']:24s}"
        + "".join(f"{one['R@5']:>7.3f}/{one['R@10']:.3f} " for one in result["per_catalog"].values())
        for result in results
    ]
    return "\n".join([head, *rows, *entries, "", each, *per_catalog])


def speed_table(results: Sequence[Row]) -> str:
    columns = ("p50_ms", "p95_ms", "build_s", "memory_mb", "resolve_p50_ms", "resolve_p95_ms", "republish_s")
    head = f"{'engine':12s}{'tools':>8s}" + "".join(f"{column:>16s}" for column in columns)
    rows = [
        f"{result['engine']:12s}{result['tools']:8,d}"
        + "".join(f"{result[column]:16.2f}" if column in result else f"{'-':>16s}" for column in columns)
        for result in results
    ]
    return "\n".join([head, *rows])


def alone(work: Callable[..., Any], *arguments: Any) -> Any:
    """In a process of its own, so that its memory is."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *arguments).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--json", type=Path, help="write the figures")
    parser.add_argument("--quick", action="store_true", help="ours only, and sizes up to 10,000")
    options = parser.parse_args()
    if not (options.data / "eval.py").is_file():
        print(f"no retrieval data at {options.data}: nothing is measured (--data names another place)")
        return
    engines = ENGINES[:1] if options.quick else ENGINES
    found = [alone(quality, options.data, engine) for engine in engines]
    print(quality_table(found))
    refused = alone(refusals, options.data)
    print("\n" + ", ".join(f"{name} {value:.3g}" for name, value in refused.items()) + "\n")
    sizes = SIZES[:3] if options.quick else SIZES
    compared = engines[:2]
    speeds = [alone(speed, options.data, engine, size) for engine in compared for size in sizes]
    print(speed_table(speeds))
    face = alone(through_the_face, options.data, 10_000)
    print("\nRESOLVE_ACTIONS over MCP: " + ", ".join(f"{name} {value:.3g}" for name, value in face.items()))
    if options.json:
        setting = {"python": platform.python_version(), "machine": platform.machine()}
        results = {"quality": found, "refusals": refused, "speed": speeds, "resolve_over_mcp": face}
        options.json.write_text(
            json.dumps({"benchmark": "retrieval", "setting": setting, "results": results}, indent=1)
        )


if __name__ == "__main__":
    main()
