"""The slice of one snapshot that one server shows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from toolyard.catalog.entry import Entry, Problem
from toolyard.catalog.naming import client_names
from toolyard.catalog.offers import OfferView
from toolyard.catalog.server import Server, selector
from toolyard.core.json import dumps
from toolyard.core.offer import NO_OFFERS

if TYPE_CHECKING:
    from toolyard.catalog.snapshot import Snapshot


class View:
    """The enabled tools of a server, under the names its clients see. Immutable, like its snapshot.

    Names are settled over every tool that the server includes, switched on or not, so that switching one off renames
    no other.
    """

    def __init__(self, server: Server, snapshot: Snapshot) -> None:
        self.server = server
        self.snapshot = snapshot
        included = _included(server, snapshot.entries)
        names = client_names([entry.tool for entry in included], server.names)
        named = zip(names, included, strict=True)
        self._by_name = {name: entry for name, entry in named if name is not None and entry.settings.enabled}
        self._names = {entry.id: name for name, entry in self._by_name.items()}
        self.problems: tuple[Problem, ...] = tuple(
            Problem(entry.tool.namespace, entry.tool.name, "Another tool of this server has the same direct name.")
            for name, entry in zip(names, included, strict=True)
            if name is None
        )

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """Sorted by the name clients see."""
        return tuple(self._by_name[name] for name in sorted(self._by_name))

    def get(self, tool_id: str) -> Entry | None:
        return self.snapshot.get(tool_id) if tool_id in self._names else None

    def by_direct_name(self, name: str) -> Entry | None:
        """The tool that clients see under this name."""
        return self._by_name.get(name)

    def name_of(self, entry: Entry) -> str:
        """
        Raises:
            KeyError: the entry is not in this view.
        """
        return self._names[entry.id]

    @cached_property
    def offers(self) -> OfferView:
        """The resources and prompts that this server shows."""
        shelves = self.snapshot.shelves
        return OfferView(
            self.server, {name: shelves[name].offers for name in sorted(shelves) if shelves[name].offers != NO_OFFERS}
        )

    @cached_property
    def fingerprint(self) -> str:
        """Equal for two views exactly when a client is told the same by both."""
        server = self.server
        shown = [server.agent_mode, server.retrieve_skill, server.skills, server.title, server.description]
        digest = hashlib.blake2b(dumps(shown), digest_size=16)
        for name in sorted(self._by_name):
            entry = self._by_name[name]
            digest.update(dumps([name, entry.description, entry.appearance]))
        return digest.hexdigest()

    def __contains__(self, tool_id: object) -> bool:
        return tool_id in self._names

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"View({self.server.id!r}, {len(self)} tools, version {self.snapshot.version})"


def _included(server: Server, entries: Sequence[Entry]) -> Sequence[Entry]:
    if server.tools == ("*",):
        return entries
    includes = selector(server.tools)
    return [entry for entry in entries if includes(entry.id)]
