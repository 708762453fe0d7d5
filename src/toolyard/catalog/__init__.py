"""Tools, snapshots, clusters, naming and search."""

from toolyard.catalog.catalog import Catalog, OnPublish
from toolyard.catalog.entry import DEFAULT_SETTINGS, UNGROUPED, Cluster, Entry, Problem, ToolSettings
from toolyard.catalog.resolution import Resolution
from toolyard.catalog.search.protocol import Hit, Searcher, SearcherFactory
from toolyard.catalog.server import Server
from toolyard.catalog.shelf import Shelf
from toolyard.catalog.snapshot import Snapshot
from toolyard.catalog.view import View

__all__ = [
    "DEFAULT_SETTINGS",
    "UNGROUPED",
    "Catalog",
    "Cluster",
    "Entry",
    "Hit",
    "OnPublish",
    "Problem",
    "Resolution",
    "Searcher",
    "SearcherFactory",
    "Server",
    "Shelf",
    "Snapshot",
    "ToolSettings",
    "View",
]
