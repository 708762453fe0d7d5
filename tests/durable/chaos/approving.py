"""Calls that wait for somebody: approved, edited, rejected, fought over by two people, or left alone."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tests.durable.chaos.client import OutOfPatienceError
from tests.durable.chaos.clients import Clients, follow_to_the_end, submit_call
from tests.durable.chaos.node import APPROVAL_SECONDS


async def approved_call(clients: Clients) -> None:
    """The caller asks one node, the people who decide ask others."""
    dice = clients.dice
    label = clients.label("asked")
    tool = f"asked:{dice.choice(('act', 'act', 'put'))}"
    arguments = {"label": label, "value": "as asked", "seconds": dice.choice((0.0, 0.1, 1.0))}
    plan = dice.choice(("approve", "edit", "reject", "fight", "fight", "leave"))
    submit = clients.history.ask("submit", label, tool=tool, arguments=arguments)
    call_id = await submit_call(clients, submit, wait=0)
    if call_id is None:
        return
    if plan != "leave":
        approval = await waiting_for(clients, call_id)
        if approval is not None:
            await asyncio.sleep(dice.uniform(0, 1.0))
            await asyncio.gather(*(decide(clients, approval, way, arguments) for way in _ways(clients, plan)))
    await follow_to_the_end(clients, submit, call_id)


def _ways(clients: Clients, plan: str) -> list[str]:
    return clients.dice.sample(["approve", "edit", "reject"], 2) if plan == "fight" else [plan]


async def waiting_for(clients: Clients, call_id: str) -> str | None:
    """The approval of a call; None when none came up in the time that it may wait."""
    until = time.monotonic() + APPROVAL_SECONDS
    while time.monotonic() < until:
        try:
            answer = await clients.client.ask(
                "GET",
                "/v1/approvals?state=pending&limit=200",
                key=clients.access.approvers[0],
                patience=APPROVAL_SECONDS,
            )
        except OutOfPatienceError:
            return None
        if answer.ok:
            for item in answer.body["items"]:
                if item["call_id"] == call_id:
                    return str(item["id"])
        await asyncio.sleep(0.1)
    return None


async def decide(clients: Clients, approval: str, way: str, arguments: dict[str, Any]) -> None:
    """`reason` is unique, so that whoever decided is known from the record. Whoever lost an answer asks again, and
    learns from the refusal whether it was its own decision that stands."""
    mark = clients.label("because")
    body: dict[str, Any] = {"decision": "reject" if way == "reject" else "approve", "reason": mark}
    if way == "edit":
        body["arguments"] = {**arguments, "value": f"edited {mark}"}
    decision = clients.history.ask("decide", approval, **body)
    try:
        answer = await clients.client.ask(
            "POST", f"/v1/approvals/{approval}", key=clients.dice.choice(clients.access.approvers), body=body
        )
    except OutOfPatienceError as error:
        decision.unknown(error=str(error))
        return
    if answer.ok:
        decision.ok()
    elif answer.status == 409 and (answer.body.get("approval") or {}).get("reason") == mark:
        decision.ok(told="again")
    else:
        decision.refused(status=answer.status, body=answer.body)
