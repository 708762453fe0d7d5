"""`toolyard call`: one call through the whole call path of a running yard."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated

import typer

from toolyard.core.errors import NotFound
from toolyard.core.json import JsonObject, JsonValue
from toolyard.faces.cli.arguments import Arguments, arguments_from
from toolyard.faces.cli.failures import Exit, complain
from toolyard.faces.cli.options import DEFAULT_URL, AsJson, Url
from toolyard.faces.cli.output import note, objects, print_json, print_text
from toolyard.faces.cli.waiting import waiting
from toolyard.faces.cli.yard import Yard, segment, with_yard

_AT_FIRST = 0.05
"""Seconds: soon, there is an id to cancel it by."""
_ONE_LOOK = 30
"""Seconds for which one question may wait for its answer."""
_FINAL = ("COMPLETE", "ERROR")
_WHOM = {"approval": "the approval", "client": "its client to take up"}


def call(
    tool: Annotated[str, typer.Argument(help="provider:name, as `toolyard tools list` shows it.")],
    *,
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", "-a", help="name=value; outer.inner=value sets a field inside an object. Repeatable."),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", "-d", help="All arguments as JSON, @file with JSON, or - for stdin.")
    ] = None,
    server: Annotated[str | None, typer.Option(help="Call within this server's slice only.")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Call a tool and print its result. A tool that fails ends with exit code 1; Ctrl-C cancels the call."""

    async def body(yard: Yard) -> JsonObject:
        schema = await _schema(yard, tool)
        return await _called(yard, tool, arguments_from(arg or [], data, schema), server)

    ended = with_yard(url, body)
    if as_json:
        print_json(ended)
    else:
        _print_result(ended)
    if ended.get("state") != "COMPLETE":
        if not as_json:
            complain(_why(ended))
        raise typer.Exit(Exit.FAILED)


async def _schema(yard: Yard, tool: str) -> Mapping[str, JsonValue]:
    try:
        found = await yard.get(f"/v1/tools/{segment(tool)}")
    except NotFound as error:
        raise NotFound(error.message, suggestion="Look with `toolyard tools search ...`.") from None
    schema = found.get("input_schema")
    return schema if isinstance(schema, Mapping) else {}


async def _called(yard: Yard, tool: str, arguments: Arguments, server: str | None) -> JsonObject:
    body: dict[str, object] = {"arguments": arguments}
    if server is not None:
        body["server"] = server
    posting = asyncio.create_task(yard.post(f"/v1/tools/{segment(tool)}/call?wait={_AT_FIRST:g}", body))
    try:
        return await _followed(yard, await asyncio.shield(posting))
    except asyncio.CancelledError:
        await _cancelled(yard, await posting)
        raise


async def _followed(yard: Yard, started: JsonObject) -> JsonObject:
    call_id = str(started["id"])
    if started.get("state") in _FINAL:
        return await _ended(yard, call_id, started, started.get("error"), has_result=started.get("result") is not None)
    whom = started.get("waiting")
    if isinstance(whom, Mapping):
        note(f"{call_id} waits for {_WHOM[str(whom['kind'])]} {whom['id']}. {whom.get('url') or ''}".rstrip())
    with waiting(f"{started['tool']} is {'waiting' if whom else 'running'}"):
        record = await _until_final(yard, call_id)
    failed = record.get("error_code") is not None
    error = {"error": record.get("error"), "code": record.get("error_code"), "suggestion": record.get("suggestion")}
    return await _ended(
        yard, call_id, record, error if failed else None, has_result=record.get("result_url") is not None
    )


async def _cancelled(yard: Yard, started: JsonObject) -> None:
    """Ctrl-C ends the call too, not only the looking on."""
    if started.get("state") not in _FINAL:
        answer = await yard.post(f"/v1/calls/{started['id']}/cancel", {})
        note(f"Cancelled {started['id']}." if answer.get("cancelled") else f"{started['id']} had ended already.")


async def _until_final(yard: Yard, call_id: str) -> JsonObject:
    while True:
        record = await yard.get(f"/v1/calls/{call_id}", {"wait": _ONE_LOOK})
        if record.get("state") in _FINAL:
            return record


async def _ended(yard: Yard, call_id: str, seen: JsonObject, error: JsonValue, *, has_result: bool) -> JsonObject:
    """How the call ended, with its whole result: what an agent would be shown may be cut."""
    ended: dict[str, JsonValue] = {"id": call_id, "tool": seen["tool"], "state": seen["state"]}
    if has_result:
        result = await yard.get(f"/v1/calls/{call_id}/result")
        ended["result"] = {
            "content": result.get("content", []),
            "structured": result.get("structuredContent"),
            "is_error": bool(result.get("isError")),
        }
    if error is not None:
        ended["error"] = error
    return ended


def _print_result(ended: JsonObject) -> None:
    result = ended.get("result")
    if isinstance(result, Mapping):
        for block in objects(result.get("content")):
            print_text(_text_of(block))


def _text_of(block: JsonObject) -> str:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    address = block.get("url") or block.get("uri")
    about = [str(block.get("type")), str(block.get("mimeType") or ""), f"at {address}" if address else ""]
    if isinstance(block.get("data"), str):
        about.append(f"{len(str(block['data'])) * 3 // 4:,} bytes, shown with --json")
    return f"[{' '.join(part for part in about if part)}]"


def _why(ended: JsonObject) -> str:
    found = ended.get("error")
    error: Mapping[str, JsonValue] = found if isinstance(found, Mapping) else {}
    parts = (f"{error.get('code', 'error')}: {error.get('error', 'the call failed.')}", error.get("suggestion"))
    return " ".join(" ".join(str(part) for part in parts if part).split())
