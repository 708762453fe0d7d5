"""What an open task asks of its client, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolyard.core.call import CallOutcome
from toolyard.core.json import JsonObject
from toolyard.core.record import CallRecord
from toolyard.faces.mcp.face import Context


async def open_questions(ctx: Context, outcome: CallOutcome) -> dict[str, JsonObject]:
    """Requests by key, as `inputRequests` holds them; empty when no answer of this client counts."""
    if outcome.waiting is None:
        return {}
    return {asked.key: {"method": asked.method, "params": asked.params} for asked in outcome.waiting.questions}


async def give_answers(ctx: Context, record: CallRecord, answers: Mapping[str, Any]) -> None:
    """
    Raises:
        BadInput: an answer of the wrong shape; none was taken.
    """
    if answers:
        await ctx.face.app.questions.answer(record.id, answers, ctx.principal)
