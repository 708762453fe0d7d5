"""GET_KNOWLEDGE_INDEX lists the skills of a server, LOAD_SKILL gives one. Both only read, and never fail (seed s0)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from toolyard.catalog import Server
from toolyard.core.errors import ToolyardError
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.names import did_you_mean
from toolyard.faces.mcp.face import Context
from toolyard.skills import SkillEntry

GET_KNOWLEDGE_INDEX = "GET_KNOWLEDGE_INDEX"
LOAD_SKILL = "LOAD_SKILL"
USUAL_PAGE = 50
LARGEST_PAGE = 500
MOST_CHARACTERS = 100_000
_LONGEST_SUMMARY = 300
_ROOT = "skill://yard"


def definitions(*, agent_mode: bool) -> tuple[JsonObject, JsonObject]:
    """What `tools/list` shows of the two. The order in which to use them is guidance, nobody enforces it."""
    order = "The order is: GET_KNOWLEDGE_INDEX, LOAD_SKILL, RESOLVE_ACTIONS, EXECUTE_ACTION. " if agent_mode else ""
    then = " before you look for actions" if agent_mode else ""
    index: JsonObject = {
        "name": GET_KNOWLEDGE_INDEX,
        "title": "List skills",
        "description": (
            "Lists the skills of this server: written procedures for tasks that come up again. Call it first, before "
            f"anything else. {order}Each entry has an id and a short summary; when one fits the request, load it with "
            f"LOAD_SKILL{then} and follow it. Long lists come in pages: go on with a larger offset."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "default": USUAL_PAGE, "minimum": 1, "maximum": LARGEST_PAGE},
                "offset": {"type": "integer", "default": 0, "minimum": 0, "description": "How many entries to skip."},
            },
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }
    load: JsonObject = {
        "name": LOAD_SKILL,
        "title": "Load a skill",
        "description": (
            f"Loads a skill that GET_KNOWLEDGE_INDEX has listed, by its id or its name. {order}"
            "Answers {success: true, results: [{file_id, snippet, skill_name, category, apps}]}: the whole skill is in "
            f"results[0].snippet, up to {MOST_CHARACTERS:,} characters. When it cannot be loaded the answer is "
            "{success: false, error}."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "skill_id": {"type": "string", "description": "The id from GET_KNOWLEDGE_INDEX."},
                "skill_name": {"type": "string", "description": "The name, in place of the id."},
            },
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }
    return index, load


def skills_of(entries: Sequence[SkillEntry], server: Server) -> list[SkillEntry]:
    """Those that the server shows."""
    return [entry for entry in entries if server.shows_skill(entry.name)]


def uri_of(entry: SkillEntry, path: str) -> str:
    """Of a file of a skill, as a resource; spaces and the like are escaped, as a URI wants them."""
    return f"{_ROOT}/{entry.name}/{quote(path)}"


async def knowledge_index(ctx: Context, arguments: JsonObject) -> JsonObject:
    limit, offset = _count(arguments.get("limit", USUAL_PAGE), 1), _count(arguments.get("offset", 0), 0)
    if limit is None or offset is None:
        return _answered({"success": False, "error": "limit must be an integer from 1, offset one from 0."})
    found = skills_of(ctx.face.app.skills.entries, ctx.server)
    page = found[offset : offset + min(limit, LARGEST_PAGE)]
    return _answered(
        {
            "success": True,
            "total": len(found),
            "results": [
                {"skill_id": one.name, "skill_name": one.title, "summary": _summary(one), "category": one.category}
                for one in page
            ],
        }
    )


async def load_skill(ctx: Context, arguments: JsonObject) -> JsonObject:
    # Models fill what they do not need with "" or null.
    skill_id, skill_name = arguments.get("skill_id") or None, arguments.get("skill_name") or None
    if not isinstance(skill_id, str) and not isinstance(skill_name, str):
        return _failed("Give skill_id or skill_name.")
    entries = skills_of(ctx.face.app.skills.entries, ctx.server)
    entry = _meant(entries, skill_id, skill_name)
    if entry is None:
        wanted = str(skill_id if isinstance(skill_id, str) else skill_name)
        hint = did_you_mean(wanted, [one.name for one in entries[:LARGEST_PAGE]]) or f"See {GET_KNOWLEDGE_INDEX}."
        return _failed(f"There is no skill {wanted[:100]!r} here. {hint}")
    try:
        skill = await ctx.face.app.skills.skill(entry.name)
    except ToolyardError as error:
        return _failed(str(error))
    loaded: dict[str, JsonValue] = {
        "file_id": entry.name,
        "snippet": _cut(skill.body.strip()),
        "skill_name": entry.title,
        "category": entry.category,
        "apps": [*entry.apps],
    }
    others: list[JsonValue] = [uri_of(entry, file.path) for file in entry.files if file.path != "SKILL.md"]
    if others:
        loaded["files"] = others
    return _answered({"success": True, "results": [loaded]})


def _meant(entries: Sequence[SkillEntry], skill_id: JsonValue, skill_name: JsonValue) -> SkillEntry | None:
    if isinstance(skill_id, str):
        return next((one for one in entries if one.name == skill_id), None)
    wanted = str(skill_name).strip().casefold()
    return next((one for one in entries if wanted in (one.name, one.title.casefold())), None)


def _summary(entry: SkillEntry) -> str:
    text = " ".join(entry.description.split())
    return text if len(text) <= _LONGEST_SUMMARY else f"{text[: _LONGEST_SUMMARY - 3]}..."


def _cut(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    left_out = f"[... cut here: {len(text) - MOST_CHARACTERS:,} of {len(text):,} characters left out]"
    return f"{text[:MOST_CHARACTERS]}\n\n{left_out}"


def _count(value: JsonValue, least: int) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= least else None


def _failed(why: str) -> JsonObject:
    return _answered({"success": False, "error": why})


def _answered(answer: Mapping[str, JsonValue]) -> JsonObject:
    return {
        "content": [{"type": "text", "text": dumps(answer).decode()}],
        "structuredContent": answer,
        "isError": False,
    }
