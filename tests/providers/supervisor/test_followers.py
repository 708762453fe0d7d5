"""Who follows a resource hears of it, also from the provider that takes the place of another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.providers.fakes import FakeProvider, Recorder
from toolyard.core.errors import ProviderError
from toolyard.core.json import JsonObject
from toolyard.core.offer import Offers
from toolyard.providers.offers import Completion


class Notes(FakeProvider):
    """A provider with one resource, that keeps what it was asked to tell of."""

    def __init__(self, provider_id: str) -> None:
        super().__init__(provider_id, "x")
        self.followed: list[frozenset[str]] = []
        self.told = asyncio.Event()
        self.unable = False
        self.notify: Callable[[str], None] = lambda _: None

    async def offers(self) -> Offers:
        return Offers(resources=({"uri": "notes://a", "name": "a"},), subscribes=True)

    async def complete(self, completion: Completion) -> JsonObject:
        return {"values": []}

    async def follow(self, uris: frozenset[str]) -> None:
        if self.unable:
            raise ProviderError("It tells of nothing.")
        self.followed.append(uris)
        self.told.set()

    def on_update(self, notify: Callable[[str], None]) -> None:
        self.notify = notify


async def test_an_upstream_is_told_the_union_of_wishes_and_each_follower_hears_its_own() -> None:
    heard: list[str] = []
    supervisor, notes = Recorder().supervisor, Notes("notes")
    await supervisor.add_and_start(notes)
    to_a = supervisor.following("notes", "notes://a", lambda: heard.append("a"))
    to_b = supervisor.following("notes", "notes://b", lambda: heard.append("b"))
    async with to_a, to_b:
        async with supervisor.following("notes", "notes://a", lambda: heard.append("also a")):
            for uri in ("notes://a", "notes://b", "notes://c"):
                notes.notify(uri)
        notes.notify("notes://a")
    notes.notify("notes://a")
    assert heard == ["a", "also a", "b", "a"]
    both = frozenset({"notes://a", "notes://b"})
    assert notes.followed == [frozenset({"notes://a"}), both, frozenset({"notes://a"}), frozenset()]
    await supervisor.close()


async def test_a_provider_that_takes_anothers_place_is_told_what_is_followed() -> None:
    heard: list[str] = []
    supervisor, later = Recorder().supervisor, Notes("notes")
    await supervisor.add_and_start(Notes("notes"))
    async with supervisor.following("notes", "notes://a", lambda: heard.append("a")):
        await supervisor.remove("notes")
        await supervisor.add_and_start(later)
        async with asyncio.timeout(5):
            await later.told.wait()
        later.notify("notes://a")
    assert heard == ["a"]
    assert later.followed == [frozenset({"notes://a"}), frozenset()]
    await supervisor.close()


async def test_an_upstream_that_cannot_tell_of_changes_costs_its_followers_nothing() -> None:
    supervisor, notes = Recorder().supervisor, Notes("notes")
    notes.unable = True
    await supervisor.add_and_start(notes)
    async with supervisor.following("notes", "notes://a", lambda: None), supervisor.following("no", "x://y", print):
        pass
    assert notes.followed == []
    await supervisor.close()
