"""Agent mode: RESOLVE_ACTIONS finds the actions that a request needs, EXECUTE_ACTION names the one to run.

EXECUTE_ACTION runs nothing by itself. It is another way to name a tool: rules, approval, questions, tasks and the
record are those of the tool that it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, cast

import orjson

from toolyard.catalog import Entry
from toolyard.catalog.resolution import Resolution, entities_of
from toolyard.core.call import CallFailure
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.names import LONGEST_TOOL_NAME, did_you_mean, tool_id
from toolyard.core.tool import Kind
from toolyard.faces.mcp.face import Context
from toolyard.faces.mcp.wire import META_UNRESOLVED, Era

RESOLVE_ACTIONS = "RESOLVE_ACTIONS"
EXECUTE_ACTION = "EXECUTE_ACTION"
INPUT_PAYLOAD = "input_payload"
Aim: TypeAlias = tuple[Entry, dict[str, JsonValue]]
"""A tool, and what it is to be called with."""
_MOST_NAMES_TO_COMPARE = 500


def definitions(*, with_skills: bool) -> tuple[JsonObject, JsonObject]:
    """What `tools/list` shows of RESOLVE_ACTIONS and EXECUTE_ACTION."""
    order = "The order is: GET_KNOWLEDGE_INDEX, LOAD_SKILL, RESOLVE_ACTIONS, EXECUTE_ACTION. " if with_skills else ""
    first = (
        "When skills may apply, look at them first: GET_KNOWLEDGE_INDEX, then LOAD_SKILL, then this tool. "
        if with_skills
        else ""
    )
    resolve: JsonObject = {
        "name": RESOLVE_ACTIONS,
        "title": "Find actions",
        "description": (
            "Finds the actions that serve the user's request. Call it before EXECUTE_ACTION; it runs nothing. "
            f"{first}"
            "Break the request into its actions and give one entry for each: a verb, an object and the app's name, "
            'without values and without "and". For "Get all my Salesforce contacts and create a note in HubSpot" give '
            '["List Contacts Salesforce", "Create Note HubSpot"]. '
            "Answers with a list of candidates, the best of each entry first: {slug, type, identifier, json_schema}. "
            "Choose those that fit, and run each by EXECUTE_ACTION. When nothing fits, the answer is a sentence in "
            "place of a list: read it before you go on."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "integration_query": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "description": "One entry per action: verb, object, app. For example: Create Channel Slack.",
                }
            },
            "required": ["integration_query"],
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }
    execute: JsonObject = {
        "name": EXECUTE_ACTION,
        "title": "Run an action",
        "description": (
            "Runs one action or workflow that RESOLVE_ACTIONS has returned; call it once for each. "
            f"Only call it after RESOLVE_ACTIONS has returned a list, with slug, identifier and type as they stand "
            f"there, and with an input_payload that fits the json_schema. "
            f"{order}"
            "Answers with {success: true, data}, data being what the app answered; a failure says what went wrong."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "application_slug": {"type": "string", "description": "The `slug` of the resolved action."},
                "action_id": {"type": "string", "description": "The `identifier` of the resolved action."},
                INPUT_PAYLOAD: {
                    "type": ["object", "string"],
                    "description": "The action's input by its `json_schema`: a JSON object, or one as a JSON string.",
                },
                "type": {"type": "string", "enum": ["action", "workflow"], "description": "As it was resolved."},
            },
            "required": ["application_slug", "action_id", INPUT_PAYLOAD, "type"],
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    }
    return resolve, execute


# -- RESOLVE_ACTIONS


async def resolve_actions(ctx: Context, arguments: JsonObject) -> JsonObject:
    """The candidates as a JSON list, or a sentence where nothing matches."""
    asked = arguments.get("integration_query")
    if not isinstance(asked, list) or not asked or not all(isinstance(entry, str) and entry.strip() for entry in asked):
        return _text(
            "integration_query must be a list of strings, one for each action, such as "
            '["List Contacts Salesforce", "Create Note HubSpot"].',
            is_error=True,
        )
    resolution = await ctx.face.app.catalog.resolve(cast("list[str]", asked), within=ctx.view)
    return resolved(resolution, ctx.era)


def resolved(resolution: Resolution, era: Era) -> JsonObject:
    if not resolution.hits:
        return _text(resolution.sentence)
    entities = entities_of(resolution)
    content: list[JsonValue] = [{"type": "text", "text": dumps(entities).decode()}]
    if resolution.remarks:
        content.append({"type": "text", "text": " ".join(resolution.remarks)})
    result: dict[str, JsonValue] = {"content": content, "isError": False}
    if era is Era.MODERN:
        result["structuredContent"] = entities
    if resolution.unmatched:
        result["_meta"] = {META_UNRESOLVED: resolution.unmatched}
    return result


def _text(text: str, *, is_error: bool = False) -> JsonObject:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


# -- EXECUTE_ACTION


@dataclass(frozen=True, slots=True)
class NotNamed:
    """What cannot be run as it was asked for. `tool` is what the record calls it."""

    tool: str
    failure: CallFailure


def named(ctx: Context, arguments: JsonObject) -> Aim | NotNamed:
    """Exactly the action that the arguments name. Nothing is guessed, and nothing outside the server's slice told."""
    slug, action, kind = (arguments.get(name) for name in ("application_slug", "action_id", "type"))
    if not (isinstance(slug, str) and slug and isinstance(action, str) and action):
        wrong = "action_id" if isinstance(slug, str) and slug else "application_slug"
        return _bad(EXECUTE_ACTION, f"{wrong} must be a string.", "Take it from the list that RESOLVE_ACTIONS returns.")
    identifier = tool_id(slug, action)[:LONGEST_TOOL_NAME]
    if kind not in ("action", "workflow"):
        return _bad(identifier, "type must be 'action' or 'workflow'.", "Take it from what RESOLVE_ACTIONS returned.")
    entry = ctx.view.get(tool_id(slug, action))
    if entry is None or (entry.tool.kind is Kind.WORKFLOW) is not (kind == "workflow"):
        return NotNamed(identifier, _unknown(ctx, slug, action, cast("str", kind)))
    if INPUT_PAYLOAD not in arguments:
        return _bad(identifier, "input_payload is missing.", "Give the action's input as a JSON object: {} for none.")
    return _with_payload(entry, arguments)


