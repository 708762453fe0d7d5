"""The checker itself: silent on a good history, and loud on each kind of bad one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.durable.chaos.checker import RULES, check
from tests.durable.chaos.cluster import Blow
from tests.durable.chaos.effects import Effect
from tests.durable.chaos.evidence import Approval, Call, Event, Evidence, Job, Move
from tests.durable.chaos.history import History

SESSION_EVENTS = [
    Event(seq=1, kind="tool", type="tool_call", data={"id": "c3", "name": "ask_user"}),
    Event(seq=2, kind="tool", type="tool_result", data={"toolCallId": "c3", "success": True}),
    Event(seq=3, kind="tool", type="tool_result", data={"tool_id": "x", "result": "inject-1"}),
    Event(seq=4, kind="status", type="chaos_done", data={"job": "j2"}),
]


def good() -> tuple[Evidence, History]:
    """A direct call, an approved and edited one, a client's call, a job of two steps, an injected event, a follower."""
    history = History()
    arguments = {"label": "a", "value": "1"}
    history.ask("submit", "a", tool="free:act", arguments=arguments).ok(call="c1", ends=[("COMPLETE", None)])
    asked = {"label": "b", "value": "1"}
    history.ask("submit", "b", tool="asked:act", arguments=asked).ok(call="c2", ends=[("COMPLETE", None)])
    history.ask("decide", "p1", decision="approve", reason="first").ok()
    history.ask("decide", "p1", decision="reject", reason="second").refused()
    history.ask("session", "s").ok(session="s1")
    client = history.ask("client_call", "k", behaviour="answer", beat=0.3)
    client.ok(call="c3", kept_beating=True)
    history.ask("respond", "c3", mark="said").ok()
    history.ask("inject", "inject-1", session="s1").ok(offset=3)
    history.ask("job", "j2", steps=2).ok()
    received = [(event.seq, event.type, {**event.data, "offset": event.seq}) for event in SESSION_EVENTS[1:]]
    history.ask("follow", "f", session="s1", after=1).ok(events=received)
    evidence = Evidence(
        calls={
            "c1": Call(id="c1", tool="free:act", state="COMPLETE", key="a", owner="n1", result="a=1"),
            "c2": Call(id="c2", tool="asked:act", state="COMPLETE", key="b", owner="n1", result="b=2"),
            "c3": Call(id="c3", tool="client:ask", state="COMPLETE", execution="client", session="s1", result="said"),
        },
        jobs={
            "j1": Job(id="j1", kind="call", state="done"),
            "j2": Job(id="j2", kind="chaos", state="done", takeovers=1, steps=['"0"', '"1"']),
        },
        approvals={"p1": Approval(id="p1", call="c2", decision="approve", reason="first", edited={"value": "2"})},
        sessions={"s1": 4},
        events={"s1": list(SESSION_EVENTS)},
        moves=[
            *(Move("calls", call, None, "PENDING") for call in ("c1", "c2", "c3")),
            *(Move("calls", call, "PENDING", "PROCESSING") for call in ("c1", "c2", "c3")),
            *(Move("calls", call, "PROCESSING", "COMPLETE") for call in ("c1", "c2", "c3")),
            Move("approvals", "p1", None, None),
            Move("approvals", "p1", None, "approve"),
            Move("jobs", "j2", None, "running", 1),
            Move("jobs", "j2", "running", "running", 2),
            Move("jobs", "j2", "running", "done", 2),
        ],
        effects=[
            Effect("act", "a", "1", 7, "c1"),
            Effect("act", "b", "2", 7, "c2"),
            Effect("step", "j2", "0", 7),
            Effect("step", "j2", "0", 8),
            Effect("step", "j2", "1", 8),
        ],
        blows=[Blow(0.0, "kill", "n2")],
    )  # fmt: skip
    return evidence, history


def test_a_good_run_has_no_violations() -> None:
    assert check(*good()) == []


def _call(evidence: Evidence, call_id: str, **changes: Any) -> None:
    kept = evidence.calls[call_id]
    fields = {name: getattr(kept, name) for name in Call.__dataclass_fields__}
    evidence.calls[call_id] = Call(**{**fields, **changes})


def _drop_event(evidence: Evidence, history: History) -> None:
    del evidence.events["s1"][1]


