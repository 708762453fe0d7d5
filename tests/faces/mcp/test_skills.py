"""Skills over MCP: the two tools, and the extension with digests."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.faces.mcp.yard import Wire
from tests.requirements import requirement
from toolyard.app import App, Settings
from toolyard.catalog import Server
from toolyard.faces.mcp import build
from toolyard.skills import from_files, from_text

ERAS = pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])
LEAD = """---
name: qualify-lead
description: Qualifies an inbound lead.
metadata:
  title: Lead Qualification
  category: Sales
  apps: salesforce, hubspot
---
## Goal
Qualify an inbound lead.
"""


def skill(name: str, text: str = "Do it.") -> Any:
    return from_text(f"---\nname: {name}\ndescription: The skill {name}.\n---\n{text}\n")


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with App.running(Settings(data_dir=tmp_path, demo=True)) as app:
        lead = from_files({"SKILL.md": LEAD.encode(), "forms/questions.md": b"Who?", "forms/logo.bin": b"\xff\x00"})
        for one in (lead, skill("make-tea"), skill("make-coffee"), skill("long-read", "x" * 150_000)):
            await app.skills.save(one, "local:tests")
        await app.save_server(Server("both", agent_mode=True, retrieve_skill=True))
        await app.save_server(Server("tea", tools=("!*",), retrieve_skill=True, skills=("make-*", "!*coffee")))
        yield app


@pytest.fixture
def wire(app: App) -> Wire:
    return Wire(build(app))


async def ask(wire: Wire, path: str, method: str, params: Any = None, *, legacy: bool = False) -> Any:
    if legacy:
        return (await (await wire.initialize(path=path)).send(method, params or {})).json
    named = {"tools/call": "name", "resources/read": "uri"}.get(method)
    headers = {"Mcp-Name": params[named]} if named else None
    return (await wire.modern(method, params or {}, path=path, headers=headers)).json


async def use(wire: Wire, tool: str, arguments: Any = None, *, path: str = "/mcp/both", legacy: bool = False) -> Any:
    call = {"name": tool, "arguments": arguments or {}}
    result = (await ask(wire, path, "tools/call", call, legacy=legacy))["result"]
    assert result["isError"] is False
    answer = orjson.loads(result["content"][0]["text"])
    assert result["structuredContent"] == answer
    return answer


@requirement("server.toggles")
@requirement("agentmode.order")
@ERAS
async def test_the_toggle_adds_two_tools_whose_words_give_the_order(wire: Wire, legacy: bool) -> None:
    both = (await ask(wire, "/mcp/both", "tools/list", legacy=legacy))["result"]["tools"]
    alone = (await ask(wire, "/mcp/tea", "tools/list", legacy=legacy))["result"]["tools"]
    assert [tool["name"] for tool in both] == [
        "GET_KNOWLEDGE_INDEX",
        "LOAD_SKILL",
        "RESOLVE_ACTIONS",
        "EXECUTE_ACTION",
    ]
    assert [tool["name"] for tool in alone] == ["GET_KNOWLEDGE_INDEX", "LOAD_SKILL"]
    order = "GET_KNOWLEDGE_INDEX, LOAD_SKILL, RESOLVE_ACTIONS, EXECUTE_ACTION"
    assert all(order in both[place]["description"] for place in (0, 1, 3))
    assert "GET_KNOWLEDGE_INDEX, then LOAD_SKILL, then this tool" in both[2]["description"]
    assert not any("RESOLVE_ACTIONS" in tool["description"] for tool in alone)


@requirement("agentmode.order")
async def test_the_order_is_not_enforced(wire: Wire) -> None:
    assert (await use(wire, "LOAD_SKILL", {"skill_id": "make-tea"}))["success"] is True


@requirement("skills.index")
@ERAS
async def test_the_index_lists_id_and_summary_of_this_servers_skills_in_pages(wire: Wire, legacy: bool) -> None:
    whole = await use(wire, "GET_KNOWLEDGE_INDEX", legacy=legacy)
    page = await use(wire, "GET_KNOWLEDGE_INDEX", {"limit": 2, "offset": 1}, legacy=legacy)
    beyond = await use(wire, "GET_KNOWLEDGE_INDEX", {"offset": 10}, legacy=legacy)
    assert (whole["total"], [one["skill_id"] for one in whole["results"]]) == (
        4,
        ["long-read", "make-coffee", "make-tea", "qualify-lead"],
    )
    assert whole["results"][3] == {
        "skill_id": "qualify-lead",
        "skill_name": "Lead Qualification",
        "summary": "Qualifies an inbound lead.",
        "category": "Sales",
    }
    assert [one["skill_id"] for one in page["results"]] == ["make-coffee", "make-tea"]
    assert (beyond["total"], beyond["results"]) == (4, [])
    few = await use(wire, "GET_KNOWLEDGE_INDEX", path="/mcp/tea", legacy=legacy)
    assert [one["skill_id"] for one in few["results"]] == ["make-tea"]
    for wrong in ({"limit": 0}, {"limit": "many"}, {"offset": -1}, {"offset": True}):
        assert (await use(wire, "GET_KNOWLEDGE_INDEX", wrong, legacy=legacy))["success"] is False


@requirement("skills.load")
@ERAS
async def test_a_skill_is_loaded_by_id_or_by_name(wire: Wire, legacy: bool) -> None:
    by_id = await use(wire, "LOAD_SKILL", {"skill_id": "qualify-lead"}, legacy=legacy)
    assert by_id == {
        "success": True,
        "results": [
            {
                "file_id": "qualify-lead",
                "snippet": "## Goal\nQualify an inbound lead.",
                "skill_name": "Lead Qualification",
                "category": "Sales",
                "apps": ["salesforce", "hubspot"],
                "files": ["skill://yard/qualify-lead/forms/logo.bin", "skill://yard/qualify-lead/forms/questions.md"],
            }
        ],
    }
    for name in ("lead qualification", "qualify-lead"):
        assert await use(wire, "LOAD_SKILL", {"skill_name": name}, legacy=legacy) == by_id


@requirement("skills.load")
async def test_a_long_skill_is_cut_with_a_marker(wire: Wire) -> None:
    snippet = (await use(wire, "LOAD_SKILL", {"skill_id": "long-read"}))["results"][0]["snippet"]
    assert snippet.startswith("x" * 100_000 + "\n\n[... cut here: 50,000 of 150,000 characters left out]")


@requirement("skills.load")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "Give skill_id or skill_name."),
        ({"skill_id": 7}, "Give skill_id or skill_name."),
        ({"skill_id": "make-te"}, "Did you mean 'make-tea'?"),
        ({"skill_name": "nothing like it"}, "See GET_KNOWLEDGE_INDEX."),
    ],
)
async def test_what_cannot_be_loaded_is_an_answer_and_no_failure(
    wire: Wire, arguments: dict[str, Any], says: str
) -> None:
    answer = await use(wire, "LOAD_SKILL", arguments)
    assert (answer["success"], list(answer)) == (False, ["success", "error"])
    assert says in answer["error"]


@requirement("skills.load")
async def test_a_broken_file_or_one_of_another_server_is_an_answer_too(app: App, wire: Wire) -> None:
    outside = await use(wire, "LOAD_SKILL", {"skill_id": "qualify-lead"}, path="/mcp/tea")
    assert outside["error"].startswith("There is no skill 'qualify-lead' here.")
    await app.store.tx(lambda c: c.execute("UPDATE skill_versions SET content = '{}' WHERE name = 'make-tea'"))
    broken = await use(wire, "LOAD_SKILL", {"skill_id": "make-tea"})
    assert (broken["success"], broken["error"][:21]) == (False, "There is no SKILL.md.")


@requirement("skills.standard")
@ERAS
async def test_the_extension_lists_gets_and_reads_skills_with_digests(app: App, wire: Wire, legacy: bool) -> None:
    listed = (await ask(wire, "/mcp/both", "skills/list", legacy=legacy))["result"]
    entry = next(one for one in listed["skills"] if one["uri"] == "skill://yard/qualify-lead/SKILL.md")
    got = (await ask(wire, "/mcp/both", "skills/get", {"uri": entry["uri"]}, legacy=legacy))["result"]
    assert got["skill"] == entry
    assert ("ttlMs" in listed, "cacheScope" in listed) == (not legacy, not legacy)
    assert entry["frontmatter"]["metadata"]["apps"] == "salesforce, hubspot"
    for resource in entry["resources"]:
        read = await ask(wire, "/mcp/both", "resources/read", {"uri": resource["uri"]}, legacy=legacy)
        (content,) = read["result"]["contents"]
        data = (await app.skills.skill("qualify-lead")).files[resource["uri"].partition("qualify-lead/")[2]]
        assert content.get("text", "").encode() == data or content["blob"] == "/wA="
        assert resource["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        assert resource["size"] == len(data)


@ERAS
async def test_folders_of_a_skill_are_read_level_by_level(wire: Wire, legacy: bool) -> None:
    async def children(uri: str) -> list[tuple[str, str]]:
        answer = await ask(wire, "/mcp/both", "resources/directory/read", {"uri": uri}, legacy=legacy)
        return [(one["name"], one["mimeType"]) for one in answer["result"]["resources"]]

    root = "skill://yard/qualify-lead"
    assert await children(root) == [("qualify-lead", "text/markdown"), ("forms", "inode/directory")]
    assert await children(f"{root}/forms") == [
        ("logo.bin", "application/octet-stream"),
        ("questions.md", "text/markdown"),
    ]
    for wrong in (f"{root}/SKILL.md", f"{root}/nowhere", "skill://yard/nobody", "skill://yard", "", None):
        answer = await ask(wire, "/mcp/both", "resources/directory/read", {"uri": wrong}, legacy=legacy)
        assert answer["error"]["code"] == -32602, wrong


@requirement("skills.standard")
@ERAS
async def test_any_file_name_makes_a_uri_that_can_be_read(app: App, wire: Wire, legacy: bool) -> None:
    odd = {"my notes/50% #1?.md": b"odd", "\u00fc.md": b"u"}
    text = b"---\nname: odd-names\ndescription: d\n---\n"
    await app.skills.save(from_files({"SKILL.md": text, **odd}), "local:tests")
    uri = {"uri": "skill://yard/odd-names/SKILL.md"}
    got = (await ask(wire, "/mcp/both", "skills/get", uri, legacy=legacy))["result"]["skill"]
    assert [one["uri"].removeprefix("skill://yard/odd-names/") for one in got["resources"]] == [
        "SKILL.md",
        "my%20notes/50%25%20%231%3F.md",
        "%C3%BC.md",
    ]
    inside = {"uri": "skill://yard/odd-names/my%20notes"}
    (child,) = (await ask(wire, "/mcp/both", "resources/directory/read", inside, legacy=legacy))["result"]["resources"]
    assert (child["name"], child["uri"]) == ("50% #1?.md", got["resources"][1]["uri"])
    read = await ask(wire, "/mcp/both", "resources/read", {"uri": child["uri"]}, legacy=legacy)
    assert read["result"]["contents"][0]["text"] == "odd"


async def test_an_argument_that_a_model_leaves_empty_is_not_given(wire: Wire) -> None:
    for empty in ("", None):
        loaded = await use(wire, "LOAD_SKILL", {"skill_id": empty, "skill_name": "make-tea"})
        assert loaded["results"][0]["file_id"] == "make-tea"


@ERAS
async def test_the_extension_is_declared_and_served_only_where_a_server_has_skills(wire: Wire, legacy: bool) -> None:
    async def declared(path: str) -> Any:
        if legacy:
            return (await wire.initialize(path=path)).welcome["capabilities"].get("extensions", {})
        return (await wire.modern("server/discover", path=path)).json["result"]["capabilities"]["extensions"]

    skills = "io.modelcontextprotocol/skills"
    assert (await declared("/mcp/both"))[skills] == {"directoryRead": True}
    assert skills not in await declared("/mcp")
    assert (await ask(wire, "/mcp", "skills/list", legacy=legacy))["result"]["skills"] == []
    unknown = await ask(wire, "/mcp", "skills/get", {"uri": "skill://yard/make-tea/SKILL.md"}, legacy=legacy)
    assert unknown["error"]["code"] == -32602


async def test_both_eras_hear_that_the_skills_of_their_server_are_others(app: App, wire: Wire) -> None:
    session = await wire.initialize(path="/mcp/tea")
    legacy = session.wire.open("GET", "/mcp/tea", headers={"Accept": "text/event-stream", "Mcp-Session-Id": session.id})
    await legacy.until(lambda answer: answer.status != 0)
    wanted = {"notifications": {"resourcesListChanged": True}}
    modern = wire.modern_open("subscriptions/listen", wanted, request_id="s", path="/mcp/tea")
    await modern.frames(1)
    await app.skills.save(skill("brew-beer"), "local:tests")  # no skill of this server: nobody is told
    async with asyncio.timeout(10):
        await app.skills.save(skill("make-cocoa"), "local:tests")
        (_, told), (legacy_told,) = await modern.frames(2), await legacy.frames(1)
        await app.skills.remove("make-cocoa")
        await modern.frames(3)
    assert told["method"] == legacy_told["method"] == "notifications/resources/list_changed"
    for request in (modern, legacy):
        request.disconnect()
        await request.done()
