"""The catalog at 10, 1,000 and 10,000 tools: publishing, looking up, views, searching, memory.

    python -m benchmarks.catalog [--json out.json] [--sizes 10,1000,10000]

Each size runs in a process of its own. The baseline is what one would write first, in the same process: the share of
the request's words that stand in a tool's text, for every tool in turn.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from toolyard.catalog import Catalog, Server
from toolyard.core.schema import Schema
from toolyard.core.tool import Tool

SIZES = (10, 1_000, 10_000)
TOOLS_PER_APP = 50
REQUESTS = 500
VERBS = ("create", "list", "get", "delete", "update", "search", "send", "run", "convert", "book", "upload", "merge")
_SYLLABLES = (
    "ba",
    "do",
    "ke",
    "li",
    "mo",
    "nu",
    "pa",
    "ri",
    "so",
    "ta",
    "ve",
    "zu",
    "chan",
    "lor",
    "met",
    "pin",
    "vor",
)

Figures = dict[str, float]


def nouns(count: int, seed: int) -> list[str]:
    """Made-up words, so that a large catalog has a large vocabulary."""
    chance = random.Random(seed)
    return ["".join(chance.choices(_SYLLABLES, k=chance.choice((2, 2, 3)))) for _ in range(count)]


def tools_of(size: int) -> dict[str, list[Tool]]:
    """Tools by namespace; about 60 words each, drawn with a long tail."""
    chance = random.Random(7)
    known = nouns(2_000, 11)
    tail = [1 / (place + 3) for place in range(len(known))]

    def sentence(length: int) -> str:
        return " ".join(chance.choices(known, tail, k=length)).capitalize() + "."

    by_namespace: dict[str, list[Tool]] = {}
    for number in range(size):
        namespace = f"app{number // TOOLS_PER_APP}"
        verb, things = chance.choice(VERBS), chance.choices(known, tail, k=2)
        properties = {name: {"type": "string", "description": sentence(6)} for name in chance.choices(known, k=4)}
        schema = Schema({"type": "object", "properties": properties, "required": list(properties)[:1]})
        name = f"{verb}_{'_'.join(things)}_{number}"
        description = f"{verb.capitalize()}s the {' '.join(things)}. {sentence(25)}"
        by_namespace.setdefault(namespace, []).append(Tool(namespace, name, description, schema))
    return by_namespace


def requests(tools: Sequence[Tool]) -> list[str]:
    chance = random.Random(3)
    return [
        f"Please {tool.description.split('.')[0].lower()} in {tool.namespace}"
        for tool in chance.choices(tools, k=REQUESTS)
    ]


def seconds(work: Callable[[], object], repeat: int = 1) -> float:
    began = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - began) / repeat


def resident_mb() -> float:
    """Resident memory of this process; 0 where the system does not say (only Linux does it this way)."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def percentiles(times: list[float]) -> tuple[float, float]:
    ordered = sorted(times)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]


def naive_search(texts: Sequence[tuple[str, str]], query: str, limit: int) -> list[str]:
    """A linear scan for the request's words as substrings."""
    asked = query.lower().split()
    scored = ((sum(word in text for word in asked), tool_id) for tool_id, text in texts)
    return [tool_id for hits, tool_id in sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:limit] if hits]


def measure(size: int) -> Figures:
    by_namespace = tools_of(size)
    every_tool = [tool for tools in by_namespace.values() for tool in tools]
    asked = requests(every_tool)
    memory = resident_mb()
    catalog = Catalog()
    figures: Figures = {"tools": size}

    def publish_all() -> None:
        for namespace, tools in by_namespace.items():
            catalog.publish(namespace, tools)

    figures["publish all, by app, ms"] = seconds(publish_all) * 1e3
    figures["memory of the catalog, MB"] = resident_mb() - memory

    one_app = [Tool("one-app", tool.name, tool.description, tool.input_schema) for tool in every_tool]
    figures["publish all as one app, ms"] = seconds(lambda: Catalog().publish("one-app", one_app)) * 1e3
    changed = [
        Tool("app0", tool.name, f"{tool.description} Changed.", tool.input_schema) for tool in by_namespace["app0"]
    ]
    before = by_namespace["app0"]
    offers = [changed, before] * 10

    publishing = [seconds(lambda offer=offer: catalog.publish("app0", offer)) for offer in offers]
    figures["publish one app again, p50 ms"] = percentiles(publishing)[0] * 1e3

    snapshot = catalog.snapshot
    ids = [entry.id for entry in snapshot.entries]
    chance = random.Random(5)
    picked = chance.choices(ids, k=10_000)
    figures["lookup by id, us"] = seconds(lambda: [snapshot.get(tool_id) for tool_id in picked]) / len(picked) * 1e6

    server = Server("default")
    figures["view, first, ms"] = seconds(lambda: snapshot.view(server)) * 1e3
    view = snapshot.view(server)
    figures["view, cached, us"] = seconds(lambda: snapshot.view(server), 1_000) * 1e6
    figures["view fingerprint, first, ms"] = seconds(lambda: view.fingerprint) * 1e3
    names = [view.name_of(entry) for entry in chance.choices(view.entries, k=10_000)]
    figures["lookup by direct name, us"] = seconds(lambda: [view.by_direct_name(name) for name in names]) / 10_000 * 1e6
    catalog.publish("app0", changed)
    figures["view after a change, ms"] = seconds(lambda: catalog.snapshot.view(server)) * 1e3

    memory = resident_mb()
    figures["index, first, ms"] = seconds(catalog.snapshot.prepare_search) * 1e3
    figures["memory of searching, MB"] = resident_mb() - memory
    catalog.publish("app0", before)
    figures["index after a change, ms"] = seconds(catalog.snapshot.prepare_search) * 1e3

    snapshot = catalog.snapshot
    times = [seconds(lambda query=query: snapshot.search(query, limit=10)) for query in asked]
    figures["search p50, ms"], figures["search p99, ms"] = (value * 1e3 for value in percentiles(times))
    within = snapshot.view(Server("slice", tools=("app1*", "app0:*")))
    snapshot.search("warm", within=within)
    times = [seconds(lambda query=query: snapshot.search(query, limit=10, within=within)) for query in asked]
    figures["search in a slice p50, ms"] = percentiles(times)[0] * 1e3

    texts = [(entry.id, f"{entry.id} {entry.description}".lower()) for entry in snapshot.entries]
    times = [seconds(lambda query=query: naive_search(texts, query, 10)) for query in asked[:100]]
    figures["linear scan p50, ms"] = percentiles(times)[0] * 1e3
    figures["linear scan / search"] = figures["linear scan p50, ms"] / figures["search p50, ms"]
    return figures


def table(results: Sequence[Figures]) -> str:
    head = f"{'tools':32s}" + "".join(f"{int(result['tools']):>12,d}" for result in results)
    measured = [what for what in results[0] if what != "tools"]
    rows = [f"{what:32s}" + "".join(f"{result[what]:12.3f}" for result in results) for what in measured]
    return "\n".join([head, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--json", type=Path, help="write the figures")
    options = parser.parse_args()
    results: list[Figures] = []
    for size in map(int, options.sizes.split(",")):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            results.append(process.submit(measure, size).result())
    print(table(results))
    if options.json:
        setting = {"python": platform.python_version(), "machine": platform.machine(), "requests": REQUESTS}
        options.json.write_text(json.dumps({"benchmark": "catalog", "setting": setting, "results": results}, indent=1))


if __name__ == "__main__":
    main()
