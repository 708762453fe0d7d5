"""Seeded clients. Each scenario is one client's story; it asks any node, and writes down what it was told."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Any

from tests.durable.chaos.client import Client, OutOfPatienceError
from tests.durable.chaos.history import History, Operation
from tests.durable.chaos.yard import FINAL, Access

CALL_PATIENCE = 40.0
"""Seconds until a call must have ended."""
LOST_AFTER = 3.0
"""Seconds after which a call that was acknowledged and is not found is given up; the checker reports it."""


@dataclass(slots=True)
class Clients:
    """What every scenario needs."""

    client: Client
    access: Access
    history: History
    dice: random.Random

    def label(self, kind: str) -> str:
        return f"{kind}-{self.dice.getrandbits(48):012x}"


async def direct_call(clients: Clients) -> None:
    """A call with side effects; sometimes two clients send the very same one to different nodes."""
    dice = clients.dice
    label = clients.label("call")
    tool = f"free:{dice.choice(('act', 'act', 'put'))}"
    arguments = {"label": label, "value": f"v{dice.randrange(1000)}", "seconds": round(dice.uniform(0, 0.3), 3)}
    senders = 2 if dice.random() < 0.3 else 1
    await asyncio.gather(*(submit_and_follow(clients, tool, label, arguments) for _ in range(senders)))


async def cancelled_call(clients: Clients) -> None:
    """Cancelled while it runs, from whichever node is asked."""
    dice = clients.dice
    label = clients.label("cancel")
    arguments = {"label": label, "value": "slow", "seconds": round(dice.uniform(0.3, 1.5), 3)}
    submit = clients.history.ask("submit", label, tool="free:act", arguments=arguments)
    call_id = await submit_call(clients, submit, wait=0)
    if call_id is None:
        return
    await asyncio.sleep(dice.uniform(0, 0.6))
    cancel = clients.history.ask("cancel", call_id)
    try:
        answer = await clients.client.ask("POST", f"/v1/calls/{call_id}/cancel", key=clients.access.caller)
        cancel.ok(status=answer.status, body=answer.body)
    except OutOfPatienceError as error:
        cancel.unknown(error=str(error))
    await follow_to_the_end(clients, submit, call_id)


async def submit_and_follow(clients: Clients, tool: str, label: str, arguments: dict[str, Any]) -> None:
    submit = clients.history.ask("submit", label, tool=tool, arguments=arguments)
    call_id = await submit_call(clients, submit, wait=clients.dice.choice((0, 2)))
    if call_id is not None:
        await follow_to_the_end(clients, submit, call_id)


async def submit_call(clients: Clients, submit: Operation, *, wait: float) -> str | None:
    """The call's id, asking with the same key until a node says so; None when it was refused or nobody answered."""
    tool, arguments = submit.given["tool"], submit.given["arguments"]
    until = time.monotonic() + CALL_PATIENCE
    said: Any = None
    while time.monotonic() < until:
        try:
            answer = await clients.client.ask(
                "POST", f"/v1/tools/{tool}/call?wait={wait}", key=clients.access.caller,
                body={"arguments": arguments}, headers={"Idempotency-Key": submit.label},
            )  # fmt: skip
        except OutOfPatienceError as error:
            said = str(error)
            break
        said = answer.body
        if answer.ok:
            call_id = str(answer.body["id"])
            submit.seen["call"] = call_id
            _note_end(submit, answer.body, (answer.body.get("error") or {}).get("code"))
            return call_id
        if answer.status != 409:
            submit.refused(status=answer.status, body=answer.body)
            return None
        await asyncio.sleep(0.2)  # another node is at it
    submit.unknown(error=str(said))
    return None


async def follow_to_the_end(clients: Clients, submit: Operation, call_id: str) -> None:
    """Ask until the call has ended, and note the end that was told."""
    until = time.monotonic() + CALL_PATIENCE
    lost_at = time.monotonic() + LOST_AFTER
    said: Any = None
    while time.monotonic() < until:
        try:
            answer = await clients.client.ask("GET", f"/v1/calls/{call_id}", key=clients.access.caller)
        except OutOfPatienceError as error:
            said = str(error)
            break
        said = answer.body
        if answer.ok and answer.body["state"] in FINAL:
            _note_end(submit, answer.body, answer.body["error_code"])
            submit.ok()
            return
        if answer.status == 404 and time.monotonic() > lost_at:
            break
        await asyncio.sleep(0.1)
    submit.unknown(error=str(said)[:300])


def _note_end(submit: Operation, told: dict[str, Any], code: str | None) -> None:
    """Each end that was told is kept: all must be the one on record."""
    if told["state"] in FINAL:
        submit.seen.setdefault("ends", []).append((told["state"], code))
