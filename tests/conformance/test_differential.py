"""The same script against the SDK's server and against us in front of it: a client must not see a difference."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

from tests.conformance import yard
from tests.conformance.sdk_server import everything
from tests.faces.mcp.test_foreign_clients import CLIENT, run_node
from tests.faces.mcp.test_sdk_clients import connected
from tests.node import npm_install
from tests.requirements import requirement

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SCRIPT = Path(__file__).with_name("differential.mjs")
CALLS: dict[str, dict[str, Any]] = {
    "test_simple_text": {},
    "test_image_content": {},
    "test_audio_content": {},
    "test_embedded_resource": {},
    "test_multiple_content_types": {},
    "test_tool_with_progress": {},
    "test_elicitation": {"message": "Who?"},
    "test_sampling": {"prompt": "Say it."},
    "test_input_required_result_list_roots": {},
    "test_input_required_result_multi_round": {},
    "test_input_required_result_multiple_inputs": {},
    "greet": {"name": "Ada"},
}
ASKING = frozenset(name for name in CALLS if name.startswith(("test_input", "test_samp", "test_elicit")))
URIS = ("test://static-text", "test://static-binary", "test://template/7/data")
PROMPTS: dict[str, dict[str, str] | None] = {
    "test_simple_prompt": None,
    "test_prompt_with_arguments": {"arg1": "a", "arg2": "b"},
    "test_prompt_with_embedded_resource": {"resourceUri": "test://x"},
    "test_prompt_with_image": None,
    "test_input_required_result_prompt": None,
}
OURS = ("toolyard/", "io.modelcontextprotocol/")
"""Prefixes of what a hop may add to `_meta`: who it is, and its record of the call."""
OWN_TOOL = "toolyard_get_call_result_action"


@pytest.fixture
async def direct() -> AsyncIterator[str]:
    async with everything() as url:
        yield url


def plain(value: Any) -> Any:
    """The whole object without what a hop may say of itself, how long a list may be kept, and its own tool."""
    return _without_own(value.model_dump(mode="json", by_alias=True, exclude_none=True))


def _without_own(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_own(one) for one in value if not (isinstance(one, dict) and one.get("name") == OWN_TOOL)]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_own(one) for key, one in value.items() if key not in {"_meta", "ttlMs", "cacheScope"}}
    meta = {key: one for key, one in value.get("_meta", {}).items() if not key.startswith(OURS)}
    return {**kept, "_meta": meta} if meta else kept


async def outcome(request: Awaitable[Any]) -> Any:
    from mcp.shared.exceptions import MCPError

    try:
        return plain(await request)
    except MCPError as error:
        return {"code": error.error.code}


async def script(url: str, mode: str) -> dict[str, Any]:
    """Everything that a client sees, its answers to questions and what it was asked among it."""
    import mcp_types as types

    asked: list[Any] = []
    told: list[Any] = []

    async def form(_: Any, params: Any) -> types.ElicitResult:
        asked.append(plain(params))
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={name: f"my {name}" for name in fields})

    async def sample(_: Any, params: Any) -> types.CreateMessageResult:
        asked.append(plain(params))
        content = types.TextContent(text="Paris")
        return types.CreateMessageResult(role="assistant", model="none", content=content)

    async def roots(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate({"roots": [{"uri": "file:///work", "name": "work"}]})

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    callbacks = {"elicitation_callback": form, "sampling_callback": sample, "list_roots_callback": roots}
    async with connected(url, mode, **callbacks) as client:
        tools = plain(await client.list_tools())["tools"]
        found: dict[str, Any] = {
            "tools": sorted(tools, key=lambda tool: tool["name"]),
            "templates": plain(await client.list_resource_templates()),
        }
        for name, arguments in CALLS.items():
            listener = None if name in ASKING else progress  # a hop may tell that it waits for an answer
            found[name] = await outcome(client.call_tool(name, arguments, progress_callback=listener))
        failed = await client.call_tool("test_error_handling", {})
        found["failed"] = (failed.is_error, plain(failed)["content"])
        found["unknown"] = await outcome(client.call_tool("nobody", {}))
        for uri in URIS:
            found[uri] = await outcome(client.read_resource(uri))
        for name, given in PROMPTS.items():
            found[f"prompt {name}"] = await outcome(client.get_prompt(name, given))
        found["completed"] = await outcome(
            client.complete(types.PromptReference(name="test_prompt_with_arguments"), {"name": "arg1", "value": "par"})
        )
        resources = plain(await client.list_resources())["resources"]
        prompts = plain(await client.list_prompts())["prompts"]
    found["resources"] = sorted(resources, key=lambda one: one["uri"])
    found["prompts"] = sorted(prompts, key=lambda one: one["name"])
    return {**found, "asked": sorted(asked, key=str), "progress": told}


@requirement("mcp.conformance")
@requirement("mcp.eras")
@pytest.mark.parametrize("behind", ["legacy", "modern"])
async def test_the_sdk_client_sees_no_difference_through_us(
    direct: str, behind: Literal["legacy", "modern"], tmp_path: Path
) -> None:
    async with yard.in_front_of(direct, behind, tmp_path) as url:
        for mode in ("legacy", "2026-07-28"):
            async with asyncio.timeout(30):
                expected = await script(direct, mode)
                assert await script(url, mode) == expected
            assert len(expected["progress"]) == 3
            assert expected["asked"]


async def typescript(url: str, era: str) -> Any:
    package = await asyncio.to_thread(npm_install, *CLIENT)
    calls = {name: given for name, given in CALLS.items() if name not in ASKING or name == "test_elicitation"}
    script_input = orjson.dumps({"calls": calls, "uris": URIS}).decode()
    code, out, err = await run_node(SCRIPT, package, url, era, script_input)
    assert code == 0, err.decode()
    return _without_own(orjson.loads(out))


@requirement("mcp.conformance")
@pytest.mark.node
@pytest.mark.parametrize("behind", ["legacy", "modern"])
async def test_the_typescript_client_sees_no_difference_through_us(
    direct: str, behind: Literal["legacy", "modern"], tmp_path: Path
) -> None:
    async with yard.in_front_of(direct, behind, tmp_path) as url:
        for era in ("legacy", "modern"):
            expected = await typescript(direct, era)
            assert await typescript(url, era) == expected
            assert len(expected["calls"]) > 5
