"""`tools/call`: from a request's parameters to a CallRequest, and from its outcome to a result."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, cast

from toolyard.catalog import Entry
from toolyard.core.call import CallFailure, CallOutcome, CallRequest, CallState, Origin
from toolyard.core.errors import ErrorCode, ToolyardError
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.faces.mcp import agent_tools, headers, tasks
from toolyard.faces.mcp.agent_tools import INPUT_PAYLOAD, Aim
from toolyard.faces.mcp.call_request import trace
from toolyard.faces.mcp.carrying import carried_out, prepared
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.own_tools import Run, own_tools
from toolyard.faces.mcp.shown_uris import shown_outcome
from toolyard.faces.mcp.tool_result import as_rpc_error, is_rpc_error, result_of
from toolyard.faces.mcp.waiting import pending_result
from toolyard.faces.mcp.wire import INVALID_PARAMS, META_SERVER_INFO, Era, RpcError, as_object


async def call_tool(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """
    Raises:
        RpcError: parameters of the wrong shape, headers that contradict them, or no such tool in this server's slice.
    """
    name, given = _named(params)
    aim = _aim(ctx, name, given)
    if not isinstance(aim, tuple):
        return dumps(await aim)
    entry, arguments = aim
    if ctx.era is Era.MODERN and ctx.headers:
        _check_param_headers(ctx, entry, arguments)
    soft_limit = tasks.soft_limit(ctx, entry)
    talk, request = prepared(ctx, "tools/call", name, given, tool=entry.id, arguments=arguments)
    try:
        outcome = await carried_out(talk, request, params, soft_limit)
    except ToolyardError as error:
        return dumps(_refused(ctx, request.call_id, error))
    if not isinstance(outcome, CallOutcome):
        return dumps(outcome)
    if outcome.waiting is not None:
        return dumps(pending_result(outcome, outcome.waiting, entry, ctx))
    return dumps(_result(ctx, entry, outcome))


def _aim(ctx: Context, name: str, given: dict[str, JsonValue]) -> Aim | Awaitable[JsonObject]:
    """The tool that is meant, and its arguments; or what answers without one.

    Raises:
        RpcError: there is no such tool in this server's slice.
    """
    server = ctx.server
    own = own_tools(server).get(name) if server.agent_mode or server.retrieve_skill else None
    if own is not None:
        return _own_result(ctx, own.run, given) if own.run else _or_refused(ctx, agent_tools.named(ctx, given), given)
    entry = None if server.agent_mode else ctx.view.by_direct_name(name)
    if entry is None:
        raise unknown_tool(name)
    if len(given) == 1 and INPUT_PAYLOAD in given and server.names == "direct":
        return _or_refused(ctx, agent_tools.unwrapped(entry, given), given)
    return entry, given


def _or_refused(ctx: Context, aim: Aim | agent_tools.NotNamed, given: JsonObject) -> Aim | Awaitable[JsonObject]:
    return aim if isinstance(aim, tuple) else _not_named(ctx, aim, given)


def _result(ctx: Context, entry: Entry, outcome: CallOutcome) -> JsonObject:
    """
    Raises:
        RpcError: the upstream answered with one. EXECUTE_ACTION itself answered well, so it gives a result.
    """
    outcome = shown_outcome(ctx.server, entry.tool, outcome)
    if ctx.server.agent_mode:
        return agent_tools.executed(result_of(outcome, ctx.era, ctx.face.server_info))
    if outcome.failure is not None and is_rpc_error(outcome.failure):
        raise as_rpc_error(outcome.failure)
    return result_of(outcome, ctx.era, ctx.face.server_info)


async def _own_result(ctx: Context, run: Run, given: JsonObject) -> JsonObject:
    """What a tool of the server itself answers, as the era has it."""
    result = await run(ctx, given)
    if ctx.era is Era.LEGACY:
        return result
    meta = {**(as_object(result.get("_meta")) or {}), META_SERVER_INFO: ctx.face.server_info}
    return {**result, "resultType": "complete", "_meta": meta}


async def _not_named(ctx: Context, wrong: agent_tools.NotNamed, given: JsonObject) -> JsonObject:
    """Nothing could be run as it was asked for. The record says so in the same words as the answer."""
    request = CallRequest(wrong.tool, given, ctx.principal, Origin.MCP, server=ctx.server.id, trace=trace(ctx))
    try:
        outcome = await ctx.face.app.calls.refuse(request, wrong.failure)
    except ToolyardError as error:
        return _refused(ctx, request.call_id, error)
    return result_of(outcome, ctx.era, ctx.face.server_info)


def unknown_tool(name: str) -> RpcError:
    """Unknown and outside the slice look the same, and no other tool is named."""
    return RpcError(INVALID_PARAMS, f"Unknown tool: {name}")


def _refused(ctx: Context, call_id: str, error: ToolyardError) -> dict[str, JsonValue]:
    """What the call path could not take at all: a misused idempotency key, a store that is away."""
    failure = CallFailure(ErrorCode.INTERNAL, error.message, error.suggestion)
    outcome = CallOutcome(call_id, "", CallState.ERROR, failure=failure)
    return result_of(outcome, ctx.era, ctx.face.server_info)


def _named(params: Mapping[str, Any]) -> tuple[str, dict[str, JsonValue]]:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "params.name must be the name of a tool.")
    if arguments is None:
        return name, {}
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "params.arguments must be an object.")
    return name, cast("dict[str, JsonValue]", arguments)


def _check_param_headers(ctx: Context, entry: Entry, arguments: Mapping[str, Any]) -> None:
    declared = ctx.face.param_headers.of(entry.tool.input_schema)
    if declared:
        headers.check_params(declared, arguments, ctx.headers, ctx.raw_headers)
