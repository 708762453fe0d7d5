"""The lifecycle of a call, and what comes back."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from toolyard.core.call import TRANSITIONS, CallFailure, CallRequest, CallState, Origin, ToolResult, may_follow
from toolyard.core.errors import CallError, ErrorCode, Unreachable
from toolyard.core.principal import LOCAL_OPERATOR

P, R, C, E = CallState.PENDING, CallState.PROCESSING, CallState.COMPLETE, CallState.ERROR


def test_only_the_legal_moves_are_possible() -> None:
    legal = {(before, after) for before, after in itertools.product(CallState, repeat=2) if may_follow(before, after)}
    assert legal == {(P, R), (P, E), (R, C), (R, E)}


@given(st.lists(st.sampled_from(CallState), max_size=8))
def test_whatever_is_tried_a_call_ends_once_and_stays_ended(attempts: list[CallState]) -> None:
    state, history = P, [P]
    for wanted in attempts:
        if may_follow(state, wanted):
            state = wanted
            history.append(state)
    assert sum(step.is_final for step in history) <= 1
    assert not any(step.is_final for step in history[:-1])
    assert len(history) <= 3


def test_every_open_state_can_still_fail_and_final_ones_lead_nowhere() -> None:
    assert [state for state in CallState if not state.is_final] == [P, R]
    assert all(may_follow(state, E) for state in (P, R))
    assert [TRANSITIONS[state] for state in (C, E)] == [frozenset(), frozenset()]


def test_a_request_brings_its_own_id() -> None:
    first, second = (CallRequest("crm:search", {}, LOCAL_OPERATOR, Origin.CLI) for _ in range(2))
    assert first.call_id.startswith("call_")
    assert first.call_id != second.call_id


def test_a_value_is_text_and_structured_and_a_string_is_only_text() -> None:
    value = ToolResult.of_value({"pets": [1, 2]}, details={"status": 200})
    assert value == ToolResult(
        content=({"type": "text", "text": '{"pets":[1,2]}'},),
        structured={"pets": [1, 2]},
        has_structured=True,
        details={"status": 200},
    )
    assert ToolResult.of_value("plain") == ToolResult(
        content=({"type": "text", "text": "plain"},), structured="plain", has_structured=False
    )
    assert ToolResult.of_value(None) == ToolResult(
        content=({"type": "text", "text": "null"},), structured=None, has_structured=True
    )


def test_the_text_of_a_result_is_its_text_blocks() -> None:
    result = ToolResult(
        content=({"type": "text", "text": "a"}, {"type": "image", "data": ""}, {"type": "text", "text": "b"})
    )
    assert result.text == "a\nb"
    assert ToolResult.of_text("no", is_error=True) == ToolResult(
        content=({"type": "text", "text": "no"},), is_error=True
    )


def test_a_failure_tells_a_model_only_error_code_and_suggestion() -> None:
    failure = CallFailure.of(CallError(ErrorCode.TIMEOUT, "crm:search took over 30 s.", suggestion="Ask for less."))
    assert failure.to_wire() == {
        "error": "crm:search took over 30 s.", "code": "timeout", "suggestion": "Ask for less.",
    }  # fmt: skip
    assert failure.to_text() == "crm:search took over 30 s. Ask for less."
    bare = CallFailure.of(Unreachable("crm is down."))
    assert (bare.to_wire(), bare.to_text()) == ({"error": "crm is down.", "code": "upstream"}, "crm is down.")
