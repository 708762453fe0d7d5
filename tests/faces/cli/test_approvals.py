"""Deciding, and reading sessions, from a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from tests.faces.cli.conftest import Command
from tests.faces.cli.yard import RunningYard
from tests.requirements import requirement

TOOLYARD = str(Path(sys.executable).with_name("toolyard"))
TOOL = "functions:text_statistics"


@dataclass
class Asked:
    """A yard that asks about `TOOL`, and a key that may only call."""

    toolyard: Command
    client: httpx2.Client
    key: str

    def waiting(self, text: str = "one two") -> dict[str, Any]:
        """A call that waits, as its caller sees it."""
        answer = self.client.post(f"/v1/tools/{TOOL}/call?wait=0", json={"arguments": {"text": text}})
        assert answer.status_code == 202, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def ended(self, call: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"/v1/calls/{call['id']}?wait=10").json()
        return found


@pytest.fixture
def asked(toolyard: Command, demo_yard: RunningYard) -> Iterator[Asked]:
    made = toolyard("keys", "create", f"caller-{uuid.uuid4().hex[:8]}", "--scope", "call", "--json").json
    with httpx2.Client(base_url=demo_yard.url) as operator:
        operator.patch(f"/v1/tools/{TOOL}", json={"approval": "ask"}).raise_for_status()
        with httpx2.Client(base_url=demo_yard.url, headers={"authorization": f"Bearer {made['key']}"}) as client:
            yield Asked(toolyard, client, made["key"])
        operator.patch(f"/v1/tools/{TOOL}", json={"approval": None}).raise_for_status()


@requirement("approval.gate")
def test_what_waits_is_listed_with_its_origin_and_approved(asked: Asked) -> None:
    call = asked.waiting("seven")
    approval = call["waiting"]["id"]
    [line] = [line for line in asked.toolyard("approvals", "list").lines if line[0] == approval]
    shown = asked.toolyard("approvals", "show", approval, "--json").json
    approved = asked.toolyard("approvals", "approve", approval)

    assert line[1:4] == [TOOL, shown["principal"], "http"]
    assert line[4].endswith("left")
    assert orjson.loads(line[5]) == {"text": "seven"}
    assert (shown["state"], shown["origin"], shown["call_id"]) == ("pending", "http", call["id"])
    assert (approved.code, approved.err) == (0, f"Approved {TOOL}.\n")
    assert asked.ended(call)["state"] == "COMPLETE"
    decided = [
        item for item in asked.toolyard("approvals", "list", "--decided", "--json").json if item["id"] == approval
    ]
    assert [item["decision"] for item in decided] == ["approve"]


@requirement("approval.edit")
def test_a_call_is_approved_with_other_arguments_or_rejected_with_a_reason(asked: Asked) -> None:
    edited, rejected = asked.waiting("too long"), asked.waiting("no")
    wrong = asked.toolyard("approvals", "approve", edited["waiting"]["id"], "--data", '{"text": 5}')
    made = asked.toolyard("approvals", "approve", edited["waiting"]["id"], "--data", '{"text": "ok"}', "--json")
    refused = asked.toolyard("approvals", "reject", rejected["waiting"]["id"], "--reason", "Not today.")
    again = asked.toolyard("approvals", "approve", rejected["waiting"]["id"])

    assert wrong.code != 0
    assert made.json["edited_arguments"] == {"text": "ok"}
    assert asked.ended(edited)["state"] == "COMPLETE"
    assert refused.err == f"Rejected {TOOL}.\n"
    record = asked.ended(rejected)
    assert record["error_code"] == "rejected"
    assert "Not today." in record["error"]
    assert again.code != 0
    assert "already rejected" in again.err


def test_an_unknown_approval_is_not_found(toolyard: Command) -> None:
    for command in (["show", "appr_no"], ["approve", "appr_no"], ["reject", "appr_no"]):
        ended = toolyard("approvals", *command)
        assert (ended.code, ended.out) == (3, "")
        assert ended.err.startswith("toolyard: ")


def test_a_call_from_the_command_line_says_what_it_waits_for(asked: Asked, demo_yard: RunningYard) -> None:
    command = [TOOLYARD, "call", TOOL, "-a", "text=patient words", "--url", demo_yard.url]
    env = {**os.environ, "TOOLYARD_KEY": asked.key}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as calling:
        assert calling.stderr is not None
        told = calling.stderr.readline()
        approval = told.split("waits for the approval ")[1].split(".")[0]
        asked.toolyard("approvals", "approve", approval)
        out, _ = calling.communicate(timeout=20)

    assert f"/approvals/{approval}" in told
    assert (calling.returncode, orjson.loads(out)["words"]) == (0, 2)


def test_watching_prints_each_request_and_each_decision(asked: Asked, demo_yard: RunningYard) -> None:
    before = asked.waiting("before")
    command = [TOOLYARD, "approvals", "watch", "--json", "--url", demo_yard.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        seen = orjson.loads(watch.stdout.readline())
        later = asked.waiting("later")
        told = orjson.loads(watch.stdout.readline())
        asked.toolyard("approvals", "reject", before["waiting"]["id"])
        decided = orjson.loads(watch.stdout.readline())
        watch.send_signal(signal.SIGINT)
        watch.wait(10)
    asked.toolyard("approvals", "reject", later["waiting"]["id"])

    assert (seen["id"], seen["state"]) == (before["waiting"]["id"], "pending")
    assert (told["id"], told["state"]) == (later["waiting"]["id"], "pending")
    assert (decided["id"], decided["state"], decided["decision"]) == (before["waiting"]["id"], "decided", "reject")


@requirement("session.events")
def test_sessions_are_listed_and_their_events_read_and_followed(asked: Asked, demo_yard: RunningYard) -> None:
    session = asked.client.post("/v1/sessions", json={}).json()["sessionId"]
    for n in range(3):
        asked.client.post(f"/v1/sessions/{session}/tool_events", json={"tool_id": "injected:note", "result": n})
    listed = asked.toolyard("sessions", "list", "--json").json
    shown = asked.toolyard("sessions", "show", session, "--json", key=asked.key).json
    lines = asked.toolyard("sessions", "events", session, "--json").out.splitlines()
    rest = asked.toolyard("sessions", "events", session, "--after", "2").lines

    assert session in [item["id"] for item in listed]
    assert (shown["id"], shown["events"]) == (session, 3)
    assert [orjson.loads(line)["result"] for line in lines] == [0, 1, 2]
    assert [(line[0], line[2], line[3]) for line in rest] == [("3", "tool", "tool_result")]
    command = [
        TOOLYARD,
        "sessions",
        "events",
        session,
        "--follow",
        "--json",
        "--url",
        demo_yard.url,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        seen = [orjson.loads(following.stdout.readline())["offset"] for _ in range(3)]
        asked.client.post(f"/v1/sessions/{session}/tool_events", json={"tool_id": "injected:note", "result": "live"})
        live = orjson.loads(following.stdout.readline())
        following.send_signal(signal.SIGINT)
        following.wait(10)
    assert seen == [1, 2, 3]
    assert (live["offset"], live["result"]) == (4, "live")
