"""`toolyard sessions`: conversations and their numbered events."""

from __future__ import annotations

import sys
from typing import Annotated, TypeAlias

import orjson
import typer

from toolyard.core.json import JsonObject
from toolyard.faces.cli.events import events_in
from toolyard.faces.cli.options import DEFAULT_URL, AsJson, Limit, Url
from toolyard.faces.cli.output import note, print_fields, print_json, print_table, texts
from toolyard.faces.cli.yard import Yard, segment, with_yard

group = typer.Typer(no_args_is_help=True, help="Sessions: list and show them, read and follow their events.")

SessionId: TypeAlias = Annotated[str, typer.Argument(help="The session's id.")]


@group.command("list")
def list_sessions(*, limit: Limit = 50, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List sessions, newest first."""
    found = with_yard(url, lambda yard: yard.pages("/v1/sessions", {}, limit))
    if as_json:
        print_json(found)
        return
    rows = [
        (item["id"], item["created"], item["principal"], item.get("agent_id"), item["events"], texts(item.get("tools")))
        for item in found
    ]
    columns = ("session", "begun", "owner", "agent", "events", "client tools")
    print_table(columns, rows, empty="There are no sessions.")


@group.command("show")
def show(session: SessionId, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show one session."""
    found = with_yard(url, lambda yard: yard.get(_path(session)))
    if as_json:
        print_json(found)
    else:
        print_fields(found)


@group.command("events")
def events(
    session: SessionId,
    *,
    after: Annotated[int, typer.Option(min=0, help="Only events after this offset.")] = 0,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with each new event.")] = False,
    limit: Limit = 1000,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Print a session's events, oldest first; with --json one JSON object in each line."""

    async def body(yard: Yard) -> None:
        path = f"{_path(session)}/events"
        if not follow:
            for event in await yard.pages(path, {"after": after}, limit):
                _print(event, as_json=as_json)
            return
        async with yard.stream(path, {"after": after}, accept="text/event-stream") as chunks:
            async for event in events_in(chunks):
                _print(event, as_json=as_json)

    try:
        with_yard(url, body)
    except KeyboardInterrupt:
        note("")


def _print(event: JsonObject, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(orjson.dumps(event).decode() + "\n")
    else:
        told = {name: value for name, value in event.items() if name not in _SHOWN}
        line = f"{event['offset']}\t{event['at']}\t{event['kind']}\t{event['type']}\t{orjson.dumps(told).decode()}"
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


_SHOWN = frozenset({"offset", "at", "kind", "type", "session_id"})


def _path(session: str) -> str:
    return f"/v1/sessions/{segment(session)}"
