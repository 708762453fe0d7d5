"""`toolyard approvals`: what waits for a decision, and the decision."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, TypeAlias

import orjson
import typer

from toolyard.core.errors import NotFound
from toolyard.core.json import JsonObject
from toolyard.faces.cli.arguments import arguments_from
from toolyard.faces.cli.events import events_in
from toolyard.faces.cli.options import DEFAULT_URL, AsJson, Limit, Url
from toolyard.faces.cli.output import note, print_fields, print_json, print_table, print_text
from toolyard.faces.cli.yard import Yard, segment, with_yard

group = typer.Typer(no_args_is_help=True, help="Approvals: see what waits for a decision, and decide.")

ApprovalId: TypeAlias = Annotated[str, typer.Argument(help="The approval's id.")]
Reason: TypeAlias = Annotated[str | None, typer.Option("--reason", "-r", help="Told to whoever called the tool.")]


@group.command("list")
def list_approvals(
    *,
    decided: Annotated[bool, typer.Option("--decided", help="Those that were decided, newest first.")] = False,
    limit: Limit = 50,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List what waits for a decision, the longest waiting first."""
    wanted = {"state": "decided" if decided else "pending"}
    found = with_yard(url, lambda yard: yard.pages("/v1/approvals", wanted, limit))
    if as_json:
        print_json(found)
        return
    columns = ("approval", "tool", "caller", "origin", "decision" if decided else "time left", "arguments")
    rows = [
        (
            item["id"],
            item["tool"],
            item["principal"],
            item.get("origin"),
            _decision(item) if decided else _left(item),
            item.get("arguments"),
        )
        for item in found
    ]
    print_table(columns, rows, empty="Nothing was decided yet." if decided else "Nothing waits for a decision.")


@group.command("show")
def show(approval: ApprovalId, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show one with its arguments, who asks, and why somebody has to decide."""
    found = with_yard(url, lambda yard: yard.get(_path(approval)))
    if as_json:
        print_json(found)
    else:
        print_fields(found)


@group.command("approve")
def approve(
    approval: ApprovalId,
    *,
    reason: Reason = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", "-d", help="Call it with these arguments instead: JSON, @file with JSON, or - for stdin."
        ),
    ] = None,
    for_session: Annotated[
        bool, typer.Option("--session", help="Do not ask again for this tool in the same session.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Let the call proceed, as it is or with other arguments."""
    decision: dict[str, object] = {"decision": "approve", "scope": "session" if for_session else "once"}
    if reason is not None:
        decision["reason"] = reason
    if data is not None:
        decision["arguments"] = arguments_from([], data, {})
    _decide(approval, decision, url, as_json=as_json)


@group.command("reject")
def reject(approval: ApprovalId, *, reason: Reason = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Refuse the call; whoever made it is told why."""
    decision = {"decision": "reject"} if reason is None else {"decision": "reject", "reason": reason}
    _decide(approval, decision, url, as_json=as_json)


@group.command("watch")
def watch(*, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Print what waits, and then each approval as it is asked for and decided, until interrupted."""

    async def body(yard: Yard) -> None:
        async with yard.stream("/v1/events", {"topics": "approval"}, accept="text/event-stream") as chunks:
            for item in await yard.pages("/v1/approvals", {"state": "pending"}, 1000):
                _print_one(item, as_json=as_json)
            async for approval in _changed(chunks):
                try:
                    _print_one(await yard.get(_path(approval)), as_json=as_json)
                except NotFound:
                    continue  # deleted with old records since

    try:
        with_yard(url, body)
    except KeyboardInterrupt:
        note("")


async def _changed(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    async for event in events_in(chunks):
        approval = event.get("id")
        if isinstance(approval, str):
            yield approval


def _decide(approval: str, decision: Mapping[str, object], url: str, *, as_json: bool) -> None:
    answer = with_yard(url, lambda yard: yard.post(_path(approval), decision))
    if as_json:
        print_json(answer)
    else:
        note(f"{'Approved' if decision['decision'] == 'approve' else 'Rejected'} {answer.get('tool')}.")


def _print_one(item: JsonObject, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(orjson.dumps(item).decode() + "\n")
    else:
        state = _decision(item) if item.get("state") == "decided" else _left(item)
        arguments = orjson.dumps(item.get("arguments")).decode()
        cells = (item["id"], state, item["tool"], item["principal"], item.get("origin") or "", arguments)
        print_text("  ".join(str(cell).replace("\n", " ") for cell in cells))
    sys.stdout.flush()


def _path(approval: str) -> str:
    return f"/v1/approvals/{segment(approval)}"


def _left(item: JsonObject) -> str:
    left = item.get("seconds_left")
    if not isinstance(left, int | float):
        return ""
    return f"{int(left // 60)}:{int(left % 60):02d} left" if left > 0 else "due"


def _decision(item: JsonObject) -> str:
    by = item.get("decided_by")
    return f"{item.get('decision')} by {by}" if by else str(item.get("decision") or "")
