"""`prompts/list` and `prompts/get`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.offer import GET_PROMPT
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.offer_call import offer_called
from toolyard.faces.mcp.offer_lists import complete, page_of
from toolyard.faces.mcp.shown_uris import shown_block
from toolyard.faces.mcp.wire import INVALID_PARAMS, RpcError, as_object


async def list_prompts(ctx: Context, params: Mapping[str, Any]) -> bytes:
    shown = {name: one.definition for name, one in ctx.view.offers.prompts.items()}
    return dumps(page_of(ctx, "prompts", shown, params.get("cursor")))


async def get_prompt(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """
    Raises:
        RpcError: no such prompt, or arguments that do not fit (-32602).
    """
    name, given = params.get("name"), params.get("arguments")
    prompt = ctx.view.offers.prompts.get(name) if isinstance(name, str) else None
    if prompt is None or not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, f"There is no prompt {str(name)[:200]!r} here.")
    arguments = {} if given is None else as_object(given)
    if arguments is None or not all(isinstance(value, str) for value in arguments.values()):
        raise RpcError(INVALID_PARAMS, "params.arguments must be an object of strings.")
    wanted: JsonObject = {"name": prompt.own, "arguments": arguments}
    result, ended = await offer_called(ctx, params, GET_PROMPT, prompt.namespace, named=name, arguments=wanted)
    if not ended:
        return dumps(result)
    messages = result.get("messages")
    if isinstance(messages, list | tuple):
        result = {**result, "messages": [_shown(ctx, prompt.namespace, one) for one in messages]}
    return dumps(complete(ctx, result))


def _shown(ctx: Context, namespace: str, message: JsonValue) -> JsonValue:
    if not isinstance(message, Mapping) or not isinstance(content := message.get("content"), Mapping):
        return message
    return {**message, "content": shown_block(ctx.server, namespace, content)}
