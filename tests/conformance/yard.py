"""The yards that the suite is run against: our own fixtures, and a yard in front of another server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import toolyard
from tests.conformance import fixtures, task_tools
from tests.conformance.schemas import HEADED, KEYWORDS
from tests.faces.mcp.yard import Scripted, echo
from toolyard.app import App, Settings
from toolyard.catalog import Server, ToolSettings
from toolyard.core.call import ToolResult
from toolyard.core.schema import Schema
from toolyard.faces.mcp import build
from toolyard.manifest import Manifest
from toolyard.providers.base import Invocation
from toolyard.providers.mcp import McpHttpProvider
from toolyard.providers.python import PythonProvider
from toolyard.serving import listening_socket, serving

TASK_AFTER = 0.5
"""Seconds after which a call is a task, where the client knows tasks: the suite computes for a second."""
SERVER = "conformance"
ALWAYS_TASKS = ("failing_job", "protocol_error_job", "confirm_delete", "multi_input")
"""MCP has no word for it in a tool's definition, so an operator says it of the tools of another server."""


@asynccontextmanager
async def own(folder: Path) -> AsyncGenerator[str, None]:
    """The address of a yard that holds every fixture itself."""
    settings = Settings(data_dir=folder, demo=True, task_after_seconds=TASK_AFTER, manifest_dir=Path(__file__).parent)
    async with App.running(settings, Manifest(skills=("skills",))) as app:
        module = PythonProvider.from_module("conf", fixtures.__name__)
        await app.supervisor.add_and_start(module)
        await app.supervisor.add_and_start(PythonProvider.from_module("tasks", task_tools.__name__))
        await app.supervisor.add_and_start(_raw(module))
        async with _served(app, ("conf:*", "tasks:*", "raw:*")) as url:
            yield url


@asynccontextmanager
async def in_front_of(url: str, era: Literal["modern", "legacy"], folder: Path) -> AsyncGenerator[str, None]:
    """The address of a yard whose only provider is the server at `url`, spoken to in this era."""
    async with App.running(Settings(data_dir=folder, demo=True, task_after_seconds=TASK_AFTER)) as app:
        await app.supervisor.add_and_start(McpHttpProvider("up", url, egress=app.egress, era=era))
        for tool_id in {f"up:{name}" for name in ALWAYS_TASKS} & {entry.id for entry in app.catalog.snapshot.entries}:
            await app.set_tool_settings(tool_id, ToolSettings(task="always"))
        async with _served(app, ("up:*",)) as front:
            yield front


@asynccontextmanager
async def _served(app: App, tools: tuple[str, ...]) -> AsyncGenerator[str, None]:
    await app.save_server(Server(SERVER, tools=tools, names="bare", skills=("*",)))
    bound = listening_socket("127.0.0.1", 0)
    async with serving(build(app), bound):
        yield f"http://localhost:{bound.getsockname()[1]}/mcp/{SERVER}"


def _raw(module: PythonProvider) -> Scripted:
    """Tools whose schemas no type hints can say, and those that change a list."""
    raw = Scripted("raw")

    async def change_tools(_: Invocation) -> ToolResult:
        raw.add(f"added_{len(raw.invocations)}", echo)
        raw.changed()
        return ToolResult.of_text("The list of tools is another one.")

    async def change_prompts(invocation: Invocation) -> ToolResult:
        await module.add(toolyard.prompt(name=f"added_{len(raw.invocations)}")(_added))
        return ToolResult.of_text("The list of prompts is another one.")

    raw.add("json_schema_2020_12_tool", echo, input_schema=Schema(KEYWORDS))
    raw.add("test_x_mcp_header", echo, input_schema=Schema(HEADED))
    raw.add("test_trigger_tool_change", change_tools)
    raw.add("test_trigger_prompt_change", change_prompts)
    return raw


def _added() -> str:
    """Was added while the yard ran."""
    return "An added prompt."
