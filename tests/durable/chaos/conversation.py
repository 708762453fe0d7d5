"""One session under fire: calls that its client executes, jobs, injected events, and followers that hop from node to
node."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import aiohttp
import orjson

from tests.durable.chaos.client import OutOfPatienceError
from tests.durable.chaos.clients import Clients
from tests.durable.chaos.history import Operation
from tests.durable.chaos.node import SILENCE
from tests.durable.chaos.yard import FINAL

SESSION_PATIENCE = 60.0
BEAT = 0.25
ENDED = ("done", "error", "cancelled")
TOOL = "ask_user"
_DEFINITION = {
    "name": TOOL,
    "description": "Asks the user.",
    "requestArgs": {"properties": {"label": {"type": "string"}}, "required": ["label"]},
    "responseShape": {"properties": {"said": {"type": "string"}}},
}


async def conversation(clients: Clients) -> None:
    """Everything that happens in a session at once; followers must see all of it, in the log's order."""
    session = await create(clients)
    if session is None:
        return
    target: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    followers = [asyncio.create_task(_follow(clients, session, target)) for _ in range(clients.dice.choice((1, 2)))]
    try:
        await asyncio.gather(
            *(_job(clients, session) for _ in range(clients.dice.choice((1, 2, 3)))),
            *(_client_call(clients, session) for _ in range(clients.dice.choice((0, 1, 2)))),
            *(_inject(clients, session) for _ in range(clients.dice.choice((1, 3)))),
        )
        with suppress(OutOfPatienceError):
            answer = await clients.client.ask("GET", f"/v1/sessions/{session}", key=clients.access.caller)
            if answer.ok:
                target.set_result(int(answer.body["events"]))
    finally:
        if not target.done():
            target.cancel()
        await asyncio.gather(*followers)


async def job_alone(clients: Clients) -> None:
    """A job in a session of its own that nobody follows."""
    await _job(clients, clients.label("session"))


async def create(clients: Clients) -> str | None:
    body = {"customizations": {"extensions": {"tools": {TOOL: _DEFINITION}}}}
    making = clients.history.ask("session", clients.label("session"))
    try:
        while True:
            answer = await clients.client.ask(
                "POST", "/v1/sessions", key=clients.access.caller, body=body,
                headers={"Idempotency-Key": clients.label("key")},
            )  # fmt: skip
            if answer.status != 409:  # else the first try is still under way, on a node that may be dead: make another
                break
    except OutOfPatienceError as error:
        making.unknown(error=str(error))
        return None
    if not answer.ok:
        making.refused(status=answer.status, body=answer.body)
        return None
    session = str(answer.body["sessionId"])
    making.ok(session=session)
    return session


async def _job(clients: Clients, session: str) -> None:
    """A third is woken, a third waits until its time is over or does not wait, a seventh is cancelled."""
    dice = clients.dice
    job = clients.label("job")
    steps = 8
    given = {
        "session": session,
        "steps": steps,
        "seconds": round(dice.uniform(0.01, 0.15), 3),
        "waits": dice.random() < 0.5,
    }
    wakes, cancels, again = dice.random() < 0.7, dice.random() < 1 / 7, dice.random() < 0.3
    asked = clients.history.ask("job", job, **given)
    try:
        for _ in range(2 if again else 1):
            await clients.client.ask("POST", f"/chaos/jobs/{job}", key=clients.access.caller, body=given)
        asked.ok()
        await asyncio.sleep(dice.uniform(0, 1.5))
        if cancels:
            await clients.client.ask("POST", f"/chaos/jobs/{job}/cancel", key=clients.access.caller)
        elif wakes:
            await clients.client.ask("POST", f"/chaos/jobs/{job}/wake", key=clients.access.caller)
        await until_ended(clients, job)
    except OutOfPatienceError as error:
        asked.seen["error"] = str(error)


async def until_ended(clients: Clients, job: str) -> None:
    until = time.monotonic() + SESSION_PATIENCE
    while time.monotonic() < until:
        answer = await clients.client.ask("GET", f"/chaos/jobs/{job}", key=clients.access.caller)
        if answer.body["state"] in ENDED:
            return
        await asyncio.sleep(0.15)


async def _inject(clients: Clients, session: str) -> None:
    """The same event is sent twice now and then; both answers must name the same place."""
    label = clients.label("inject")
    body = {"tool_id": "injected:statement", "arguments": {}, "result": label, "idempotency_key": label}
    await asyncio.sleep(clients.dice.uniform(0, 2))
    for _ in range(clients.dice.choice((1, 2))):
        inject = clients.history.ask("inject", label, session=session)
        try:
            answer = await clients.client.ask(
                "POST", f"/v1/sessions/{session}/tool_events", key=clients.access.caller, body=body
            )
        except OutOfPatienceError as error:
            inject.unknown(error=str(error))
            continue
        if answer.ok:
            inject.ok(offset=answer.body["offset"])
        else:
            inject.refused(status=answer.status, body=answer.body)


async def _client_call(clients: Clients, session: str) -> None:
    dice = clients.dice
    label = clients.label("client")
    behaviour = dice.choice(("answer", "answer", "answer", "fail", "silent", "ignore"))
    story = clients.history.ask("client_call", label, session=session, behaviour=behaviour, beat=BEAT)
    try:
        call = await ask_client(clients, session, label, story)
        if call is None:
            return
        if behaviour != "ignore" and await picked_up(clients, session, call):
            await _work(clients, session, call, story)
        await _until_call_ended(clients, call)
    except OutOfPatienceError as error:
        story.unknown(error=str(error))


