"""The try-it form: drawn from the schema, redrawn while it is edited, and called like every other call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

from starlette.responses import Response

from toolyard.calls.shape import IMAGES_KEY
from toolyard.calls.validate import compile_schema
from toolyard.catalog import Entry
from toolyard.core.call import CallOutcome, CallRequest, Origin
from toolyard.core.errors import CallError, ErrorCode, NotFound
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.names import did_you_mean
from toolyard.core.principal import Scope
from toolyard.core.tool import Kind
from toolyard.faces.console.forms import ABSENT, FormSource, Node, ValueSource, edited, grow, harvest, locate
from toolyard.faces.console.forms.harvest import parse_json
from toolyard.faces.console.forms.shapes import items, obj, words
from toolyard.faces.console.forms.sources import Absent, Maybe, pretty
from toolyard.faces.console.rendering import tool_url
from toolyard.faces.console.visit import Posted, Visit

if TYPE_CHECKING:
    from toolyard.core.approval import ApprovalRecord
    from toolyard.core.record import CallRecord

_WAIT_AT_ONCE = 1.5
"""Seconds before the page says that the call is running and offers to cancel it."""
_WAIT_AGAIN = 20.0
_MOST_PROBLEMS = 50


@dataclass(frozen=True, slots=True)
class Draft:
    """The form as it stands: as fields, or as one JSON text."""

    mode: Literal["form", "json"]
    tree: Node | None
    text: str
    arguments: Maybe
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    """By form name; `json` for the JSON text as a whole."""


def drawn(entry: Entry, value: Maybe = ABSENT) -> Draft:
    tree = grow(entry.tool.input_schema.document(), ValueSource(value))
    return Draft("form", tree, "", value)


def read(entry: Entry, posted: Posted) -> Draft:
    """What the browser posted, after the operation that its button asked for."""
    operation = posted.get("op")
    if posted.get("mode") == "json":
        return _from_json(entry, posted.get("json-all"), to_form=operation == "to-form")
    tree = grow(entry.tool.input_schema.document(), FormSource(edited(posted.pairs, operation)))
    got = harvest(tree)
    if operation == "to-json":
        whole: JsonValue = {} if isinstance(got.value, Absent) else got.value
        return Draft("json", None, pretty(whole), got.value)
    return Draft("form", tree, "", got.value, {} if operation else got.problems)


def _from_json(entry: Entry, text: str, *, to_form: bool) -> Draft:
    try:
        value = parse_json(text or "{}")
    except ValueError as error:
        return Draft("json", None, text, ABSENT, {"json": str(error)})
    if not isinstance(value, Mapping):
        return Draft("json", None, text, value, {"json": "Arguments are one JSON object: begin with { and end with }."})
    return drawn(entry, value) if to_form else Draft("json", None, text, value)


def context(visit: Visit, entry: Entry, draft: Draft, **more: Any) -> dict[str, Any]:
    return {"entry": entry, "draft": draft, "result": None, "may_read": visit.principal.may(Scope.READ)} | more


async def redraw(visit: Visit) -> Response:
    from toolyard.faces.console.pages.tools import entry_of

    entry = entry_of(visit)
    return await _answer(visit, entry, read(entry, visit.posted))


async def call(visit: Visit) -> Response:
    """Start the call, and show how it ended or that it is running."""
    from toolyard.faces.console.pages.tools import entry_of

    entry = entry_of(visit)
    draft = read(entry, visit.posted)
    if draft.problems:
        return await _answer(visit, entry, draft)
    arguments = obj(None if isinstance(draft.arguments, Absent) else draft.arguments)
    request = CallRequest(entry.id, arguments, visit.principal, Origin.CONSOLE)
    call_id = visit.app.calls.start(request)
    outcome = await visit.app.calls.wait(call_id, _WAIT_AT_ONCE)
    result = await result_context(visit, call_id, outcome)
    if outcome is not None and outcome.failure and outcome.failure.code is ErrorCode.INVALID_ARGUMENTS:
        draft = with_problems(draft, entry, arguments)
    return await _answer(visit, entry, draft, result=result)


async def outcome(visit: Visit) -> Response:
    """Asked by the page while a call runs: answers when it ends, or after a while that it still runs."""
    call_id = visit.part("call")
    ended = await visit.app.calls.wait(call_id, _WAIT_AGAIN)
    return visit.page(
        "parts/outcome.html",
        result=await result_context(visit, call_id, ended),
        may_read=visit.principal.may(Scope.READ),
    )


async def result_context(visit: Visit, call_id: str, ended: CallOutcome | None) -> dict[str, Any]:
    """What the outcome's template draws."""
    record: CallRecord | None
    try:
        record = await visit.app.calls.get(call_id)
    except NotFound:
        record = None  # a call that only reads is written down when it has ended
    gate = await _gate(visit, record) if record is not None and record.waiting == "approval" else None
    return {"call_id": call_id, "outcome": ended, "record": record, "images": images_of(ended), "gate": gate}


async def _gate(visit: Visit, record: CallRecord) -> ApprovalRecord | None:
    """The decision that a call waits for."""
    gates = await visit.app.approvals.of_call(record.id)
    return next((gate for gate in gates if not gate.is_decided), None)


def images_of(ended: CallOutcome | None) -> list[str]:
    """Paths of the result's images on this server."""
    meta = obj(ended.result.meta if ended and ended.result else None)
    paths = [urlsplit(words(obj(image).get("url"))).path for image in items(meta.get(IMAGES_KEY))]
    return [path for path in paths if path.startswith("/blobs/")]


async def _answer(visit: Visit, entry: Entry, draft: Draft, *, result: dict[str, Any] | None = None) -> Response:
    if visit.by_htmx:
        return visit.page("parts/try.html", **context(visit, entry, draft, result=result))
    from toolyard.faces.console.pages.tools import tool_context

    whole = await tool_context(visit, entry) | context(visit, entry, draft, result=result)
    whole["path"] = tool_url(entry.id)
    return visit.page("tool.html", **whole)


def with_problems(draft: Draft, entry: Entry, arguments: JsonObject) -> Draft:
    """The call path's validator again, this time for each problem's place."""
    problems: dict[str, str] = {}
    try:
        validator = compile_schema(
            entry.id, entry.tool.input_schema, strict_formats=entry.tool.kind not in (Kind.MCP, Kind.OPENAPI)
        )
    except CallError:
        return draft
    for number, error in enumerate(validator.iter_errors(arguments)):
        if number == _MOST_PROBLEMS:
            break
        steps = [str(step) for step in error.instance_path]
        details = error.kind.as_dict()
        text = " ".join(error.message.split())[:300]
        if error.kind.name == "required":
            steps.append(str(details.get("property")))
            text = "This is required."
        unexpected = details.get("unexpected")
        if isinstance(unexpected, Sequence) and not isinstance(unexpected, str):
            known = list(cast("Mapping[str, object]", entry.tool.input_schema.root.get("properties") or {}))
            hints = [did_you_mean(str(name), known) or "" for name in cast("Sequence[object]", unexpected)]
            text = f"{text}. {' '.join(hint for hint in hints if hint)}".strip()
        name = "json" if draft.tree is None else locate(draft.tree, steps).spot.name
        place = ".".join(steps)
        problems.setdefault(name, f"{place}: {text}" if draft.tree is None and place else text)
    return Draft(draft.mode, draft.tree, draft.text, draft.arguments, problems)
