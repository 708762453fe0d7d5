"""tools/list: what is shown of each tool, pages and cursors, and bytes that are made once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faces.mcp.conftest import Yard
from tests.faces.mcp.yard import Scripted, Wire, echo
from tests.requirements import requirement
from toolyard.catalog import Server, ToolSettings
from toolyard.core.schema import Components, Schema
from toolyard.core.tool import Annotations, Kind
from toolyard.faces.mcp import lists

BUILT_IN = "toolyard_get_call_result_action"


async def names(wire: Wire, **kwargs: Any) -> list[str]:
    return [tool["name"] for tool in (await wire.modern("tools/list", **kwargs)).json["result"]["tools"]]


@requirement("tool.discovery")
async def test_each_tool_has_its_name_description_and_input_schema(wire: Wire) -> None:
    tools = (await wire.modern("tools/list")).json["result"]["tools"]
    shown = {tool["name"]: tool for tool in tools if tool["name"] != BUILT_IN}
    assert shown == {
        "kit_echo_action": {
            "name": "kit_echo_action",
            "title": "Echo",
            "description": "Does echo.",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": True},
        },
        "kit_fail_action": {
            "name": "kit_fail_action",
            "description": "Does fail.",
            "inputSchema": {"type": "object"},
        },
        "kit_slow_action": {
            "name": "kit_slow_action",
            "description": "Does slow.",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
        },
    }


async def test_both_eras_list_the_same_and_only_the_modern_one_says_how_long_it_holds(wire: Wire) -> None:
    modern = (await wire.modern("tools/list")).json["result"]
    legacy = (await (await wire.initialize()).send("tools/list")).json["result"]
    assert legacy == {"tools": modern["tools"]}
    assert {key: value for key, value in modern.items() if key != "tools"} == {
        "resultType": "complete",
        "ttlMs": 30_000,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "toolyard", "title": "Toolyard", "version": "0.1.0"}},
    }


WIRE_TOOL = {
    "name": "search things",
    "title": "Search",
    "description": "Finds   things.\n\tVerbatim é.",
    "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}],
    "inputSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"q": {"$anchor": "q", "type": "string"}},
        "properties": {"q": {"$ref": "#q"}},
        "allOf": [{"if": {"required": ["q"]}, "then": {"minProperties": 1}, "else": True}],
        "x-vendor": {"kept": [1, None]},
    },
    "outputSchema": {"type": "object", "properties": {"found": {"type": "integer"}}},
    "annotations": {"title": "Finder", "readOnlyHint": True, "vendorHint": "x"},
    "_meta": {"vendor/key": {"deep": [1, 2.5, "three"]}},
    "execution": {"taskSupport": "optional"},
}


async def add_mcp(yard: Yard, *definitions: dict[str, Any]) -> None:
    upstream = Scripted("up", Kind.MCP)
    for wire in definitions:
        upstream.add(
            wire["name"],
            echo,
            description=wire.get("description", ""),
            input_schema=Schema(wire["inputSchema"]),
            output_schema=wire.get("outputSchema"),
            wire=wire,
        )
    await yard.app.supervisor.add_and_start(upstream)


@requirement("provider.verbatim")
async def test_an_mcp_tool_is_shown_verbatim_apart_from_its_name(yard: Yard) -> None:
    await add_mcp(yard, WIRE_TOOL)
    (name,) = [name for name in await names(yard.wire) if name.startswith("up_")]
    shown = await tool_named(yard, name)
    assert shown == {**WIRE_TOOL, "name": name}
    assert shown == await tool_named(yard, name, legacy=True)


async def tool_named(yard: Yard, name: str, *, legacy: bool = False) -> dict[str, Any]:
    answer = await (await yard.wire.initialize()).send("tools/list") if legacy else await yard.wire.modern("tools/list")
    return next(tool for tool in answer.json["result"]["tools"] if tool["name"] == name)


async def test_an_operators_description_replaces_a_providers(yard: Yard) -> None:
    await add_mcp(yard, {**WIRE_TOOL, "name": "search"})
    await yard.app.set_tool_settings("up:search", ToolSettings(description="Ask here first."))
    assert (await tool_named(yard, "up_search_action"))["description"] == "Ask here first."


async def test_legacy_clients_are_not_promised_a_structure_they_cannot_take(yard: Yard) -> None:
    await add_mcp(yard, {"name": "count", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}})
    assert "outputSchema" in await tool_named(yard, "up_count_action")
    assert "outputSchema" not in await tool_named(yard, "up_count_action", legacy=True)


async def test_a_tool_whose_parameter_headers_are_invalid_is_hidden_from_modern_clients_alone(yard: Yard) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}}
    await add_mcp(yard, {"name": "bad", "inputSchema": schema}, {"name": "good", "inputSchema": {"type": "object"}})
    shown = await names(yard.wire)
    assert "up_good_action" in shown
    assert "up_bad_action" not in shown
    assert (await tool_named(yard, "up_bad_action", legacy=True))["inputSchema"] == schema


async def test_shared_components_are_closed_over(yard: Yard) -> None:
    components = Components({"A": {"$ref": "#/$defs/B"}, "B": {"type": "string"}, "C": {}}, {"A": ("B",)})
    schema = Schema({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}, refs=("A",), components=components)
    other = Scripted("api", Kind.OPENAPI)
    other.add("get", echo, input_schema=schema, output_schema={"type": "object"}, annotations=Annotations())
    await yard.app.supervisor.add_and_start(other)
    shown = await tool_named(yard, "api_get_action")
    assert shown["inputSchema"]["$defs"] == {"A": {"$ref": "#/$defs/B"}, "B": {"type": "string"}}
    assert "annotations" not in shown


async def test_an_unavailable_tool_stays_listed_and_one_switched_off_does_not(yard: Yard) -> None:
    yard.app.catalog.set_availability("kit", False, "It is down.")
    await yard.app.set_tool_settings("kit:fail", ToolSettings(enabled=False))
    assert await names(yard.wire) == ["kit_echo_action", "kit_slow_action", BUILT_IN]


async def test_a_server_shows_its_slice_and_its_own_names(yard: Yard) -> None:
    await yard.app.save_server(Server("bare", tools=("kit:*", "!kit:slow"), names="bare"))
    assert await names(yard.wire, path="/mcp/bare") == ["echo", "fail"]
    good = await yard.wire.modern("tools/call", {"name": "echo"}, path="/mcp/bare")
    outside = await yard.wire.modern("tools/call", {"name": "slow"}, path="/mcp/bare")
    assert good.json["result"]["isError"] is False
    assert outside.json["error"] == {"code": -32602, "message": "Unknown tool: slow"}


async def fill_with(yard: Yard, count: int) -> Scripted:
    many = Scripted("many")
    for number in range(count):
        many.add(f"t{number:04}", echo)
    await yard.app.supervisor.add_and_start(many)
    return many


async def all_pages(wire: Wire, cursor: str | None = None) -> list[list[str]]:
    pages: list[list[str]] = []
    while True:
        result = (await wire.modern("tools/list", {"cursor": cursor} if cursor else {})).json["result"]
        pages.append([tool["name"] for tool in result["tools"]])
        cursor = result.get("nextCursor")
        if cursor is None:
            return pages


async def test_five_hundred_tools_are_one_page(yard: Yard) -> None:
    await fill_with(yard, 500)
    assert [len(page) for page in await all_pages(yard.wire)] == [504]


async def test_pages_hold_every_tool_once_and_in_order(yard: Yard) -> None:
    await fill_with(yard, 2100)
    pages = await all_pages(yard.wire)
    assert [len(page) for page in pages] == [1000, 1000, 104]
    flat = [name for page in pages for name in page]
    assert flat == sorted(set(flat))


async def test_a_page_of_large_schemas_ends_early(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "PAGE_BYTES", 300)
    pages = await all_pages(yard.wire)
    assert len(pages) > 1
    assert [name for page in pages for name in page] == [
        "kit_echo_action",
        "kit_fail_action",
        "kit_slow_action",
        BUILT_IN,
    ]


async def test_a_cursor_outlives_a_change_of_the_list(yard: Yard) -> None:
    many = await fill_with(yard, 1500)
    first = (await yard.wire.modern("tools/list")).json["result"]
    last = first["tools"][-1]["name"]
    many.listed = [tool for tool in many.listed if f"many_{tool.name}_action" != last][5:]
    await yard.app.supervisor.refresh("many")
    rest = [name for page in await all_pages(yard.wire, first["nextCursor"]) for name in page]
    assert last not in rest
    assert rest == [name for name in (await names_of_everything(yard)) if name > last]


async def names_of_everything(yard: Yard) -> list[str]:
    return [name for page in await all_pages(yard.wire) for name in page]


async def test_a_page_is_made_once_and_made_again_when_a_client_would_see_another(yard: Yard) -> None:
    view = yard.edge.face.view(yard.app.servers["default"])
    first = yard.edge.face.lists.page(view, lists.Era.MODERN, None, b"{}")
    assert yard.edge.face.lists.page(view, lists.Era.MODERN, None, b"{}") is first
    yard.app.catalog.set_availability("kit", False, "down")
    same = yard.edge.face.view(yard.app.servers["default"])
    assert yard.edge.face.lists.page(same, lists.Era.MODERN, None, b"{}") is first
    await yard.app.set_tool_settings("kit:fail", ToolSettings(enabled=False))
    other = yard.edge.face.view(yard.app.servers["default"])
    assert yard.edge.face.lists.page(other, lists.Era.MODERN, None, b"{}") is not first


async def test_kept_pages_stay_within_their_room(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "KEPT_BYTES", 3000)
    kept = yard.edge.face.lists
    for number in range(20):
        await yard.app.set_tool_settings("kit:fail", ToolSettings(description=f"Version {number}."))
        assert f"Version {number}." in (await yard.wire.modern("tools/list")).body.decode()
    assert kept.kept_bytes <= 3000


async def test_listing_is_the_same_bytes_before_and_after_a_call(wire: Wire) -> None:
    before = (await wire.modern("tools/list")).body
    await wire.modern("tools/call", {"name": "kit_echo_action"})
    assert (await wire.modern("tools/list")).body == before
