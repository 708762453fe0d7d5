from __future__ import annotations

from tests.catalog.tools import a_tool
from tests.requirements import requirement
from toolyard.catalog import UNGROUPED, Catalog, Server


def a_catalog() -> Catalog:
    catalog = Catalog()
    catalog.publish("pets", [a_tool("pets:list", cluster="Pets"), a_tool("pets:add", cluster="Pets")])
    catalog.publish("shop", [a_tool("shop:sell", cluster="Pets"), a_tool("shop:refund"), a_tool("shop:z", cluster="Z")])
    return catalog


@requirement("cluster.list-delete")
def test_tools_are_listed_by_cluster_and_those_without_one_come_last() -> None:
    clusters = a_catalog().snapshot.clusters()
    listed = [(one.name, one.namespaces, [entry.id for entry in one.entries]) for one in clusters]
    assert listed == [
        ("Pets", ("pets", "shop"), ["pets:add", "pets:list", "shop:sell"]),
        ("Z", ("shop",), ["shop:z"]),
        (UNGROUPED, ("shop",), ["shop:refund"]),
    ]


@requirement("cluster.list-delete")
def test_deleting_a_cluster_removes_all_its_tools_in_one_snapshot() -> None:
    catalog = a_catalog()
    versions: list[int] = []
    catalog.on_publish(lambda snapshot: versions.append(snapshot.version))
    cluster = catalog.snapshot.cluster("Pets")
    assert cluster is not None
    assert catalog.remove_tools(entry.id for entry in cluster.entries) == 3
    snapshot = catalog.snapshot
    assert len(versions) == 1
    assert snapshot.cluster("Pets") is None
    assert [entry.id for entry in snapshot.entries] == ["shop:refund", "shop:z"]
    assert [entry.id for entry in snapshot.view(Server("default")).entries] == ["shop:refund", "shop:z"]
    assert [hit.entry.id for hit in snapshot.search("pets list add sell")] == []
