"""`/tools`: the catalog by cluster, search, one tool's page, and deleting a cluster."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from toolyard.catalog import UNGROUPED, Cluster, Entry
from toolyard.core.approval import AutoApprove
from toolyard.core.clock import SystemClock
from toolyard.core.errors import BadInput, NotFound
from toolyard.core.json import JsonObject
from toolyard.core.principal import Scope
from toolyard.core.record import CallFilter
from toolyard.faces.console.forms import ABSENT
from toolyard.faces.console.forms.sources import Maybe
from toolyard.faces.console.pages import tryit
from toolyard.faces.console.policy import policy_of
from toolyard.faces.console.properties import property_rows
from toolyard.faces.console.rendering import link
from toolyard.faces.console.visit import Visit

_ROWS = 100
_OPEN_AT_ONCE = 150
"""A catalog with more tools than this shows its clusters closed, and loads each when it is opened."""
_HITS = 50
_DAY = 86_400.0


async def index(visit: Visit) -> Response:
    query, snapshot = visit.query, visit.app.catalog.snapshot
    words, provider, kind = query.get("q", "").strip(), query.get("provider", ""), query.get("kind", "")
    chosen = query.get("cluster", "")

    def wanted(entry: Entry) -> bool:
        return provider in ("", entry.tool.namespace) and kind in ("", entry.tool.kind.value)

    def wanted_here(entry: Entry) -> bool:
        return wanted(entry) and chosen in ("", entry.cluster)

    only = wanted_here if provider or kind or chosen else None
    hits = await visit.app.catalog.search(words, limit=_HITS, prefixes=True, only=only) if words else []
    clusters = [
        (cluster, [entry for entry in cluster.entries if wanted(entry)])
        for cluster in snapshot.clusters()
        if chosen in ("", cluster.name)
    ]
    shown = [(cluster, entries) for cluster, entries in clusters if entries]
    return visit.page(
        "tools.html",
        q=words,
        provider=provider,
        kind=kind,
        cluster=chosen,
        hits=hits,
        clusters=shown,
        total=len(snapshot.entries),
        matching=sum(len(entries) for _, entries in shown),
        open_all=chosen or sum(len(entries) for _, entries in shown) <= _OPEN_AT_ONCE,
        namespaces=sorted({entry.tool.namespace for entry in snapshot.entries}),
        kinds=sorted({entry.tool.kind.value for entry in snapshot.entries}),
        problems=snapshot.problems,
        rows=_ROWS,
        ungrouped=UNGROUPED,
    )


async def cluster_rows(visit: Visit) -> Response:
    """The next rows of one cluster: loaded when it is opened, and by "Show more"."""
    cluster = _cluster(visit)
    provider, kind = visit.query.get("provider", ""), visit.query.get("kind", "")
    after = visit.query.get("after", "0")
    start = int(after) if after.isdecimal() and len(after) < 8 else 0
    entries = [
        entry
        for entry in cluster.entries
        if provider in ("", entry.tool.namespace) and kind in ("", entry.tool.kind.value)
    ]
    return visit.page(
        "parts/cluster_rows.html",
        cluster=cluster, entries=entries, start=start, rows=_ROWS, provider=provider, kind=kind,
    )  # fmt: skip


async def ask_to_delete(visit: Visit) -> Response:
    cluster = _cluster(visit)
    return visit.page("delete_cluster.html", cluster=cluster, shown=cluster.entries[:20])


async def delete(visit: Visit) -> Response:
    await visit.app.delete_cluster(_cluster(visit).name)
    return visit.go("/tools?notice=cluster-deleted")


POLICIES = {
    "": ("As each provider and server says", "Nothing is decided here."),
    "false": ("Somebody decides about each call", "Also about those that only read."),
    "read_only": ("Somebody decides about calls that may change something", "Those that only read run at once."),
    "true": ("Nobody is asked", "Each call runs at once, whatever its provider or server says."),
}
_AS_VALUE: dict[str, AutoApprove | None] = {"": None, "false": False, "read_only": "read_only", "true": True}


async def ask_for_policy(visit: Visit) -> Response:
    cluster = _cluster(visit)
    held = visit.app.policies.clusters.get(cluster.name)
    chosen = next(word for word, value in _AS_VALUE.items() if value == held)
    return visit.page("cluster_policy.html", cluster=cluster, choices=POLICIES, chosen=chosen)


async def set_policy(visit: Visit) -> Response:
    word = visit.posted.get("auto_approve")
    if word not in _AS_VALUE:
        raise BadInput(f"{word[:40]!r} is no approval policy.", where="auto_approve")
    cluster = _cluster(visit)
    await visit.app.policies.set_cluster(cluster.name, _AS_VALUE[word])
    return visit.go(link("/tools", cluster=cluster.name, notice="saved"))


def _cluster(visit: Visit) -> Cluster:
    name = visit.part("cluster")
    cluster = visit.app.catalog.snapshot.cluster(name)
    if cluster is None:
        raise NotFound(f"There is no cluster {name[:100]!r}.", suggestion="Somebody may have deleted it meanwhile.")
    return cluster


async def show(visit: Visit) -> Response:
    entry = entry_of(visit)
    draft = tryit.drawn(entry, await _arguments_to_start_with(visit))
    return visit.page("tool.html", **await tool_context(visit, entry) | tryit.context(visit, entry, draft))


async def tool_context(visit: Visit, entry: Entry) -> dict[str, Any]:
    """Everything on a tool's page but its form."""
    may_read = visit.principal.may(Scope.READ)
    metrics = await visit.app.calls.tool_metrics(SystemClock().now() - _DAY) if may_read else []
    recent = (await visit.app.calls.page(CallFilter(tool=entry.id), limit=5)).items if may_read else ()
    document = entry.tool.input_schema.document()
    return {
        "entry": entry,
        "document": document,
        "inputs": property_rows(document),
        "outputs": property_rows(entry.tool.output_schema) if entry.tool.output_schema else [],
        "metrics": next((m for m in metrics if m.tool == entry.id), None),
        "recent": recent,
        "may_manage": visit.principal.may(Scope.MANAGE),
        "may_read": may_read,
        "settings_error": "",
        "policy": policy_of(visit.app.policies.book, entry),
    }


def entry_of(visit: Visit) -> Entry:
    tool = visit.part("tool")
    entry = visit.app.catalog.snapshot.get(tool)
    if entry is None:
        raise NotFound(f"There is no tool {tool[:200]!r}.", suggestion="Its provider may have removed or renamed it.")
    return entry


async def _arguments_to_start_with(visit: Visit) -> Maybe:
    """`?from=<call>`: the arguments of an earlier call, to try again."""
    call_id = visit.query.get("from", "")
    if not call_id or not visit.principal.may(Scope.READ):
        return ABSENT
    from toolyard.faces.console.forms.harvest import parse_json

    record = await visit.app.calls.get(call_id)
    arguments = parse_json((await visit.app.calls.full_arguments(record)).decode())
    return _plain(arguments) if record.tool == visit.part("tool") and isinstance(arguments, dict) else ABSENT


def _plain(arguments: JsonObject) -> Maybe:
    return arguments or ABSENT
