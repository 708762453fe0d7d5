"""A call that only reads goes on record at its end, or earlier, when somebody is given its id."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.calls.yard import Behaviour, request, yard
from toolyard.calls.record import Recorder
from toolyard.core.call import CallState, ToolResult
from toolyard.core.errors import CallError, ErrorCode, NotFound, StoreUnavailable
from toolyard.providers.base import Invocation


def held() -> tuple[Behaviour, asyncio.Event, asyncio.Event]:
    """A behaviour, an event for its start, and one that lets it end."""
    begun, release = asyncio.Event(), asyncio.Event()

    async def run(invocation: Invocation) -> ToolResult:
        begun.set()
        await release.wait()
        if invocation.arguments["text"] == "fail":
            raise CallError(ErrorCode.UPSTREAM, "No.")
        return ToolResult.of_text("done")

    return run, begun, release


@pytest.mark.parametrize(("text", "state"), [("a", CallState.COMPLETE), ("fail", CallState.ERROR)])
async def test_a_reading_call_is_found_from_then_on_and_ends_as_usual(
    tmp_path: Path, text: str, state: CallState
) -> None:
    behaviour, begun, release = held()
    async with yard(tmp_path, behaviour) as y, asyncio.timeout(5):
        wanted = request("pets:read", {"text": text})
        assert await y.calls.invoke_within(wanted, 0.001) is None
        await begun.wait()
        with pytest.raises(NotFound):
            await y.calls.get(wanted.call_id)
        await asyncio.gather(*(y.calls.put_on_record(wanted.call_id) for _ in range(3)))
        assert (await y.calls.get(wanted.call_id)).state is CallState.PROCESSING
        release.set()
        outcome = await y.calls.wait(wanted.call_id, 5)
        assert outcome is not None
        record = await y.calls.get(wanted.call_id)
        assert (outcome.state, record.state) == (state, state)
        assert record.finished is not None


async def test_a_stop_settles_it_as_interrupted(tmp_path: Path) -> None:
    behaviour, begun, _ = held()
    async with yard(tmp_path, behaviour) as y, asyncio.timeout(5):
        wanted = request("pets:read", {"text": "a"})
        await y.calls.invoke_within(wanted, 0.001)
        await begun.wait()
        await y.calls.put_on_record(wanted.call_id)
        await y.calls.close()
        await y.store.flush()
        assert (await y.calls.get(wanted.call_id)).error_code is ErrorCode.INTERRUPTED


async def test_where_it_could_not_be_written_all_of_it_is_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behaviour, begun, release = held()

    async def full(*_: object) -> None:
        raise StoreUnavailable("The disk is full.")

    async with yard(tmp_path, behaviour) as y, asyncio.timeout(5):
        wanted = request("pets:read", {"text": "a"})
        await y.calls.invoke_within(wanted, 0.001)
        await begun.wait()
        monkeypatch.setattr(Recorder, "begin", full)
        with pytest.raises(StoreUnavailable):
            await y.calls.put_on_record(wanted.call_id)
        release.set()
        outcome = await y.calls.wait(wanted.call_id, 5)
        assert outcome is not None
        assert (await y.calls.get(wanted.call_id)).state is CallState.COMPLETE


async def test_a_call_that_does_not_run_here_is_left_alone(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        await y.calls.put_on_record("call_none")
        done = await y.call("pets:write", {"text": "a"})
        await y.calls.put_on_record(done.call_id)
        assert (await y.calls.get(done.call_id)).state is CallState.COMPLETE


async def test_invoke_within_gives_the_outcome_where_it_comes_in_time(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        outcome = await y.calls.invoke_within(request("pets:read", {"text": "a"}), 30)
        assert outcome is not None
        assert outcome.state is CallState.COMPLETE
