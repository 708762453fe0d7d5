"""Who wants to know that a list changed (of tools, prompts or resources), and when to tell them.

A publish may come in a burst (every provider at start), so it is looked at once, a moment later, and a subscriber is
woken only when a fingerprint of *its* server's view is another one. It is told which lists changed, never how: a slow
reader holds three flags and no backlog.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Literal, TypeAlias

from toolyard.catalog import Catalog, Server, View
from toolyard.core.json import sha256
from toolyard.faces.mcp.wire import INTERNAL_ERROR, RpcError
from toolyard.skills import MANIFEST, Library

ListKind: TypeAlias = Literal["tools", "prompts", "resources"]
Fingerprints: TypeAlias = Mapping[ListKind, str]
SETTLE = 0.05
"""Seconds between the first publish of a burst and the look at it."""
MOST_SUBSCRIBERS = 10_000


class Subscription:
    """`async for changed in subscription`: the lists that changed, one step for several changes that came together."""

    def __init__(self, server: Server, fingerprints: Fingerprints, session: str | None = None) -> None:
        self.server = server
        self.session = session
        self._fingerprints = fingerprints
        self._kinds: set[ListKind] = set()
        self._changed = asyncio.Event()
        self._closed = False

    def look(self, fingerprints: Fingerprints) -> None:
        """Wake, if the server's lists are others than before."""
        changed: set[ListKind] = {
            kind for kind, fingerprint in fingerprints.items() if self._fingerprints[kind] != fingerprint
        }
        if changed:
            self._fingerprints = fingerprints
            self._kinds |= changed
            self._changed.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    async def cancel(self) -> None:
        """`close`, for who can wait."""
        self.close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> frozenset[ListKind]:
        try:
            await self._changed.wait()
        except asyncio.CancelledError:
            # Only a server that stops cancels a standing stream: end it with its last word, not with a traceback.
            raise StopAsyncIteration from None
        self._changed.clear()
        if self._closed:
            raise StopAsyncIteration
        changed = frozenset(self._kinds)
        self._kinds.clear()
        return changed


class Changes:
    def __init__(self, catalog: Catalog, servers: Mapping[str, Server], skills: Library) -> None:
        self._catalog = catalog
        self._servers = servers
        self._skills = skills
        self._skill_marks: dict[tuple[bool, tuple[str, ...]], str] = {}
        self._subscribers: set[Subscription] = set()
        self._by_session: dict[str, Subscription] = {}
        self._due: asyncio.TimerHandle | None = None
        self._stop = catalog.on_publish(lambda _snapshot: self.look_soon())

    def subscribe(self, server: Server, *, session: str | None = None) -> Subscription:
        """A legacy session has one stream: a newer one, after a lost connection, ends the older.

        Raises:
            RpcError: too many streams are open.
        """
        if len(self._subscribers) >= MOST_SUBSCRIBERS:
            raise RpcError(INTERNAL_ERROR, "Too many streams are open. Try again later.", status=503)
        subscription = Subscription(server, self._fingerprints(self._catalog.snapshot.view(server)), session)
        self._subscribers.add(subscription)
        if session is not None:
            self.end_session(session)
            self._by_session[session] = subscription
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscribers.discard(subscription)
        if subscription.session is not None and self._by_session.get(subscription.session) is subscription:
            del self._by_session[subscription.session]

    def end_session(self, session: str) -> None:
        """End the stream of a legacy session, where there is one."""
        subscription = self._by_session.pop(session, None)
        if subscription is not None:
            subscription.close()

    def close(self) -> None:
        """End every stream, so that a stopping process is not held open by them, and hear of nothing more."""
        self._stop()
        if self._due is not None:
            self._due.cancel()
        for subscription in self._subscribers:
            subscription.close()

    @property
    def open_streams(self) -> int:
        return len(self._subscribers)

    def look_soon(self) -> None:
        """Called for each publish, and whenever a server's own slice was changed."""
        if self._due is None and self._subscribers:
            self._due = asyncio.get_running_loop().call_later(SETTLE, self._look)

    def skills_changed(self) -> None:
        self._skill_marks.clear()
        self.look_soon()

    def _look(self) -> None:
        self._due = None
        snapshot = self._catalog.snapshot
        for subscription in self._subscribers:
            server = self._servers.get(subscription.server.id, subscription.server)
            subscription.look(self._fingerprints(snapshot.view(server)))

    def _fingerprints(self, view: View) -> Fingerprints:
        offers = view.offers
        return {
            "tools": view.fingerprint,
            "prompts": offers.prompt_fingerprint,
            "resources": offers.resource_fingerprint + self._skill_mark(view.server),
        }

    def _skill_mark(self, server: Server) -> str:
        """Another one when the SKILL.md files are others, which are in the list of resources."""
        key = (server.retrieve_skill, server.skills)
        mark = self._skill_marks.get(key)
        if mark is None:
            shown = [one for one in self._skills.entries if server.shows_skill(one.name)]
            listed = [file.digest for one in shown for file in one.files if file.path == MANIFEST]
            mark = self._skill_marks[key] = sha256([*listed]) if listed else ""
        return mark
