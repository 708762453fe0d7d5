"""`completion/complete`: asked of the provider that has the prompt or the template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolyard.core.errors import CallError, ProtocolError
from toolyard.core.json import JsonObject, dumps
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.offer_lists import complete
from toolyard.faces.mcp.wire import INTERNAL_ERROR, INVALID_PARAMS, RpcError, as_object
from toolyard.providers.offers import Completion

_NOTHING: JsonObject = {"values": [], "total": 0, "hasMore": False}


async def complete_argument(ctx: Context, params: Mapping[str, Any]) -> bytes:
    """
    Raises:
        RpcError: no such prompt, template or argument, or parameters of the wrong shape (-32602).
    """
    reference, argument = as_object(params.get("ref")), as_object(params.get("argument"))
    if reference is None or argument is None:
        raise RpcError(INVALID_PARAMS, "params.ref and params.argument must be objects.")
    name, value = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, "params.argument must be {name, value}, both strings.")
    namespace, own = _meant(ctx, reference)
    if not ctx.view.offers.completing(namespace):
        return dumps(complete(ctx, {"completion": _NOTHING}))
    context = as_object(params.get("context")) or {}
    given = as_object(context.get("arguments")) or {}
    try:
        found = await ctx.face.app.supervisor.complete(namespace, Completion(own, name, value, given))
    except CallError as error:
        refused = isinstance(error, ProtocolError) and error.rpc_code == INVALID_PARAMS
        raise RpcError(INVALID_PARAMS if refused else INTERNAL_ERROR, str(error)) from error
    return dumps(complete(ctx, {"completion": found}))


def _meant(ctx: Context, reference: Mapping[str, Any]) -> tuple[str, JsonObject]:
    """Whose prompt or template is meant, and the provider's own reference to it."""
    offers = ctx.view.offers
    name, uri = reference.get("name"), reference.get("uri")
    if reference.get("type") == "ref/prompt" and isinstance(name, str) and (prompt := offers.prompts.get(name)):
        return prompt.namespace, {**reference, "name": prompt.own}
    if reference.get("type") == "ref/resource" and isinstance(uri, str):
        if template := offers.templates.get(uri):
            return template.namespace, {**reference, "uri": template.own}
        if (found := offers.where(uri)) is not None:
            return found[0], {**reference, "uri": found[1]}
    raise RpcError(INVALID_PARAMS, "params.ref names no prompt and no resource template of this server.")
