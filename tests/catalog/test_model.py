"""The catalog against the simplest thing that could be true: a dict of namespaces."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from tests.catalog.tools import a_tool
from toolyard.catalog import DEFAULT_SETTINGS, Catalog, Server, Snapshot, ToolSettings

NAMESPACES = st.sampled_from(["a", "a_b", "a-b", "b"])
NAMES = st.sampled_from(["b_c", "c", "x", "größe", ""])
CLUSTERS = st.sampled_from([None, "Pets"])
TEXTS = st.sampled_from(["", "Ping.", "Pong."])
OFFERS = st.lists(st.tuples(NAMES, TEXTS, CLUSTERS), max_size=5)
IDS = st.builds(lambda namespace, name: f"{namespace}:{name}", NAMESPACES, NAMES)
SETTINGS = st.builds(ToolSettings, enabled=st.booleans(), description=st.sampled_from([None, "Operator's words."]))
SERVERS = [Server("all"), Server("bare", names="bare"), Server("some", tools=("a*", "!*:x"))]


@dataclass
class Namespace:
    tools: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    available: bool = True
    reason: str | None = None


Told = tuple[str, str, bool, bool, str | None]


def told(snapshot: Snapshot) -> list[Told]:
    return [
        (entry.id, entry.description, entry.settings.enabled, entry.available, entry.tool.cluster)
        for entry in snapshot.entries
    ]


def seen(snapshot: Snapshot, server: Server) -> list[tuple[str, str]]:
    view = snapshot.view(server)
    return [(view.name_of(entry), entry.description) for entry in view.entries]


class CatalogModel(RuleBasedStateMachine):
    readers = Bundle("readers")

    def __init__(self) -> None:
        super().__init__()
        self.catalog = Catalog()
        self.model: dict[str, Namespace] = {}
        self.decided: dict[str, ToolSettings] = {}
        self.heard: list[int] = []
        self.by_fingerprint: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self.by_appearance: dict[tuple[str, str], str] = {}
        self.catalog.on_publish(lambda snapshot: self.heard.append(snapshot.version))

    def expected(self) -> list[Told]:
        rows = [
            (f"{namespace}:{name}", description, space.available, cluster)
            for namespace, space in self.model.items()
            for name, (description, cluster) in space.tools.items()
        ]
        decided = ((*row, self.decided.get(row[0], DEFAULT_SETTINGS)) for row in sorted(rows))
        return [
            (tool_id, description if of.description is None else of.description, of.enabled, available, cluster)
            for tool_id, description, available, cluster, of in decided
        ]

    @rule(namespace=NAMESPACES, offer=OFFERS, available=st.booleans())
    def publish(self, namespace: str, offer: list[tuple[str, str, str | None]], available: bool) -> None:
        tools = [a_tool(f"{namespace}:{name}", text, cluster=cluster) for name, text, cluster in offer]
        self.catalog.publish(namespace, tools, available=available, reason=None if available else "down")
        space = Namespace(available=available)
        for name, text, cluster in offer:
            if name:
                space.tools.setdefault(name, (text, cluster))
        self.model[namespace] = space

    @rule(namespace=NAMESPACES, available=st.booleans())
    def set_availability(self, namespace: str, available: bool) -> None:
        self.catalog.set_availability(namespace, available, "down")
        if namespace in self.model:
            self.model[namespace].available = available

    @rule(namespace=NAMESPACES)
    def remove(self, namespace: str) -> None:
        self.catalog.remove(namespace)
        self.model.pop(namespace, None)

    @rule(namespace=NAMESPACES, cluster=CLUSTERS)
    def move_to_another_cluster(self, namespace: str, cluster: str | None) -> None:
        space = self.model.get(namespace, Namespace())
        offer = [(name, text, cluster) for name, (text, _) in space.tools.items()]
        self.publish(namespace, offer, space.available)

    @rule(keep_every=st.integers(2, 4), unknown=IDS)
    def remove_tools(self, keep_every: int, unknown: str) -> None:
        present = [row[0] for row in self.expected()]
        doomed = {tool_id for place, tool_id in enumerate(present) if place % keep_every} - {unknown}
        expected = len(doomed) + (unknown in present)
        assert self.catalog.remove_tools([*doomed, unknown, *doomed]) == expected
        for tool_id in doomed | ({unknown} & set(present)):
            namespace, _, name = tool_id.partition(":")
            del self.model[namespace].tools[name]

    @rule(tool_id=IDS, decision=SETTINGS)
    def apply_settings(self, tool_id: str, decision: ToolSettings) -> None:
        self.catalog.apply_settings(tool_id, decision)
        self.decided[tool_id] = decision

    @rule(target=readers)
    def start_reading(self) -> tuple[Snapshot, list[Told]]:
        return self.catalog.snapshot, told(self.catalog.snapshot)

    @rule(reader=readers)
    def a_reader_keeps_what_it_started_with(self, reader: tuple[Snapshot, list[Told]]) -> None:
        snapshot, before = reader
        assert told(snapshot) == before
        found = {hit.entry.id for hit in snapshot.search("ping", limit=100)}
        assert found == {row[0] for row in before if row[1] == "Ping."}

    @invariant()
    def the_snapshot_says_what_the_model_says(self) -> None:
        snapshot = self.catalog.snapshot
        assert told(snapshot) == self.expected()
        assert all(snapshot.get(entry.id) is entry for entry in snapshot.entries)
        assert all(entry.callable == (entry.reason is None) for entry in snapshot.entries)

    @invariant()
    def versions_are_told_once_and_in_order(self) -> None:
        assert self.heard == list(range(1, self.catalog.snapshot.version + 1))

    @invariant()
    def clusters_share_out_all_tools(self) -> None:
        clusters = self.catalog.snapshot.clusters()
        assert sorted(entry.id for cluster in clusters for entry in cluster.entries) == [
            entry.id for entry in self.catalog.snapshot.entries
        ]

    @invariant()
    def views_map_names_both_ways_and_hide_what_is_switched_off(self) -> None:
        for server in SERVERS:
            view = self.catalog.snapshot.view(server)
            expected = {row[0] for row in self.expected() if row[2] and server.includes(row[0])}
            assert {entry.id for entry in view.entries} == expected
            for entry in view.entries:
                assert view.by_direct_name(view.name_of(entry)) is entry

    @invariant()
    def equal_fingerprints_mean_equal_views(self) -> None:
        for server in SERVERS:
            view = self.catalog.snapshot.view(server)
            shown = seen(self.catalog.snapshot, server)
            assert self.by_fingerprint.setdefault((server.id, view.fingerprint), shown) == shown
            assert self.by_appearance.setdefault((server.id, repr(shown)), view.fingerprint) == view.fingerprint


TestCatalogModel = CatalogModel.TestCase
TestCatalogModel.settings = settings(
    max_examples=60, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