def unwrapped(entry: Entry, arguments: dict[str, JsonValue]) -> Aim | NotNamed:
    """Direct mode: `input_payload` in place of the tool's own arguments, unless it is the name of one of those."""
    if INPUT_PAYLOAD in cast("JsonObject", entry.tool.input_schema.root.get("properties") or {}):
        return entry, arguments
    return _with_payload(entry, arguments)


def _with_payload(entry: Entry, arguments: JsonObject) -> Aim | NotNamed:
    try:
        return entry, payload_of(arguments[INPUT_PAYLOAD])
    except CallError as error:
        return NotNamed(entry.id, CallFailure.of(error))


def payload_of(value: JsonValue) -> dict[str, JsonValue]:
    """An `input_payload`: an object, or one written as a JSON string.

    Raises:
        CallError: neither (`invalid_arguments`).
    """
    if isinstance(value, str):
        try:
            value = cast("JsonValue", orjson.loads(value))
        except orjson.JSONDecodeError as error:
            raise CallError(
                ErrorCode.INVALID_ARGUMENTS,
                f"input_payload is a string that is not JSON: {error.msg} (line {error.lineno}, column {error.colno}).",
                suggestion="Give the action's input as a JSON object, or as one in a well-formed JSON string.",
            ) from error
    if not isinstance(value, dict):
        raise CallError(
            ErrorCode.INVALID_ARGUMENTS,
            f"input_payload must be a JSON object, and is {_kind_of(value)}.",
            suggestion='Give the action\'s input by name, such as {"email": "user@example.com"}; {} for none.',
        )
    return value


def _kind_of(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return "a string" if isinstance(value, str) else "a list"


def _bad(tool: str, message: str, suggestion: str) -> NotNamed:
    return NotNamed(tool, CallFailure(ErrorCode.INVALID_ARGUMENTS, message, suggestion))


def _unknown(ctx: Context, slug: str, action: str, kind: str) -> CallFailure:
    of_app = [entry.tool.name for entry in ctx.view.entries if entry.tool.namespace == slug]
    hint = did_you_mean(action, of_app) if action not in of_app and len(of_app) <= _MOST_NAMES_TO_COMPARE else None
    return CallFailure(
        ErrorCode.NOT_FOUND,
        f"There is no {kind} {action[:200]!r} of an app {slug[:64]!r} here.",
        f"{f'{hint} ' if hint else ''}Call RESOLVE_ACTIONS, and give slug, identifier and type as it returns them.",
    )


def executed(result: JsonObject) -> JsonObject:
    """A `CallToolResult` as EXECUTE_ACTION answers: `{success: true, data}`; a failure as it is on record.

    `data` is the structured value where there is one, else the text, as JSON where it is an object or a list. Images
    and other blocks stay beside it.
    """
    if result.get("isError"):
        return result
    blocks = [cast("JsonObject", block) for block in cast("list[JsonValue]", result.get("content") or ())]
    texts = [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]
    data = result["structuredContent"] if "structuredContent" in result else _data_in("\n".join(texts))
    answer: JsonObject = {"success": True, "data": data}
    others = [block for block in blocks if block.get("type") != "text"]
    return {
        **result,
        "content": [{"type": "text", "text": dumps(answer).decode()}, *others],
        "structuredContent": answer,
    }


def _data_in(text: str) -> JsonValue:
    if text[:1] in ("{", "["):
        try:
            return cast("JsonValue", orjson.loads(text))
        except orjson.JSONDecodeError:
            pass
    return text