def _renumber_event(evidence: Evidence, history: History) -> None:
    evidence.events["s1"][2] = Event(seq=2, kind="tool", type="tool_result", data=SESSION_EVENTS[2].data)


def _end_twice(evidence: Evidence, history: History) -> None:
    evidence.events["s1"].append(Event(seq=5, kind="tool", type="tool_result", data={"toolCallId": "c3"}))
    evidence.sessions["s1"] = 5


def _follower_misses_one(evidence: Evidence, history: History) -> None:
    del next(history.of("follow")).seen["events"][1]


def _follower_sees_another(evidence: Evidence, history: History) -> None:
    next(history.of("follow")).seen["events"][0] = (2, "tool_result", {"toolCallId": "c9"})


def _follower_sees_one_twice(evidence: Evidence, history: History) -> None:
    events = next(history.of("follow")).seen["events"]
    events.append(events[-1])


def _happen_twice(evidence: Evidence, history: History) -> None:
    evidence.effects.append(Effect("act", "a", "1", 8, "c1"))


def _never_happen(evidence: Evidence, history: History) -> None:
    del evidence.effects[0]


def _happen_unrecorded(evidence: Evidence, history: History) -> None:
    evidence.effects.append(Effect("act", "zzz", "1", 8, "c99"))


def _happen_after_rejection(evidence: Evidence, history: History) -> None:
    _call(evidence, "c2", state="ERROR", code="rejected")
    evidence.approvals["p1"] = Approval(id="p1", call="c2", decision="reject", reason="second")


def _run_what_was_asked_not_what_was_approved(evidence: Evidence, history: History) -> None:
    evidence.effects[1] = Effect("act", "b", "1", 7, "c2")


def _decide_again(evidence: Evidence, history: History) -> None:
    evidence.moves.append(Move("approvals", "p1", "approve", "reject"))


def _two_winners(evidence: Evidence, history: History) -> None:
    history.ask("decide", "p1", decision="reject", reason="third").ok()


def _loser_won(evidence: Evidence, history: History) -> None:
    history.ask("decide", "p1", decision="approve", reason="first").refused()


def _still_open(evidence: Evidence, history: History) -> None:
    _call(evidence, "c1", state="PROCESSING")


def _job_still_open(evidence: Evidence, history: History) -> None:
    evidence.jobs["j1"] = Job(id="j1", kind="call", state="waiting")


def _undecided(evidence: Evidence, history: History) -> None:
    evidence.approvals["p2"] = Approval(id="p2", call="c1", decision=None)


def _back_from_the_end(evidence: Evidence, history: History) -> None:
    evidence.moves.append(Move("calls", "c1", "COMPLETE", "ERROR"))


def _complete_without_processing(evidence: Evidence, history: History) -> None:
    evidence.moves.append(Move("calls", "c1", "PENDING", "COMPLETE"))


def _job_goes_on_after_its_end(evidence: Evidence, history: History) -> None:
    evidence.moves.append(Move("jobs", "j2", "done", "running", 3))


def _epoch_falls(evidence: Evidence, history: History) -> None:
    evidence.moves.insert(-1, Move("jobs", "j2", "running", "running", 1))


def _cancelled_without_epoch(evidence: Evidence, history: History) -> None:
    evidence.moves.append(Move("jobs", "j3", None, "running", 1))
    evidence.moves.append(Move("jobs", "j3", "running", "cancelled", 1))


def _lose_a_call(evidence: Evidence, history: History) -> None:
    history.ask("submit", "lost", tool="free:act", arguments={}).ok(call="c77", ends=[])


def _answer_otherwise(evidence: Evidence, history: History) -> None:
    _call(evidence, "c1", state="ERROR", code="interrupted", owner="n2")


def _lose_a_session(evidence: Evidence, history: History) -> None:
    history.ask("session", "t").ok(session="s2")


def _lose_an_injection(evidence: Evidence, history: History) -> None:
    history.ask("inject", "inject-2", session="s1").ok(offset=4)


def _inject_twice(evidence: Evidence, history: History) -> None:
    evidence.events["s1"].append(Event(seq=5, kind="tool", type="tool_result", data={"result": "inject-1"}))
    evidence.sessions["s1"] = 5


