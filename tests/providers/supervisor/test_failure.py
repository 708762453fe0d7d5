"""A provider that fails at run time: the breaker, the way back, and what others notice of it (nothing)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.fakes import QUICK, REFUSED, FakeProvider, Recorder, invocation
from tests.requirements import requirement
from toolyard.core.call import ToolResult
from toolyard.core.errors import AddressRefused, CallError, EgressError, ErrorCode, Unreachable
from toolyard.core.json import JsonObject
from toolyard.core.question import NeedsInput, Question
from toolyard.providers.base import Invocation
from toolyard.providers.supervisor import ProviderState, RetryPolicy

PATIENT = replace(QUICK, first_delay=30, longest_delay=30)


async def lost(_invocation: Invocation) -> ToolResult:
    raise Unreachable("connection lost")


async def started(*providers: FakeProvider, policy: RetryPolicy = QUICK) -> Recorder:
    recorder = Recorder(policy)
    for provider in providers:
        recorder.supervisor.add(provider)
    await recorder.supervisor.start()
    return recorder


@requirement("provider.reconnect")
async def test_calls_fail_at_once_while_a_provider_is_down_and_others_are_untouched() -> None:
    bad, good = FakeProvider("bad", "t"), FakeProvider("good", "t")
    recorder = await started(bad, good, policy=PATIENT)
    bad.on_call, bad.failing = lost, REFUSED
    with pytest.raises(CallError, match="connection lost"):
        await recorder.supervisor.call(invocation(bad.listed[0]))
    await recorder.until_state("bad", ProviderState.DOWN)
    with pytest.raises(CallError) as caught:
        await recorder.supervisor.call(invocation(bad.listed[0]))
    assert (caught.value.code, caught.value.message) == (
        ErrorCode.UPSTREAM,
        "Provider 'bad' is down: connection refused.",
    )
    assert caught.value.suggestion is not None
    assert caught.value.suggestion.startswith("It is tried again in ")
    assert bad.calls == 1
    assert (await recorder.supervisor.call(invocation(good.listed[0]))).text == "ok"
    assert recorder.available == {
        "bad": (False, "The provider is down: connection refused"),
        "good": (True, None),
    }
    assert recorder.published == [("bad", ("t",)), ("good", ("t",))]
    await recorder.supervisor.close()


@requirement("provider.reconnect")
async def test_a_provider_that_comes_back_is_reconnected_and_its_tools_are_available_again() -> None:
    provider = FakeProvider("a", "t")
    recorder = await started(provider)
    provider.failing = REFUSED
    provider.notify()
    await recorder.until_state("a", ProviderState.DOWN)
    await recorder.until(lambda: provider.starts >= 3)
    provider.failing = None
    await recorder.until_state("a", ProviderState.UP)
    assert recorder.available["a"] == (True, None)
    assert (await recorder.supervisor.call(invocation(provider.listed[0]))).text == "ok"
    await recorder.supervisor.close()


async def test_the_door_closes_after_consecutive_losses_even_if_the_health_check_says_all_is_well() -> None:
    provider = FakeProvider("a", "t")
    recorder = await started(provider, policy=PATIENT)
    provider.on_call = lost
    for _ in range(3):
        with pytest.raises(Unreachable):
            await recorder.supervisor.call(invocation(provider.listed[0]))
        await asyncio.sleep(0)
    assert recorder.supervisor.status("a").state is ProviderState.DOWN
    await recorder.supervisor.close()


async def test_after_coming_back_one_loss_closes_the_door_again_and_one_answer_opens_it_for_good() -> None:
    provider = FakeProvider("a", "t")
    recorder = await started(provider)
    provider.on_call = lost
    for _ in range(3):
        with pytest.raises(Unreachable):
            await recorder.supervisor.call(invocation(provider.listed[0]))
    await recorder.until_state("a", ProviderState.UP)
    with pytest.raises(Unreachable):
        await recorder.supervisor.call(invocation(provider.listed[0]))
    assert recorder.supervisor.status("a").state is ProviderState.DOWN
    await recorder.until_state("a", ProviderState.UP)
    del provider.on_call
    provider.on_call = provider._answer  # pyright: ignore[reportPrivateUsage]
    await recorder.supervisor.call(invocation(provider.listed[0]))
    provider.on_call = lost
    with pytest.raises(Unreachable):
        await recorder.supervisor.call(invocation(provider.listed[0]))
    assert recorder.supervisor.status("a").state is ProviderState.UP
    await recorder.supervisor.close()


@pytest.mark.parametrize(
    "error",
    [
        CallError(ErrorCode.UPSTREAM, "the tool failed"),
        CallError(ErrorCode.INVALID_ARGUMENTS, "bad"),
        AddressRefused("no"),
    ],
)
async def test_a_tools_own_failure_is_no_failure_of_its_provider(error: Exception) -> None:
    provider = FakeProvider("a", "t")
    recorder = await started(provider)

    async def fail(_invocation: Invocation) -> ToolResult:
        raise error

    provider.on_call = fail
    for _ in range(10):
        with pytest.raises(CallError):
            await recorder.supervisor.call(invocation(provider.listed[0]))
    assert recorder.supervisor.status("a").state is ProviderState.UP
    assert provider.checks == 0
    await recorder.supervisor.close()


async def test_an_egress_error_counts_and_reaches_the_caller_as_upstream() -> None:
    provider = FakeProvider("a", "t")
    recorder = await started(provider, policy=PATIENT)

    async def fail(_invocation: Invocation) -> ToolResult:
        raise EgressError("No connection to host.", suggestion="Check it.")

    provider.on_call = fail
    for _ in range(3):
        with pytest.raises(CallError) as caught:
            await recorder.supervisor.call(invocation(provider.listed[0]))
        assert (caught.value.code, str(caught.value)) == (ErrorCode.UPSTREAM, "No connection to host. Check it.")
    assert recorder.supervisor.status("a").state is ProviderState.DOWN
    await recorder.supervisor.close()


async def test_a_call_that_ran_out_of_time_has_the_provider_checked_but_not_condemned() -> None:
    provider = FakeProvider("a", "t")
    recorder = await started(provider)

    async def hang(_invocation: Invocation) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    provider.on_call = hang
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await recorder.supervisor.call(invocation(provider.listed[0], time_limit=0.02))
    async with asyncio.timeout(5):
        while provider.checks == 0:
            await asyncio.sleep(0)
    assert recorder.supervisor.status("a").state is ProviderState.UP
    await recorder.supervisor.close()


async def test_time_in_which_the_caller_thought_is_not_held_against_the_provider() -> None:
    provider = FakeProvider("a", "t")
    recorder = await started(provider)

    async def thinks(_questions: Sequence[Question]) -> Mapping[str, JsonObject]:
        await asyncio.Event().wait()
        raise AssertionError

    async def asks(given: Invocation) -> ToolResult:
        assert given.ask is not None
        await given.ask([])
        raise AssertionError

    async def needs(_invocation: Invocation) -> ToolResult:
        raise NeedsInput([], None)

    provider.on_call = asks
    asking = replace(invocation(provider.listed[0], time_limit=0.02), ask=thinks)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await recorder.supervisor.call(asking)
    provider.on_call = needs
    with pytest.raises(NeedsInput):
        await recorder.supervisor.call(invocation(provider.listed[0]))
    assert provider.checks == 0
    assert recorder.supervisor.status("a").latency_ms is not None
    await recorder.supervisor.close()


async def test_a_silent_provider_is_checked_after_a_while_and_found_down() -> None:
    provider = FakeProvider("a", "t")
    recorder = await started(provider, policy=replace(QUICK, idle_check=0.02))
    provider.failing = REFUSED
    await recorder.until_state("a", ProviderState.DOWN)
    await recorder.supervisor.close()


async def test_a_provider_that_raises_what_it_must_not_is_down_and_retried() -> None:
    provider = FakeProvider("a", "t")
    provider.failing = ZeroDivisionError("oops")
    recorder = await started(provider)
    assert recorder.supervisor.status("a").last_error == "ZeroDivisionError: oops"
    provider.failing = None
    await recorder.until_state("a", ProviderState.UP)
    await recorder.supervisor.close()


@given(st.integers(1, 10_000), st.floats(0.001, 10), st.floats(0.0, 1.0))
def test_delays_grow_and_stay_within_their_bounds(attempt: int, first: float, jitter: float) -> None:
    policy = RetryPolicy(first_delay=first, longest_delay=60, jitter=jitter)
    plain = min(60.0, first * 2.0 ** min(attempt - 1, 30))
    assert plain * (1 - jitter) * 0.999 <= policy.delay(attempt) <= plain * 1.001
