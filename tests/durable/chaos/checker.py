"""What must be true afterwards, whatever was killed. Knows the promises, and nothing of how they are kept."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.durable.chaos.effects import Effect
from tests.durable.chaos.evidence import Call, Event, Evidence
from tests.durable.chaos.history import History, Operation, Phase

FINAL = ("COMPLETE", "ERROR")
ENDED_JOB = ("done", "error", "cancelled")
LEGAL = {("PENDING", "PROCESSING"), ("PENDING", "ERROR"), ("PROCESSING", "COMPLETE"), ("PROCESSING", "ERROR")}
"""A row may also begin in any state: what needed no wait passes the first states in one transaction."""
MOST_TAKEOVERS = 5
"""A job that lost its node so often may be given up."""
NEVER_RAN = ("rejected", "approval_timeout", "denied", "not_found", "invalid_arguments")
ONCE = "act"
"""The tool that must not run twice."""


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    what: str


Rule = Callable[[Evidence, History], Iterator[str]]


def check(evidence: Evidence, history: History) -> list[Violation]:
    """Every rule, and what breaks it."""
    return [Violation(rule.__name__, what) for rule in RULES for what in rule(evidence, history)]


def everything_ends(evidence: Evidence, history: History) -> Iterator[str]:
    for call in evidence.calls.values():
        if call.state not in FINAL:
            yield f"call {call.id} ({call.tool}) is still {call.state}"
    for job in evidence.jobs.values():
        if job.state not in ENDED_JOB:
            yield f"job {job.id} ({job.kind}) is still {job.state}"
    for approval in evidence.approvals.values():
        call = evidence.calls.get(approval.call)
        if approval.decision is None and (call is None or call.code != "cancelled"):
            yield f"approval {approval.id} was never decided"


def only_legal_moves(evidence: Evidence, history: History) -> Iterator[str]:
    for move in evidence.moves:
        if move.what == "calls" and move.old is not None and (move.old, move.new) not in LEGAL:
            yield f"call {move.id} went from {move.old} to {move.new}"
        if move.what == "jobs" and move.old in ENDED_JOB:
            yield f"job {move.id} went on to {move.new} after {move.old}"
    decided = Counter(move.id for move in evidence.moves if move.what == "approvals" and move.new is not None)
    for approval, times in decided.items():
        if times > 1:
            yield f"approval {approval} was decided {times} times"


def an_epoch_only_grows_and_cancelling_raises_it(evidence: Evidence, history: History) -> Iterator[str]:
    epochs: dict[str, int] = {}
    for move in evidence.moves:
        if move.what != "jobs" or move.epoch is None:
            continue
        before = epochs.get(move.id)
        if before is not None and move.epoch < before:
            yield f"job {move.id}: epoch {move.epoch} after {before}"
        if before is not None and move.new == "cancelled" and move.epoch == before:
            yield f"job {move.id} was cancelled without a new epoch"
        epochs[move.id] = move.epoch


def events_are_numbered_without_gaps(evidence: Evidence, history: History) -> Iterator[str]:
    for session, last in evidence.sessions.items():
        numbers = [event.seq for event in evidence.events.get(session, [])]
        if numbers != list(range(1, last + 1)):
            yield f"session {session} counts to {last}, and its events are {_brief(numbers)}"
    for session in evidence.events.keys() - evidence.sessions.keys():
        yield f"session {session} has events and no row"


def a_call_of_a_session_has_one_beginning_and_one_end(evidence: Evidence, history: History) -> Iterator[str]:
    begun: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    for session, events in evidence.events.items():
        for event in events:
            call = _call_of(event)
            if event.kind != "tool" or call is None or call not in evidence.calls:
                continue
            if event.type == "tool_call":
                begun[call] += 1
                if ended[call]:
                    yield f"session {session}: call {call} begins after its end"
            elif event.type == "tool_result":
                ended[call] += 1
    for call in evidence.calls.values():
        if call.session is None or call.state not in FINAL or not begun[call.id]:
            continue
        if (begun[call.id], ended[call.id]) != (1, 1):
            yield f"call {call.id} of a session has {begun[call.id]} beginnings and {ended[call.id]} ends"


def followers_received_the_log(evidence: Evidence, history: History) -> Iterator[str]:
    for follower in history.of("follow"):
        session, after = follower.given["session"], follower.given["after"]
        log = [(event.seq, event.type, event.data) for event in evidence.events.get(session, []) if event.seq > after]
        received = [(seq, type_, data) for seq, type_, data in follower.seen.get("events", [])]
        for n, (got, kept) in enumerate(zip(received, log, strict=False)):
            if (got[0], got[1]) != (kept[0], kept[1]) or not _agrees(got[2], kept[2]):
                yield f"follower {follower.label}: element {n} is {_brief(got)}, the log has {_brief(kept)}"
                break
        if len(received) > len(log):
            yield f"follower {follower.label} received {len(received)} events, the log has {len(log)}"
        if follower.phase is Phase.OK and len(received) < len(log):
            yield f"follower {follower.label} received {len(received)} of {len(log)} events"


def nothing_happens_twice(evidence: Evidence, history: History) -> Iterator[str]:
    by_label: dict[str, list[Effect]] = defaultdict(list)
    for effect in evidence.effects:
        if effect.tool == ONCE:
            by_label[effect.label].append(effect)
    for label, happened in by_label.items():
        if len(happened) > 1:
            yield f"{label} happened {len(happened)} times, in processes {[effect.pid for effect in happened]}"


def what_completed_has_happened(evidence: Evidence, history: History) -> Iterator[str]:
    for submit, call in _submitted(evidence, history):
        if not call.tool.endswith((":act", ":put")):
            continue
        happened = evidence.effects_of(submit.label)
        if call.state == "COMPLETE" and not happened:
            yield f"{submit.label}: call {call.id} is COMPLETE, and nothing happened"
        if call.code in NEVER_RAN and happened:
            yield f"{submit.label}: call {call.id} ended {call.code}, and it happened all the same"
        if call.state == "COMPLETE" and happened and f"{submit.label}={happened[-1].value}" not in (call.result or ""):
            yield f"{submit.label}: call {call.id} recorded another result than the effect: {_brief(call.result)}"


def effects_are_on_record_before_they_happen(evidence: Evidence, history: History) -> Iterator[str]:
    begun = {move.id for move in evidence.moves if move.what == "calls" and move.new == "PROCESSING"}
    for effect in evidence.effects:
        if effect.call_id and effect.call_id not in begun:
            yield f"{effect.label} happened in call {effect.call_id}, which was never on record as PROCESSING"


def one_winner_per_decision(evidence: Evidence, history: History) -> Iterator[str]:
    for decide in history.of("decide", Phase.OK):
        approval = evidence.approvals.get(decide.label)
        if approval is None:
            yield f"the decision of {decide.label} was acknowledged, and the approval is gone"
        elif approval.reason != decide.given["reason"] or not _same_decision(
            approval.decision, decide.given["decision"]
        ):
            yield f"{decide.label}: {decide.given['reason']} was told that it won, the record says {approval.reason}"
    for decide in history.of("decide", Phase.REFUSED):
        approval = evidence.approvals.get(decide.label)
        if approval is not None and approval.reason == decide.given["reason"]:
            yield f"{decide.label}: {decide.given['reason']} was told that it lost, the record says it won"


def what_ran_is_what_was_approved(evidence: Evidence, history: History) -> Iterator[str]:
    approvals = {approval.call: approval for approval in evidence.approvals.values()}
    for submit, call in _submitted(evidence, history):
        if not call.tool.startswith("asked:"):
            continue
        approval = approvals.get(call.id)
        happened = evidence.effects_of(submit.label)
        if happened and (approval is None or not _same_decision(approval.decision, "approve")):
            yield f"{submit.label} happened without approval ({approval and approval.decision})"
        elif approval is not None:
            wanted = (approval.edited or submit.given["arguments"])["value"]
            for effect in happened:
                if effect.value != wanted:
                    yield f"{submit.label} ran with {effect.value!r}, approved was {wanted!r}"


def nothing_acknowledged_is_lost(evidence: Evidence, history: History) -> Iterator[str]:
    for submit in history.of("submit"):
        told = submit.seen.get("call")
        call = evidence.calls.get(told) if told else None
        if told and call is None:
            yield f"{submit.label} was told of call {told}, which is not on record"
        if call is None:
            continue
        for state, code in submit.seen.get("ends", []):
            if (call.state, call.code) != (state, code):
                yield f"{submit.label}: call {told} was answered as {state} {code}, and is {call.state} {call.code}"
    for session in history.of("session", Phase.OK):
        if session.seen["session"] not in evidence.sessions:
            yield f"session {session.seen['session']} was acknowledged and is gone"
    for inject in history.of("inject", Phase.OK):
        at = {event.seq: event for event in evidence.events.get(inject.given["session"], [])}
        event = at.get(inject.seen["offset"])
        if event is None or inject.label not in json.dumps(event.data):
            yield f"injected event {inject.label} is not at its offset {inject.seen['offset']}"
    for respond in history.of("respond", Phase.OK):
        call = evidence.calls.get(respond.label)
        if call is None or call.state != "COMPLETE" or respond.given["mark"] not in (call.result or ""):
            ended = call and (call.state, call.code)
            yield f"the response {respond.given['mark']} was accepted, and call {respond.label} is {ended}"


def nothing_is_written_down_twice(evidence: Evidence, history: History) -> Iterator[str]:
    keys = Counter(call.key for call in evidence.calls.values() if call.key)
    for key, times in keys.items():
        if times > 1:
            yield f"the idempotency key {key} made {times} calls"
    for inject in history.of("inject"):
        events = evidence.events.get(inject.given["session"], [])
        times = sum(1 for event in events if inject.label in json.dumps(event.data))
        if times > 1:
            yield f"the injected event {inject.label} is there {times} times"


def nobody_who_kept_beating_is_abandoned(evidence: Evidence, history: History) -> Iterator[str]:
    for client in history.of("client_call"):
        call = evidence.calls.get(client.seen.get("call", ""))
        if call is None or call.code != "abandoned" or not client.seen.get("kept_beating"):
            continue
        yield f"{client.label}: call {call.id} was abandoned although its client beat every {client.given['beat']} s"


def whoever_fell_silent_is_abandoned(evidence: Evidence, history: History) -> Iterator[str]:
    for client in history.of("client_call"):
        call = evidence.calls.get(client.seen.get("call", ""))
        if call is not None and client.given["behaviour"] == "silent" and call.state == "COMPLETE":
            yield f"{client.label}: call {call.id} is COMPLETE, and its client never answered"


def only_the_calls_of_struck_nodes_are_interrupted(evidence: Evidence, history: History) -> Iterator[str]:
    for call in evidence.calls.values():
        if call.code != "interrupted" or (call.owner is None and evidence.struck) or call.owner in evidence.struck:
            continue
        if any(not blow.node for blow in evidence.blows):
            continue  # a node that lost the database may have lost its lease
        yield f"call {call.id} was interrupted, and its node {call.owner} was never struck"


def steps_run_again_only_after_a_takeover(evidence: Evidence, history: History) -> Iterator[str]:
    for asked in history.of("job"):
        job = evidence.jobs.get(asked.label)
        if job is None:
            if asked.phase is Phase.OK:
                yield f"job {asked.label} was acknowledged and is gone"
            continue
        lines = [effect.value for effect in evidence.effects_of(job.id)]
        wanted = [str(n) for n in range(asked.given["steps"])]
        if job.state == "error" and job.takeovers < MOST_TAKEOVERS:
            yield f"job {job.id} ended in error"
        if job.state == "done" and list(dict.fromkeys(lines)) != wanted:
            yield f"job {job.id} is done, and its steps were {lines}"
        on_record = [step for step in job.steps if step.strip('"') in wanted]
        if job.state == "done" and len(on_record) != len(wanted):
            yield f"job {job.id} is done with the steps {on_record} on record"
        again = len(lines) - len(set(lines))
        outages = sum(1 for blow in evidence.blows if not blow.node)  # a node that lost it begins its run anew
        if again > job.takeovers + outages:
            yield f"job {job.id} ran {again} steps again after {job.takeovers} takeovers: {lines}"


def a_job_says_once_that_it_ended(evidence: Evidence, history: History) -> Iterator[str]:
    said: Counter[str] = Counter()
    for events in evidence.events.values():
        said.update(str(event.data["job"]) for event in events if event.type == "chaos_done")
    for job in evidence.jobs.values():
        if job.kind == "chaos" and said[job.id] != (1 if job.state == "done" else 0):
            yield f"job {job.id} is {job.state}, and said {said[job.id]} times that it is done"


def nothing_was_damaged(evidence: Evidence, history: History) -> Iterator[str]:
    yield from evidence.damage


RULES: Sequence[Rule] = (
    everything_ends,
    only_legal_moves,
    an_epoch_only_grows_and_cancelling_raises_it,
    events_are_numbered_without_gaps,
    a_call_of_a_session_has_one_beginning_and_one_end,
    followers_received_the_log,
    nothing_happens_twice,
    what_completed_has_happened,
    effects_are_on_record_before_they_happen,
    one_winner_per_decision,
    what_ran_is_what_was_approved,
    nothing_acknowledged_is_lost,
    nothing_is_written_down_twice,
    nobody_who_kept_beating_is_abandoned,
    whoever_fell_silent_is_abandoned,
    only_the_calls_of_struck_nodes_are_interrupted,
    steps_run_again_only_after_a_takeover,
    a_job_says_once_that_it_ended,
    nothing_was_damaged,
)


def _submitted(evidence: Evidence, history: History) -> Iterator[tuple[Operation, Call]]:
    """Submits whose call is on record, by the id they were told or by their key."""
    by_key = {call.key: call for call in evidence.calls.values() if call.key}
    for submit in history.of("submit"):
        call = evidence.calls.get(submit.seen.get("call", "")) or by_key.get(submit.label)
        if call is not None:
            yield submit, call


def _same_decision(kept: str | None, asked: str) -> bool:
    """`approved` is how a record may spell `approve`."""
    return kept is not None and kept.rstrip("ed") == asked.rstrip("ed")


def _agrees(received: Mapping[str, Any], kept: Mapping[str, Any]) -> bool:
    """The wire adds the envelope's fields; none of the log's may be missing or different."""
    return all(received.get(name) == value for name, value in kept.items())


def _call_of(event: Event) -> str | None:
    found = event.data.get("id") if event.type == "tool_call" else event.data.get("toolCallId")
    return found if isinstance(found, str) else None


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) < 160 else f"{text[:80]} ... {text[-60:]}"
