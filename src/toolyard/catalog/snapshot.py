"""The catalog at one moment. Readers keep the snapshot they started with, and it never changes under them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from threading import Lock
from types import MappingProxyType

from toolyard.catalog.entry import DEFAULT_SETTINGS, UNGROUPED, Cluster, Entry, Problem
from toolyard.catalog.search.protocol import Hit, Searcher, SearcherFactory, Wanted
from toolyard.catalog.server import Server
from toolyard.catalog.shelf import Shelf
from toolyard.catalog.view import View
from toolyard.core.offer import NO_OFFERS, offer_method, offer_tool
from toolyard.core.tool import Kind

_MOST_VIEWS = 64


class Snapshot:
    """`entries` are all tools, sorted by id, those switched off or not available among them; `problems` are the
    tools that are hidden, and why; `shelves` are the same by namespace."""

    def __init__(self, version: int, shelves: dict[str, Shelf], searchers: SearcherFactory) -> None:
        self.version = version
        self.shelves = MappingProxyType(shelves)
        in_order = [shelves[namespace] for namespace in sorted(shelves, key=lambda namespace: f"{namespace}:")]
        self.entries: Sequence[Entry] = tuple(chain.from_iterable(shelf.entries for shelf in in_order))
        self.problems: Sequence[Problem] = tuple(chain.from_iterable(shelf.problems for shelf in in_order))
        self._views: dict[Server, View] = {}
        self._searchers = searchers
        self._searcher: Searcher | None = None
        self._one_builder = Lock()

    def get(self, tool_id: str) -> Entry | None:
        shelf = self.shelves.get(tool_id.partition(":")[0])
        return shelf.by_id.get(tool_id) if shelf else None

    def offer(self, tool_id: str) -> Entry | None:
        """The entry of a tool that is in no list: `namespace:resources/read` or `namespace:prompts/get`."""
        namespace, _, name = tool_id.partition(":")
        shelf, method = self.shelves.get(namespace), offer_method(name)
        if shelf is None or method is None or shelf.offers == NO_OFFERS:
            return None
        kind = shelf.entries[0].tool.kind if shelf.entries else Kind.MCP
        tool = offer_tool(namespace, method, kind)
        return Entry.of(tool, method, DEFAULT_SETTINGS, available=shelf.available, reason=shelf.reason)

    def clusters(self) -> list[Cluster]:
        """Sorted by name, tools without a cluster last."""
        return list(self._clusters)

    def cluster(self, name: str) -> Cluster | None:
        return next((cluster for cluster in self._clusters if cluster.name == name), None)

    def view(self, server: Server) -> View:
        """What this server shows of this snapshot; the same object each time."""
        view = self._views.get(server)
        if view is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            view = self._views[server] = View(server, self)
        return view

    def search(
        self,
        query: str,
        *,
        limit: int = 20,
        within: View | None = None,
        prefixes: bool = False,
        only: Wanted | None = None,
    ) -> list[Hit]:
        """The tools that serve a request, best first; nothing for a request without a known word.

        Args:
            query: words as people and models write them; what is beyond 2,000 characters is not read.
            limit: at most so many hits.
            within: only tools of this view, decided before ranking.
            prefixes: the last word may be unfinished, as in a search box.
            only: only tools that it wants, also decided before ranking.

        The first search of a snapshot builds its index, which takes about a second for 10,000 new tools: on an event
        loop use `Catalog.search`, or call `prepare_search` in a worker thread.
        """
        return self.prepare_search().search(query, limit=limit, within=within, prefixes=prefixes, only=only)

    @property
    def search_is_prepared(self) -> bool:
        return self._searcher is not None

    def prepare_search(self) -> Searcher:
        """Builds the index, once; safe in any thread."""
        with self._one_builder:
            if self._searcher is None:
                self._searcher = self._searchers(self.entries)
            return self._searcher

    @cached_property
    def _clusters(self) -> tuple[Cluster, ...]:
        members: dict[str, list[Entry]] = {}
        for entry in self.entries:
            members.setdefault(entry.cluster, []).append(entry)
        return tuple(
            Cluster(name, tuple(sorted({entry.tool.namespace for entry in members[name]})), tuple(members[name]))
            for name in sorted(members, key=lambda name: (name == UNGROUPED, name))
        )

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"Snapshot(version {self.version}, {len(self)} tools)"
