"""Clusters: groups of tools that are shown and deleted as one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from toolyard.catalog import Cluster
from toolyard.core.errors import NotFound
from toolyard.core.principal import Scope
from toolyard.faces.http.access import Yard, needs
from toolyard.faces.http.models import ClusterDeleted, ClusterOut, ClusterPatch, Listed
from toolyard.faces.http.paging import Page, cut

router = APIRouter(tags=["Clusters"])


@router.get("/clusters", **needs(Scope.CALL, Scope.READ, Scope.MANAGE))
async def list_clusters(yard: Yard, page: Annotated[Page, Query()]) -> Listed[ClusterOut]:
    """Every cluster with its counts, sorted by name; tools without one are in `Ungrouped`."""
    clusters = sorted(yard.catalog.snapshot.clusters(), key=lambda cluster: cluster.name)
    found, next_cursor = cut(clusters, page, key=lambda cluster: cluster.name)
    return Listed(items=[_cluster_out(yard, cluster) for cluster in found], next_cursor=next_cursor)


@router.patch("/clusters/{name:path}", **needs(Scope.MANAGE))
async def change_cluster(yard: Yard, name: str, body: ClusterPatch) -> ClusterOut:
    """Decide for a whole cluster whether somebody is asked for its calls. A tool's own setting comes before it."""
    await yard.policies.set_cluster(name, body.auto_approve)
    found = yard.catalog.snapshot.cluster(name)
    if found is None:
        raise NotFound(
            f"The cluster {name[:200]!r} is gone.", suggestion="Its decision is kept for when it comes back."
        )
    return _cluster_out(yard, found)


@router.delete("/clusters/{name:path}", **needs(Scope.MANAGE))
async def delete_cluster(yard: Yard, name: str) -> ClusterDeleted:
    """Remove a cluster and all its tools, at once and in every face.

    An imported API goes for good. Tools of other providers stay away from this node until its next start, and other
    nodes keep them: to be rid of them for good and everywhere, remove their provider, or switch the tools off.
    """
    return ClusterDeleted(name=name, deleted=await yard.delete_cluster(name))


def _cluster_out(yard: Yard, cluster: Cluster) -> ClusterOut:
    return ClusterOut(
        name=cluster.name,
        tools=len(cluster.entries),
        available=sum(1 for entry in cluster.entries if entry.callable),
        namespaces=list(cluster.namespaces),
        auto_approve=yard.policies.clusters.get(cluster.name),
    )