async def _until_call_ended(clients: Clients, call: str) -> None:
    until = time.monotonic() + SESSION_PATIENCE
    while time.monotonic() < until:
        answer = await clients.client.ask("GET", f"/v1/calls/{call}", key=clients.access.caller)
        if answer.ok and answer.body["state"] in FINAL:
            return
        await asyncio.sleep(0.2)


async def ask_client(clients: Clients, session: str, label: str, story: Operation) -> str | None:
    until = time.monotonic() + SESSION_PATIENCE
    while time.monotonic() < until:
        answer = await clients.client.ask(
            "POST", f"/v1/sessions/{session}/tools/{TOOL}/call?wait=0", key=clients.access.caller,
            body={"arguments": {"label": label}}, headers={"Idempotency-Key": label},
        )  # fmt: skip
        if answer.ok:
            story.seen["call"] = str(answer.body["id"])
            return str(answer.body["id"])
        if answer.status != 409:
            story.refused(status=answer.status, body=answer.body)
            return None
        await asyncio.sleep(0.2)
    return None


async def picked_up(clients: Clients, session: str, call: str) -> bool:
    """Found by long poll. False when it ended before."""
    for _ in range(20):
        answer = await clients.client.ask("GET", f"/v1/tools/requests/{session}?wait=0.5", key=clients.access.caller)
        if answer.ok and any(request["requestId"] == call for request in answer.body):
            return True
        await asyncio.sleep(0.1)
    return False


async def _work(clients: Clients, session: str, call: str, story: Operation) -> None:
    """Beats, then the end that the story wants. `kept_beating`: no silence as long as the time-out, up to the end."""
    beats = clients.dice.choice((2, 6, 26))
    last, longest = time.monotonic(), 0.0
    first = True
    for _ in range(beats):
        sent = time.monotonic()
        if not await beat(clients, session, call):
            break
        if not first:
            longest = max(longest, time.monotonic() - last)
        first = False
        last = sent
        await asyncio.sleep(BEAT)
    ends = {"answer": respond, "fail": _fail}.get(story.given["behaviour"])
    if ends is not None:
        await ends(clients, session, call)
        longest = max(longest, time.monotonic() - last)
    kept_beating = not first and ends is not None and longest < SILENCE
    story.ok(longest_silence=round(longest, 3), kept_beating=kept_beating)


async def beat(clients: Clients, session: str, call: str) -> bool:
    answer = await clients.client.ask(
        "POST", f"/v1/tools/request/{session}/{call}/heartbeat", key=clients.access.caller,
        body={"state": "PROCESSING", "heartbeat": int(time.time() * 1000)}, one_answer=0.8,
    )  # fmt: skip
    return answer.ok


async def respond(clients: Clients, session: str, call: str) -> None:
    mark = clients.label("said")
    body = {"response": {"said": mark, "sessionId": session, "state": "COMPLETE"}}
    for _ in range(clients.dice.choice((1, 1, 2))):  # a repeated response must be told the same
        response = clients.history.ask("respond", call, mark=mark)
        try:
            answer = await clients.client.ask(
                "POST", f"/v1/tools/response/{session}/{call}", key=clients.access.caller, body=body, one_answer=1.5
            )
        except OutOfPatienceError as error:
            response.unknown(error=str(error))
            continue
        if answer.ok:
            response.ok()
        else:
            response.refused(status=answer.status, body=answer.body)


async def _fail(clients: Clients, session: str, call: str) -> None:
    with suppress(OutOfPatienceError):
        await clients.client.ask(
            "POST", f"/v1/tools/request/{session}/{call}/heartbeat", key=clients.access.caller,
            body={"state": "ERROR", "error": "the user left"},
        )  # fmt: skip


async def _follow(clients: Clients, session: str, target: asyncio.Future[int]) -> None:
    """Reads a while on one node, goes on at another, until the last event of the session was received."""
    events: list[tuple[int, str, dict[str, Any]]] = []
    follow = clients.history.ask("follow", clients.label("follower"), session=session, after=0)
    follow.seen["events"] = events
    give_up = time.monotonic() + 2 * SESSION_PATIENCE
    while time.monotonic() < give_up and not target.cancelled():
        if target.done() and (events[-1][0] if events else 0) >= target.result():
            follow.ok(target=target.result())
            return
        node = clients.client.any_node()
        with suppress(aiohttp.ClientError, OSError, TimeoutError):
            await _read_a_while(clients, f"{node}/v1/sessions/{session}/events", events)
        await asyncio.sleep(0.05)
    follow.unknown()


async def _read_a_while(clients: Clients, url: str, events: list[tuple[int, str, dict[str, Any]]]) -> None:
    headers = {"Last-Event-ID": str(events[-1][0])} if events else {}
    async with asyncio.timeout(clients.dice.uniform(0.2, 2.0)):
        async with clients.client.stream(url, key=clients.access.caller, headers=headers) as response:
            if response.status != 200:
                return
            number = 0
            async for line in response.content:
                if line.startswith(b"id: "):
                    number = int(line[4:])
                elif line.startswith(b"data: ") and number:
                    data = orjson.loads(line[6:])
                    events.append((number, data["type"], data))
                    number = 0
