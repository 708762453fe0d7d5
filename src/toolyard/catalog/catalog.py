"""The catalog: the current snapshot, and the changes that publish the next one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from anyio import to_thread

from toolyard.catalog.entry import DEFAULT_SETTINGS, Entry, ToolSettings
from toolyard.catalog.resolution import Resolution, resolve_entries
from toolyard.catalog.search.protocol import Hit, Searcher, SearcherFactory, Wanted
from toolyard.catalog.shelf import Shelf
from toolyard.catalog.snapshot import Snapshot
from toolyard.catalog.view import View
from toolyard.core.names import check_namespace
from toolyard.core.offer import NO_OFFERS, Offers
from toolyard.core.tool import Tool

OnPublish = Callable[[Snapshot], None]
"""Told about each new snapshot, in order, on the thread that published it. Must not block and must not raise."""


class Catalog:
    """All changes are made on one thread (the event loop's), are complete when they return, and either publish one
    new snapshot or, where nothing would change, none. Snapshots may be read from any thread."""

    def __init__(self, *, searchers: SearcherFactory | None = None, threshold: float | None = None) -> None:
        """`threshold`: the share of an entry that an action has to speak of, 0 to 1; None: as each snapshot measures
        it."""
        self._threshold = threshold
        self._searchers = searchers or _default_searchers()
        self._snapshot = Snapshot(0, {}, self._searchers)
        self._settings: dict[str, ToolSettings] = {}
        self._callbacks: list[OnPublish] = []
        self._to_tell: deque[Snapshot] = deque()

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def publish(
        self, namespace: str, tools: Sequence[Tool], *, available: bool = True, reason: str | None = None
    ) -> Snapshot:
        """Replaces all tools of one namespace. Bad and duplicate tools are hidden and listed in `problems`.

        Raises:
            BadInput: the namespace cannot be one.
        """
        check_namespace(namespace)
        before = self._snapshot.shelves.get(namespace)
        offers = before.offers if before is not None else NO_OFFERS
        shelf = Shelf.of(namespace, tools, self._settings, available=available, reason=reason, offers=offers)
        if before is not None and before.holds_the_same(shelf):
            return self._snapshot
        return self._replace({namespace: shelf})

    def publish_offers(self, namespace: str, offers: Offers) -> Snapshot:
        """Replaces the resources and prompts of a namespace that was published before."""
        before = self._snapshot.shelves.get(namespace)
        if before is None or before.offers == offers:
            return self._snapshot
        return self._replace({namespace: before.with_offers(offers)})

    def set_availability(self, namespace: str, available: bool, reason: str | None = None) -> Snapshot:  # noqa: FBT001
        """Marks every tool of a namespace; one that was never published has nothing to mark."""
        reason = None if available else reason
        before = self._snapshot.shelves.get(namespace)
        if before is None or (before.available, before.reason) == (available, reason):
            return self._snapshot
        return self._replace({namespace: before.with_availability(available=available, reason=reason)})

    def remove(self, namespace: str) -> Snapshot:
        """Takes a namespace out. Its settings stay, for when it comes back."""
        if namespace not in self._snapshot.shelves:
            return self._snapshot
        return self._replace({namespace: None})

    def remove_tools(self, ids: Iterable[str]) -> int:
        """Takes these tools out at once and says how many there were; unknown ids are no error.

        A provider that is listed again brings back what it still offers: whoever deletes for good also changes the
        provider.
        """
        doomed: dict[str, set[str]] = {}
        for tool_id in ids:
            entry = self._snapshot.get(tool_id)
            if entry is not None:
                doomed.setdefault(entry.tool.namespace, set()).add(tool_id)
        changes: dict[str, Shelf | None] = {}
        for namespace, gone in doomed.items():
            changes[namespace] = self._snapshot.shelves[namespace].without(frozenset(gone))
        if changes:
            self._replace(changes)
        return sum(map(len, doomed.values()))

    def apply_settings(self, tool_id: str, settings: ToolSettings) -> Snapshot:
        """Keeps an operator's decision about a tool, whether it is in the catalog now or comes later."""
        if settings == DEFAULT_SETTINGS:
            self._settings.pop(tool_id, None)
        else:
            self._settings[tool_id] = settings
        entry = self._snapshot.get(tool_id)
        if entry is None or entry.settings == settings:
            return self._snapshot
        namespace = entry.tool.namespace
        return self._replace({namespace: self._snapshot.shelves[namespace].with_settings(tool_id, settings)})

    def settings(self, tool_id: str) -> ToolSettings:
        return self._settings.get(tool_id, DEFAULT_SETTINGS)

    def on_publish(self, callback: OnPublish) -> Callable[[], None]:
        """Returns what ends the subscription; calling that twice does no harm."""
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return unsubscribe

    async def search(
        self,
        query: str,
        *,
        limit: int = 20,
        within: View | None = None,
        prefixes: bool = False,
        only: Wanted | None = None,
    ) -> list[Hit]:
        """As `Snapshot.search`, on the view's snapshot or else the current one; an index still missing is built in a
        worker thread."""
        snapshot = within.snapshot if within is not None else self._snapshot
        if not snapshot.search_is_prepared:
            await to_thread.run_sync(snapshot.prepare_search)
        return snapshot.search(query, limit=limit, within=within, prefixes=prefixes, only=only)

    async def resolve(self, entries: Sequence[str], *, within: View | None = None) -> Resolution:
        """The tools for several actions, one entry each: on the view's snapshot or else the current one."""
        snapshot = within.snapshot if within is not None else self._snapshot
        if not snapshot.search_is_prepared:
            await to_thread.run_sync(snapshot.prepare_search)
        return resolve_entries(snapshot.prepare_search(), entries, within=within, threshold=self._threshold)

    def _replace(self, changes: Mapping[str, Shelf | None]) -> Snapshot:
        shelves = dict(self._snapshot.shelves)
        for namespace, shelf in changes.items():
            if shelf is None:
                del shelves[namespace]
            else:
                shelves[namespace] = shelf
        published = Snapshot(self._snapshot.version + 1, shelves, self._searchers)
        self._snapshot = published
        self._tell(published)
        return published

    def _tell(self, published: Snapshot) -> None:
        """A callback that publishes in turn is heard after everybody was told about the snapshot before."""
        self._to_tell.append(published)
        if len(self._to_tell) > 1:
            return
        try:
            while self._to_tell:
                for callback in tuple(self._callbacks):
                    callback(self._to_tell[0])
                self._to_tell.popleft()
        finally:
            self._to_tell.clear()


def _default_searchers() -> SearcherFactory:
    """The engine and numpy are imported when the first index is built."""

    def build(entries: Sequence[Entry]) -> Searcher:
        nonlocal engine
        if engine is None:
            from toolyard.catalog.search.engine import Bm25fSearchers

            engine = Bm25fSearchers()
        return engine(entries)

    engine: SearcherFactory | None = None
    return build
