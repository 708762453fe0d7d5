"""An operator's settings for one tool."""

from __future__ import annotations

import math
from dataclasses import replace

from starlette.responses import Response

from toolyard.core.errors import BadInput
from toolyard.core.tool import TASK_MODES, TaskMode
from toolyard.faces.console.pages import tryit
from toolyard.faces.console.pages.tools import entry_of, tool_context
from toolyard.faces.console.rendering import link, tool_url
from toolyard.faces.console.visit import Visit

LONGEST_TIME_LIMIT = 86_400.0


async def save(visit: Visit) -> Response:
    entry = entry_of(visit)
    try:
        time_limit = _seconds(visit.posted.get("time_limit"), "time_limit", "no time limit")
        approval = _approval(visit.posted.get("approval"))
        approval_timeout = _seconds(visit.posted.get("approval_timeout"), "approval_timeout", "no time to decide")
        task = _task(visit.posted.get("task"))
    except BadInput as error:
        whole = await tool_context(visit, entry) | tryit.context(visit, entry, tryit.drawn(entry))
        whole |= {"settings_error": str(error), "path": tool_url(entry.id)}
        return visit.page("tool.html", code=422, **whole)
    description = visit.posted.get("description").replace("\r\n", "\n")
    settings = replace(
        entry.settings,
        enabled=visit.posted.get("enabled") == "1",
        time_limit=time_limit,
        approval=approval,
        approval_timeout=approval_timeout,
        task=task,
        description=description if description and description != entry.tool.description.strip() else None,
    )
    await visit.app.set_tool_settings(entry.id, settings)
    return visit.go(link(tool_url(entry.id), notice="saved"))


def _approval(text: str) -> str | None:
    if text not in ("", "ask", "never"):
        raise BadInput(f"{text[:40]!r} is no approval policy.", where="approval", suggestion="Choose one of the list.")
    return text or None


def _task(text: str) -> TaskMode | None:
    for mode in TASK_MODES:
        if text == mode:
            return mode
    if text:
        raise BadInput(f"{text[:40]!r} is no task setting.", where="task", suggestion="Choose one of the list.")
    return None


def _seconds(text: str, field: str, said: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= LONGEST_TIME_LIMIT:
        raise BadInput(f"{text[:40]!r} is {said}.", where=field, suggestion="Give seconds, above 0 and up to 86400.")
    return value
