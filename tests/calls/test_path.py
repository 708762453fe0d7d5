from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.calls.yard import blocking, request, yard
from toolyard.catalog import ToolSettings
from toolyard.core.call import CallFailure, CallState, Progress, ToolResult
from toolyard.core.errors import CallError, Conflict, ErrorCode, Forbidden, NotFound, StoreUnavailable
from toolyard.core.principal import LOCAL_OPERATOR, Principal, PrincipalKind, Scope
from toolyard.core.record import CallEvent, CallFilter
from toolyard.providers.base import Invocation

CALLER = Principal(PrincipalKind.KEY, "k1", "ci", frozenset({Scope.CALL}))
READER = Principal(PrincipalKind.KEY, "k2", "auditor", frozenset({Scope.READ}))


async def test_a_call_goes_the_whole_way_and_is_on_record(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        outcome = await y.call("pets:write", {"text": "hello"}, principal=CALLER)
        assert (outcome.state, outcome.failure) == (CallState.COMPLETE, None)
        assert outcome.result == ToolResult.of_text("hello")
        record = await y.calls.get(outcome.call_id)
        assert (record.tool, record.principal, record.origin, record.arguments, record.result) == (
            "pets:write",
            "key:ci",
            "http",
            '{"text":"hello"}',
            '{"content":[{"type":"text","text":"hello"}]}',
        )
        assert record.started is not None
        assert record.finished is not None
        assert record.created <= record.started <= record.finished
        assert (record.input_bytes, record.output_bytes) == (16, 44)


@pytest.mark.parametrize(
    ("arguments", "message", "suggestion"),
    [
        ({}, "'text' is required", None),
        ({"text": 3}, 'text: 3 is not of type "string"', None),
        ({"text": None}, 'text: null is not of type "string"', None),
        ({"text": "a", "limt": 3}, "unknown field 'limt'", "Did you mean 'limit'?"),
        ({"text": "a", "limit": 0}, "limit: 0 is less than the minimum of 1", None),
        ({"text": "a", "kind": "cow"}, 'kind: "cow" is not one of "cat" or "dog"', None),
        ({"text": "a", "owner": {"nam": 1}}, "unknown field 'owner.nam'", "Did you mean 'name'?"),
        ({"text": "a", "mail": "nobody"}, 'mail: "nobody" is not a "email"', None),
    ],
)
async def test_arguments_that_do_not_fit_never_reach_the_provider(
    tmp_path: Path, arguments: dict[str, Any], message: str, suggestion: str | None
) -> None:
    async with yard(tmp_path) as y:
        outcome = await y.call("pets:write", arguments)
        assert y.provider.seen == []
        assert outcome.failure == CallFailure(
            ErrorCode.INVALID_ARGUMENTS, f"Invalid arguments for pets:write: {message}.", suggestion
        )
        record = await y.calls.get(outcome.call_id)
        expected = f"Invalid arguments for pets:write: {message}."
        assert (record.state, record.error, record.started) == (CallState.ERROR, expected, None)


async def test_formats_of_an_imported_document_are_only_hints(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        outcome = await y.call("pets:imported", {"text": "a", "mail": "nobody"})
        assert outcome.state is CallState.COMPLETE


async def test_arguments_nested_beyond_reason_are_refused(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    async with yard(tmp_path) as y:
        outcome = await y.call("pets:write", {"text": deep})
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.INVALID_ARGUMENTS
        assert y.provider.seen == []


async def test_unknown_switched_off_and_outside_the_slice_look_the_same(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        y.catalog.apply_settings("pets:imported", ToolSettings(enabled=False))
        outcomes = [
            await y.call("pets:nothing", {"text": "a"}),
            await y.call("pets:imported", {"text": "a"}),
            await y.call("pets:write", {"text": "a"}, server="narrow"),
            await y.call("pets:write", {"text": "a"}, server="no such server"),
        ]
        found = {
            (outcome.failure.code, outcome.failure.message.replace(outcome.tool, "?"), outcome.failure.suggestion)
            for outcome in outcomes
            if outcome.failure
        }
        assert found == {
            (
                ErrorCode.NOT_FOUND,
                "There is no tool '?' here.",
                "List or search the tools to see what can be called.",
            )
        }
        assert (await y.call("pets:read", {"text": "a"}, server="narrow")).state is CallState.COMPLETE


async def test_a_principal_without_the_scope_is_denied_with_the_reason(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        outcome = await y.call("pets:read", {"text": "a"}, principal=READER)
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.DENIED
        assert "key:auditor lacks the scope 'call'" in outcome.failure.message
        assert y.provider.seen == []


async def test_a_side_effecting_call_is_on_disk_as_processing_before_it_runs(tmp_path: Path) -> None:
    states: list[CallState] = []

    async with yard(tmp_path) as y:

        async def look(invocation: Invocation) -> ToolResult:
            states.append((await y.calls.get(invocation.call_id)).state)
            return ToolResult.of_text("done")

        y.provider.behaviour = look
        await y.call("pets:write", {"text": "a"})
        assert states == [CallState.PROCESSING]


async def test_nothing_runs_when_the_call_cannot_be_put_on_record(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        await y.store.close()
        with pytest.raises(Exception, match="closed"):
            await y.call("pets:write", {"text": "a"})
        assert y.provider.seen == []


async def test_an_effect_whose_outcome_cannot_be_recorded_is_told_to_the_caller(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:

        async def fill_the_disk(invocation: Invocation) -> ToolResult:
            (tmp_path / "blobs").write_text("a file where the folder should be")
            return ToolResult.of_text("x" * 50_000 + str(invocation.arguments["text"]))

        y.provider.behaviour = fill_the_disk
        with pytest.raises(StoreUnavailable, match="pets:write ran, but its outcome could not be put on record"):
            await y.call("pets:write", {"text": "a"})
        (record,) = (await y.calls.page(CallFilter())).items
        assert record.state is CallState.PROCESSING


async def test_a_time_limit_stops_the_provider_and_says_so(tmp_path: Path) -> None:
    behaviour, _, fate = blocking()
    async with yard(tmp_path, behaviour) as y:
        outcome = await y.call("pets:write", {"text": "a"}, time_limit=0.05)
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.TIMEOUT
        assert fate == ["cancelled"]


async def test_an_operators_time_limit_comes_before_the_default(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        y.catalog.apply_settings("pets:write", ToolSettings(time_limit=2.5))
        await y.call("pets:write", {"text": "a"})
        await y.call("pets:write", {"text": "a"}, time_limit=1.0)
        await y.call("pets:write", {"text": "a"}, time_limit=10.0)
        assert [invocation.time_limit for invocation in y.provider.seen] == [2.5, 1.0, 2.5]


async def test_a_cancelled_call_reaches_the_provider_and_ends_cancelled(tmp_path: Path) -> None:
    behaviour, begun, fate = blocking()
    async with yard(tmp_path, behaviour) as y, asyncio.timeout(5):
        call_id = y.calls.start(request("pets:write", {"text": "a"}))
        await begun.wait()
        assert await y.calls.cancel(call_id, LOCAL_OPERATOR)
        outcome = await y.calls.wait(call_id, 5)
        assert outcome is not None
        assert outcome.failure is not None
        assert outcome.failure.code is ErrorCode.CANCELLED
        assert fate == ["cancelled"]
        assert (await y.calls.get(call_id)).error_code is ErrorCode.CANCELLED
        assert not await y.calls.cancel(call_id, LOCAL_OPERATOR)


async def test_somebody_elses_call_is_not_theirs_to_cancel(tmp_path: Path) -> None:
    behaviour, begun, _ = blocking()
    async with yard(tmp_path, behaviour) as y, asyncio.timeout(5):
        call_id = y.calls.start(request("pets:write", {"text": "a"}))
        await begun.wait()
        with pytest.raises(Forbidden):
            await y.calls.cancel(call_id, CALLER)
        await y.calls.cancel(call_id, LOCAL_OPERATOR)


async def test_stopping_settles_what_was_running_as_interrupted(tmp_path: Path) -> None:
    behaviour, begun, _ = blocking()
    async with yard(tmp_path, behaviour) as y, asyncio.timeout(5):
        call_id = y.calls.start(request("pets:write", {"text": "a"}))
        await begun.wait()
        await y.calls.close()
        await y.store.flush()
        assert (await y.calls.get(call_id)).error_code is ErrorCode.INTERRUPTED


async def test_a_repeated_idempotency_key_gives_the_first_answer_and_runs_once(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        first = await y.call("pets:write", {"text": "a"}, idempotency_key="k")
        again = await y.call("pets:write", {"text": "a"}, idempotency_key="k")
        assert again == first
        assert len(y.provider.seen) == 1
        with pytest.raises(Conflict, match="used for another call"):
            await y.call("pets:write", {"text": "b"}, idempotency_key="k")
        other = await y.call("pets:write", {"text": "b"}, idempotency_key="k", principal=CALLER)
        assert other.call_id != first.call_id


async def test_the_same_key_at_the_same_time_runs_once(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def slow(invocation: Invocation) -> ToolResult:
        await release.wait()
        return ToolResult.of_text(str(invocation.arguments["text"]))

    async with yard(tmp_path, slow) as y, asyncio.timeout(5):
        tasks = [
            asyncio.create_task(y.call("pets:write", {"text": "a"}, idempotency_key="k", time_limit=5))
            for _ in range(8)
        ]
        while not y.provider.seen:
            await asyncio.sleep(0)
        release.set()
        outcomes = await asyncio.gather(*tasks)
        assert len({outcome.call_id for outcome in outcomes}) == 1
        assert len(y.provider.seen) == 1


async def test_a_started_repeat_is_found_under_the_first_calls_id(tmp_path: Path) -> None:
    behaviour, begun, _ = blocking()
    async with yard(tmp_path, behaviour) as y, asyncio.timeout(5):
        first = y.calls.start(request("pets:write", {"text": "a"}, idempotency_key="k"))
        await begun.wait()
        again = y.calls.start(request("pets:write", {"text": "a"}, idempotency_key="k"))
        assert await y.calls.wait(again, 0.05) is None
        assert y.calls.id_on_record(again) == first
        await y.calls.cancel(first, LOCAL_OPERATOR)


async def test_a_refused_call_does_not_use_up_its_idempotency_key(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        await y.call("pets:write", {"txt": "a"}, idempotency_key="k")
        assert (await y.call("pets:write", {"text": "a"}, idempotency_key="k")).state is CallState.COMPLETE


async def test_a_tools_own_failure_keeps_its_words(tmp_path: Path) -> None:
    async def fail(invocation: Invocation) -> ToolResult:
        del invocation
        return ToolResult.of_text("No such pet.", is_error=True)

    async with yard(tmp_path, fail) as y:
        outcome = await y.call("pets:read", {"text": "a"})
        assert outcome.state is CallState.ERROR
        assert outcome.failure == CallFailure(ErrorCode.UPSTREAM, "No such pet.")
        assert outcome.result == ToolResult.of_text("No such pet.", is_error=True)
        assert (await y.calls.get(outcome.call_id)).error == "No such pet."


async def test_what_a_provider_raises_becomes_the_failure(tmp_path: Path) -> None:
    async def raising(invocation: Invocation) -> ToolResult:
        if invocation.arguments["text"] == "bug":
            raise KeyError("secret detail")
        raise CallError(ErrorCode.UPSTREAM, "It is down.", suggestion="Try later.")

    async with yard(tmp_path, raising) as y:
        assert (await y.call("pets:read", {"text": "down"})).failure == CallFailure(
            ErrorCode.UPSTREAM, "It is down.", "Try later."
        )
        bug = await y.call("pets:read", {"text": "bug"})
        assert bug.failure is not None
        assert bug.failure.code is ErrorCode.INTERNAL
        assert "secret" not in bug.failure.to_text()


async def test_a_tool_with_a_broken_schema_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        outcome = await y.call("pets:broken", {"a": "x"})
        assert outcome.failure is not None
        assert outcome.failure.code in (ErrorCode.UPSTREAM, ErrorCode.NOT_FOUND)
        assert y.provider.seen == []


async def test_progress_and_trace_context_reach_the_provider(tmp_path: Path) -> None:
    heard: list[Progress] = []

    async def report(invocation: Invocation) -> ToolResult:
        assert invocation.progress is not None
        invocation.progress(Progress(1, 2, "halfway"))
        return ToolResult.of_text(invocation.trace["traceparent"])

    async with yard(tmp_path, report) as y:
        outcome = await y.call("pets:read", {"text": "a"}, progress=heard.append, trace={"traceparent": "00-aa-bb-01"})
        assert heard == [Progress(1, 2, "halfway")]
        assert outcome.result == ToolResult.of_text("00-aa-bb-01")


async def test_observers_hear_the_beginning_and_the_end(tmp_path: Path) -> None:
    heard: list[CallEvent] = []
    async with yard(tmp_path) as y:
        y.calls.observe(heard.append)
        await y.call("pets:read", {"text": "a"})
        await y.call("pets:read", {"txt": "a"})
        assert [(event.state, event.error_code) for event in heard] == [
            (CallState.PROCESSING, None),
            (CallState.COMPLETE, None),
            (CallState.ERROR, ErrorCode.INVALID_ARGUMENTS),
        ]


async def test_waiting_for_an_unknown_call_says_so(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        with pytest.raises(NotFound):
            await y.calls.wait("call_nothing", 1)


async def test_refusals_are_on_record_too(tmp_path: Path) -> None:
    async with yard(tmp_path) as y:
        await y.call("pets:nothing", {"text": "a"})
        page = await y.calls.page(CallFilter(error_code=ErrorCode.NOT_FOUND))
        assert [record.tool for record in page.items] == ["pets:nothing"]
