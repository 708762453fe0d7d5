"""Changed lists are published once, storms become one refresh, and no list can do harm."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.fakes import REFUSED, FakeProvider, Recorder, invocation
from tests.requirements import requirement
from toolyard.core.errors import NotFound, ProviderError
from toolyard.core.tool import Tool
from toolyard.providers.supervisor import ProviderState
from toolyard.providers.supervisor.listing import vet


@requirement("provider.refresh")
async def test_a_storm_of_notices_becomes_one_refresh_with_the_new_list() -> None:
    recorder = Recorder()
    provider = FakeProvider("a", "one")
    await recorder.supervisor.add_and_start(provider)
    lists = provider.lists
    provider.listed = [*provider.listed, Tool("a", "two", "")]
    for _ in range(1000):
        provider.notify()
    await recorder.until(lambda: len(recorder.published) == 2)
    assert recorder.published[-1] == ("a", ("one", "two"))
    assert provider.lists == lists + 1
    await recorder.supervisor.close()


async def test_a_refresh_that_finds_nothing_new_publishes_nothing() -> None:
    recorder = Recorder()
    provider = FakeProvider("a", "one")
    await recorder.supervisor.add_and_start(provider)
    await recorder.supervisor.refresh("a")
    assert provider.lists == 2
    assert recorder.published == [("a", ("one",))]
    await recorder.supervisor.close()


async def test_a_refresh_asked_for_while_down_reconnects_at_once_or_says_why_not() -> None:
    recorder = Recorder()
    provider = FakeProvider("a", "one")
    provider.failing = REFUSED
    await recorder.supervisor.add_and_start(provider)
    with pytest.raises(ProviderError, match="connection refused"):
        await recorder.supervisor.refresh("a")
    provider.failing = None
    await recorder.supervisor.refresh("a")
    assert recorder.supervisor.status("a").state is ProviderState.UP
    with pytest.raises(NotFound):
        await recorder.supervisor.refresh("nobody")
    await recorder.supervisor.close()


async def test_a_provider_that_never_stops_notifying_is_not_listed_all_the_time_and_still_serves() -> None:
    recorder = Recorder()

    class Nervous(FakeProvider):
        async def tools(self) -> Any:
            self.notify()
            return await super().tools()

    provider = Nervous("a", "one")
    await recorder.supervisor.add_and_start(provider)
    began = asyncio.get_running_loop().time()
    await recorder.until(lambda: provider.lists >= 5)
    assert asyncio.get_running_loop().time() - began >= 0.02 * 3
    assert (await recorder.supervisor.call(invocation(provider.listed[0]))).text == "ok"
    await recorder.supervisor.close()


@requirement("provider.refresh")
async def test_a_provider_that_is_lost_while_refreshing_keeps_its_last_list() -> None:
    recorder = Recorder()
    provider = FakeProvider("a", "one")
    await recorder.supervisor.add_and_start(provider)
    provider.failing = REFUSED
    with pytest.raises(ProviderError):
        await recorder.supervisor.refresh("a")
    assert recorder.published == [("a", ("one",))]
    assert recorder.available["a"][0] is False
    assert recorder.supervisor.status("a").tool_count == 1
    await recorder.supervisor.close()


async def test_what_was_left_out_is_in_the_status_with_its_reason() -> None:
    recorder = Recorder()
    provider = FakeProvider("a", "one", "one", "x" * 513)
    provider.listed = [*provider.listed, None, 7, {"name": "dict"}, Tool("b", "foreign", ""), Tool("a", "", "")]
    await recorder.supervisor.add_and_start(provider)
    assert recorder.published == [("a", ("one",))]
    assert recorder.supervisor.status("a").skipped == (
        "'one' is listed twice; the first one is used",
        f"'{'x' * 60}'...: the name is longer than 512 characters",
        "an entry of type NoneType is no tool",
        "an entry of type int is no tool",
        "an entry of type dict is no tool",
        "'b:foreign' belongs to another namespace than 'a'",
        "a tool without a name",
    )
    await recorder.supervisor.close()


@given(st.lists(st.one_of(st.builds(Tool, st.sampled_from(["a", "b"]), st.text(max_size=3), st.text()), st.integers())))
def test_a_vetted_list_has_unique_names_of_its_namespace_and_accounts_for_every_entry(answered: list[Any]) -> None:
    listing = vet("a", answered)
    names = [tool.name for tool in listing.tools]
    assert len(set(names)) == len(names)
    assert all(tool.namespace == "a" and tool.name for tool in listing.tools)
    assert len(listing.tools) + len(listing.skipped) == len(answered)
