"""Providers are contacted in parallel, within limits; required ones decide the start."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.providers.fakes import REFUSED, FakeProvider, Recorder, invocation
from tests.requirements import requirement
from toolyard.core.errors import BadInput, CallError, Conflict, NotFound, ProviderError
from toolyard.providers.supervisor import ProviderState


@requirement("provider.boot")
async def test_all_providers_are_contacted_at_the_same_time() -> None:
    recorder = Recorder()
    together = asyncio.Barrier(3)

    class Meeting(FakeProvider):
        async def start(self) -> None:
            await together.wait()

    for name in ("a", "b", "c"):
        recorder.supervisor.add(Meeting(name, "t"))
    async with asyncio.timeout(5):
        await recorder.supervisor.start()
    assert sorted(recorder.published) == [("a", ("t",)), ("b", ("t",)), ("c", ("t",))]
    assert [s.state for s in recorder.supervisor.statuses()] == [ProviderState.UP] * 3
    await recorder.supervisor.close()


@requirement("provider.boot")
async def test_a_required_provider_that_fails_fails_the_start_naming_provider_address_and_cause() -> None:
    recorder = Recorder()
    bad = FakeProvider("crm", "t")
    bad.failing = REFUSED
    recorder.supervisor.add(bad, required=True)
    with pytest.raises(ProviderError) as caught:
        await recorder.supervisor.start()
    assert caught.value.message == "Required: Provider 'crm' (fake://crm): connection refused."
    await recorder.supervisor.close()


@requirement("provider.boot")
async def test_a_required_provider_that_hangs_fails_the_start_after_its_limit() -> None:
    recorder = Recorder()
    slow = FakeProvider("crm", "t")
    slow.hanging = True
    recorder.supervisor.add(slow, required=True, start_timeout=0.05)
    async with asyncio.timeout(5):
        with pytest.raises(ProviderError, match=r"did not answer within 0\.05 s"):
            await recorder.supervisor.start()
    await recorder.supervisor.close()


@requirement("provider.boot")
async def test_an_optional_provider_that_fails_is_down_and_comes_up_in_the_background() -> None:
    recorder = Recorder()
    bad, good = FakeProvider("bad", "t"), FakeProvider("good", "t")
    bad.failing = REFUSED
    recorder.supervisor.add(bad)
    recorder.supervisor.add(good, required=True)
    await recorder.supervisor.start()
    status = recorder.supervisor.status("bad")
    assert (status.state, status.last_error, status.required) == (ProviderState.DOWN, "connection refused", False)
    assert recorder.available["bad"] == (False, "The provider is down: connection refused")
    bad.failing = None
    await recorder.until_state("bad", ProviderState.UP)
    assert ("bad", ("t",)) in recorder.published
    await recorder.supervisor.close()


async def test_start_waits_for_an_optional_hanging_provider_only_as_long_as_it_has_patience() -> None:
    recorder = Recorder()
    slow = FakeProvider("slow")
    slow.hanging = True
    recorder.supervisor.add(slow, start_timeout=30)
    async with asyncio.timeout(5):
        await recorder.supervisor.start(patience=0.02)
    assert recorder.supervisor.status("slow").state is ProviderState.STARTING
    with pytest.raises(CallError, match="is still starting"):
        await recorder.supervisor.call(invocation(FakeProvider("slow", "t").listed[0]))
    await recorder.supervisor.close()


async def test_closing_takes_bounded_time_even_if_a_provider_does_not_end() -> None:
    recorder = Recorder()

    class Stubborn(FakeProvider):
        async def close(self) -> None:
            await asyncio.Event().wait()

    recorder.supervisor.add(Stubborn("a"))
    recorder.supervisor.add(good := FakeProvider("b"))
    await recorder.supervisor.start()
    began = time.monotonic()
    await recorder.supervisor.close()
    await recorder.supervisor.close()
    assert time.monotonic() - began < 3
    assert good.closed


async def test_an_id_is_checked_and_can_be_taken_once() -> None:
    recorder = Recorder()
    recorder.supervisor.add(FakeProvider("a"))
    with pytest.raises(Conflict):
        recorder.supervisor.add(FakeProvider("a"))
    with pytest.raises(BadInput):
        recorder.supervisor.add(FakeProvider("No Good"))
    with pytest.raises(NotFound):
        recorder.supervisor.status("b")
    await recorder.supervisor.close()


async def test_a_removed_provider_is_closed_and_its_tools_are_forgotten() -> None:
    recorder = Recorder()
    provider = FakeProvider("a", "t")
    await recorder.supervisor.add_and_start(provider)
    await recorder.supervisor.remove("a")
    assert (provider.closed, recorder.forgotten) == (True, ["a"])
    with pytest.raises(CallError, match="was removed"):
        await recorder.supervisor.call(invocation(provider.listed[0]))


async def test_a_required_provider_added_later_leaves_nothing_behind_when_it_fails() -> None:
    recorder = Recorder()
    bad = FakeProvider("a", "t")
    bad.failing = REFUSED
    with pytest.raises(ProviderError, match="connection refused"):
        await recorder.supervisor.add_and_start(bad, required=True)
    assert recorder.supervisor.statuses() == []
    assert bad.closed
