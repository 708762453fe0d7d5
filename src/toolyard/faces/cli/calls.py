"""`toolyard calls`: the audit log."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO, TypeAlias

import typer

from toolyard.core.errors import BadInput
from toolyard.core.json import JsonObject
from toolyard.faces.cli.options import DEFAULT_URL, AsJson, Limit, Url
from toolyard.faces.cli.output import note, one_line, print_fields, print_json, print_table, seconds
from toolyard.faces.cli.yard import Query, Yard, segment, with_yard

group = typer.Typer(no_args_is_help=True, help="The audit log: list, show, export and cancel calls.")


class ExportForm(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


_ACCEPT = {ExportForm.JSONL: "application/jsonl", ExportForm.CSV: "text/csv"}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

CallId: TypeAlias = Annotated[str, typer.Argument(help="The call's id.")]
Tool: TypeAlias = Annotated[str | None, typer.Option(help="Only this tool.")]
State: TypeAlias = Annotated[str | None, typer.Option(help="PENDING, PROCESSING, COMPLETE or ERROR.")]
Caller: TypeAlias = Annotated[str | None, typer.Option("--principal", help="Only this caller, such as key:ci.")]
Since: TypeAlias = Annotated[
    str | None, typer.Option(help="A time such as 2026-11-20T09:30:00Z, or an age: 30m, 12h, 7d.")
]
Search: TypeAlias = Annotated[str | None, typer.Option("--query", "-q", help="Words in arguments, results, errors.")]


@group.command("list")
def list_calls(
    *,
    tool: Tool = None,
    state: State = None,
    principal: Caller = None,
    since: Since = None,
    query: Search = None,
    limit: Limit = 50,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List calls, newest first."""
    wanted = _wanted(tool, state, principal, since, query)
    found = with_yard(url, lambda yard: yard.pages("/v1/calls", wanted, limit))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            item["id"],
            item.get("created"),
            item.get("tool"),
            item.get("principal"),
            item.get("error_code") or item.get("state"),
            _took(item),
            item.get("error") or item.get("preview"),
        )
        for item in found
    ]
    columns = ("call", "when", "tool", "caller", "state", "took", "result")
    print_table(columns, rows, empty="There are no such calls.")


@group.command("show")
def show(call: CallId, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show one call with its arguments and its whole result."""

    async def body(yard: Yard) -> JsonObject:
        record = await yard.get(f"/v1/calls/{segment(call)}")
        address = record.get("result_url")
        return {**record, "result": await yard.get(str(address))} if address else record

    found = with_yard(url, body)
    if as_json:
        print_json(found)
    else:
        print_fields(found)


@group.command("export")
def export(
    *,
    form: Annotated[ExportForm, typer.Option("--format", "-f", help="JSON Lines or CSV.")] = ExportForm.JSONL,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; stdout without it.")] = None,
    tool: Tool = None,
    state: State = None,
    principal: Caller = None,
    since: Since = None,
    query: Search = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Write every call that fits, as JSON Lines or CSV. A file appears only when it is complete."""
    wanted = _wanted(tool, state, principal, since, query)
    if output is None:
        with_yard(url, lambda yard: _copy(yard, wanted, form, sys.stdout.buffer))
        return
    draft = output.with_name(f"{output.name}.part")
    try:
        with draft.open("wb") as file:
            size = with_yard(url, lambda yard: _copy(yard, wanted, form, file))
        draft.replace(output)
    except OSError as error:
        raise BadInput(f"{output} cannot be written: {(error.strerror or '').lower()}.", where="--output") from None
    finally:
        draft.unlink(missing_ok=True)
    note(f"Wrote {size:,} bytes to {output}.")


@group.command("cancel")
def cancel(call: CallId, *, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Cancel a running call."""

    async def body(yard: Yard) -> JsonObject:
        return await yard.post(f"/v1/calls/{segment(call)}/cancel", {})

    answer = with_yard(url, body)
    if as_json:
        print_json(answer)
    else:
        note(f"Cancelled {call}." if answer.get("cancelled") else f"{call} had ended already.")


async def _copy(yard: Yard, wanted: Query, form: ExportForm, file: BinaryIO) -> int:
    size = 0
    async with yard.stream("/v1/calls", wanted, accept=_ACCEPT[form]) as chunks:
        async for chunk in chunks:
            size += await asyncio.to_thread(file.write, chunk)
    file.flush()
    return size


def _wanted(tool: str | None, state: str | None, principal: str | None, since: str | None, query: str | None) -> Query:
    return {
        "tool": tool,
        "state": state.upper() if state else None,
        "principal": principal,
        "since": time_of(since) if since else None,
        "q": query,
    }


def time_of(text: str, now: datetime | None = None) -> str:
    """An RFC 3339 time from one, or from an age such as `30m`.

    Raises:
        BadInput: neither.
    """
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.isdigit() and len(number) < 8:
        return ((now or datetime.now(UTC)) - timedelta(seconds=int(number) * _UNITS[unit])).isoformat()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        hint = "Write 2026-11-20T09:30:00Z, or an age: 30m, 12h, 7d."
        raise BadInput(f"{text!r} is no time.", where="--since", suggestion=hint) from None
    return (moment if moment.tzinfo else moment.astimezone()).isoformat()


def _took(item: Mapping[str, object]) -> str:
    took = item.get("duration_ms")
    return seconds(took / 1000) if isinstance(took, int | float) else one_line("")
