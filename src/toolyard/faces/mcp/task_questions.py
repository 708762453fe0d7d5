"""What an open task asks of its client, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolyard.core.call import CallOutcome
from toolyard.core.json import JsonObject
from toolyard.core.record import CallRecord
from toolyard.faces.mcp.asking import about_approval, decide, may_ask
from toolyard.faces.mcp.face import Context


async def open_questions(ctx: Context, outcome: CallOutcome) -> dict[str, JsonObject]:
    """Requests by key, as `inputRequests` holds them; empty when no answer of this client counts."""
    waiting = outcome.waiting
    if waiting is None:
        return {}
    if waiting.kind == "approval":
        # Only a form: a task that an operator decides is `working`, and its message says where.
        form = await about_approval(ctx, waiting, may_ask(ctx) & {"elicitation.form"})
        return {} if form is None else {waiting.id: {"method": form.method, "params": form.params}}
    return {asked.key: {"method": asked.method, "params": asked.params} for asked in waiting.questions}


async def give_answers(ctx: Context, record: CallRecord, answers: Mapping[str, Any]) -> None:
    """
    Raises:
        BadInput: an answer of the wrong shape; none was taken.
    """
    if record.waiting == "approval":
        waiting = (await ctx.face.app.calls.outcome(record.id)).waiting
        if waiting is not None and waiting.id in answers:
            await decide(ctx.face.app, ctx.principal, waiting.id, answers[waiting.id])
    elif answers:
        await ctx.face.app.questions.answer(record.id, answers, ctx.principal)