def _lose_a_response(evidence: Evidence, history: History) -> None:
    _call(evidence, "c3", state="ERROR", code="cancelled")


def _two_calls_for_one_key(evidence: Evidence, history: History) -> None:
    evidence.calls["c4"] = Call(id="c4", tool="free:act", state="COMPLETE", key="a")


def _abandon_a_beating_client(evidence: Evidence, history: History) -> None:
    _call(evidence, "c3", state="ERROR", code="abandoned")


def _complete_for_a_silent_client(evidence: Evidence, history: History) -> None:
    next(history.of("client_call")).given["behaviour"] = "silent"


def _interrupt_on_a_living_node(evidence: Evidence, history: History) -> None:
    _call(evidence, "c1", state="ERROR", code="interrupted", owner="n1")


def _run_steps_again(evidence: Evidence, history: History) -> None:
    evidence.effects.append(Effect("step", "j2", "1", 9))


def _end_a_job_in_error(evidence: Evidence, history: History) -> None:
    evidence.jobs["j2"] = Job(id="j2", kind="chaos", state="error", takeovers=1)


def _skip_a_step(evidence: Evidence, history: History) -> None:
    evidence.effects.pop()


def _forget_a_step(evidence: Evidence, history: History) -> None:
    evidence.jobs["j2"] = Job(id="j2", kind="chaos", state="done", takeovers=1, steps=['"0"'])


def _lose_a_job(evidence: Evidence, history: History) -> None:
    del evidence.jobs["j2"]


def _done_twice(evidence: Evidence, history: History) -> None:
    evidence.events["s1"].append(Event(seq=5, kind="status", type="chaos_done", data={"job": "j2"}))
    evidence.sessions["s1"] = 5


def _damage(evidence: Evidence, history: History) -> None:
    evidence.damage.append("row 7 missing from index")


BAD: dict[str, Sequence[Callable[[Evidence, History], None]]] = {
    "everything_ends": (_still_open, _job_still_open, _undecided),
    "only_legal_moves": (_back_from_the_end, _complete_without_processing, _job_goes_on_after_its_end, _decide_again),
    "an_epoch_only_grows_and_cancelling_raises_it": (_epoch_falls, _cancelled_without_epoch),
    "events_are_numbered_without_gaps": (_drop_event, _renumber_event),
    "a_call_of_a_session_has_one_beginning_and_one_end": (_end_twice,),
    "followers_received_the_log": (_follower_misses_one, _follower_sees_another, _follower_sees_one_twice),
    "nothing_happens_twice": (_happen_twice,),
    "what_completed_has_happened": (_never_happen, _happen_after_rejection),
    "effects_are_on_record_before_they_happen": (_happen_unrecorded,),
    "one_winner_per_decision": (_two_winners, _loser_won),
    "what_ran_is_what_was_approved": (_run_what_was_asked_not_what_was_approved, _happen_after_rejection),
    "nothing_acknowledged_is_lost": (
        _lose_a_call,
        _answer_otherwise,
        _lose_a_session,
        _lose_an_injection,
        _lose_a_response,
    ),
    "nothing_is_written_down_twice": (
        _two_calls_for_one_key,
        _inject_twice,
    ),
    "nobody_who_kept_beating_is_abandoned": (_abandon_a_beating_client,),
    "whoever_fell_silent_is_abandoned": (_complete_for_a_silent_client,),
    "only_the_calls_of_struck_nodes_are_interrupted": (_interrupt_on_a_living_node,),
    "steps_run_again_only_after_a_takeover": (
        _end_a_job_in_error,
        _run_steps_again,
        _skip_a_step,
        _forget_a_step,
        _lose_a_job,
    ),
    "a_job_says_once_that_it_ended": (_done_twice,),
    "nothing_was_damaged": (_damage,),
}


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [pytest.param(rule, spoil, id=f"{rule}-{spoil.__name__[1:]}") for rule, bad in BAD.items() for spoil in bad],
)
def test_each_rule_sees_what_breaks_it(rule: str, spoil: Callable[[Evidence, History], None]) -> None:
    evidence, history = good()
    spoil(evidence, history)
    assert rule in {violation.rule for violation in check(evidence, history)}


def test_every_rule_is_tried() -> None:
    assert set(BAD) == {rule.__name__ for rule in RULES}
