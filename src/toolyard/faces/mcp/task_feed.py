"""`notifications/tasks` on a `subscriptions/listen` stream: a whole task, at once and whenever it stands otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import structlog

from toolyard.core.errors import NotFound, StoreError
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.tasks import find_task, is_declared, missing_capability, task_of, wire_of
from toolyard.faces.mcp.wire import INVALID_PARAMS, RpcError, notification

MOST_TASKS = 100
"""Of one stream."""

_log = structlog.stdlib.get_logger("toolyard.faces.mcp")


async def tasks_to_follow(ctx: Context, wanted: Mapping[str, Any]) -> list[str]:
    """Those of `notifications.taskIds` that are tasks of this principal; the others are left out without a word.

    Raises:
        RpcError: the client does not know tasks (-32021), or it is no list of ids, or a very long one (-32602).
    """
    if "taskIds" not in wanted:
        return []
    if not is_declared(ctx):
        raise missing_capability("This request asks for tasks without declaring their extension.")
    given = wanted["taskIds"]
    if not isinstance(given, list) or len(cast("list[object]", given)) > MOST_TASKS:
        raise RpcError(INVALID_PARAMS, f"params.notifications.taskIds must be a list of up to {MOST_TASKS} task ids.")
    found = [await find_task(ctx, task_id) for task_id in dict.fromkeys(map(str, cast("list[object]", given)))]
    return [record.id for record in found if record is not None]


@asynccontextmanager
async def following(ctx: Context, task_ids: Sequence[str], meta: JsonObject) -> AsyncGenerator[None, None]:
    """Push these tasks' news while the stream is open; `meta` goes into each notification."""
    if not task_ids:
        yield
        return
    feed = asyncio.create_task(_feed(ctx, task_ids, meta), name="news of tasks")
    try:
        yield
    finally:
        feed.cancel()
        await asyncio.wait([feed])


async def _feed(ctx: Context, task_ids: Sequence[str], meta: JsonObject) -> None:
    open_ids = dict.fromkeys(task_ids)
    told: dict[str, bytes] = {}
    async with ctx.face.app.engine.watch(*(f"call:{task_id}" for task_id in task_ids)) as waiter:
        while open_ids:
            for task_id in list(open_ids):
                try:
                    if await _tell(ctx, task_id, meta, told):
                        del open_ids[task_id]
                except NotFound:
                    del open_ids[task_id]
                except StoreError as error:
                    _log.warning("a task could not be read, and is looked at again", task=task_id, reason=str(error))
            await waiter.wait()


async def _tell(ctx: Context, task_id: str, meta: JsonObject, told: dict[str, bytes]) -> bool:
    """Push the task if it stands otherwise than was told; whether it has ended."""
    task = await task_of(ctx, await ctx.face.app.calls.get(task_id))
    stands = dumps([task.status.value, sorted(task.questions), task.message])
    if told.get(task_id) != stands:
        told[task_id] = stands
        params: dict[str, JsonValue] = {**wire_of(ctx, task), "_meta": meta}
        ctx.push(notification("notifications/tasks", params))
    return task.outcome.state.is_final
