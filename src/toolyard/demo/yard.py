"""The demo as one thing: its manifest, and the pet shop that runs while it is open."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.demo.petshop import DOCUMENT
from toolyard.manifest import Manifest, McpConfig, OpenApiConfig, PythonConfig, ServerConfig

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

CLUSTER = "Pet shop"
SKILLS = Path(__file__).parent / "skills"


def demo_manifest(*, petshop_url: str, data_dir: Path) -> Manifest:
    """`petshop:*` from its OpenAPI document, `notes:*` from a child process over stdio, `functions:*` from Python."""
    notes = data_dir.resolve() / "demo-notes.json"
    return Manifest(
        providers=(
            OpenApiConfig(id="petshop", url=str(DOCUMENT), cluster=CLUSTER, base_url=petshop_url),
            McpConfig(id="notes", command=(sys.executable, "-m", "toolyard.demo.notes", str(notes))),
            PythonConfig(id="functions", module="toolyard.demo.functions"),
        ),
        servers=(
            ServerConfig(
                id="readonly",
                title="Looking only",
                description="The demo's tools that change nothing.",
                tools=(
                    "petshop:list*",
                    "petshop:get*",
                    "notes:list",
                    "notes:search",
                    "functions:*",
                ),
            ),
            ServerConfig(
                id="agent",
                title="For agents",
                description="The demo's tools by RESOLVE_ACTIONS and EXECUTE_ACTION, with a skill for taking in a pet.",
                agent_mode=True,
                retrieve_skill=True,
            ),
        ),
        skills=(str(SKILLS),),
    )


@asynccontextmanager
async def petshop_running() -> AsyncGenerator[str]:
    """Serve the pet shop on a free loopback port; gives its base URL."""
    from toolyard.serving import listening_socket, serving

    with listening_socket("127.0.0.1", 0) as socket:
        async with serving(_shop(), socket):
            yield f"http://127.0.0.1:{socket.getsockname()[1]}"


def _shop() -> ASGIApp:
    """The shop opens with its first customer, so that a start stays quick."""
    opened: list[ASGIApp] = []

    async def door(scope: Scope, receive: Receive, send: Send) -> None:
        if not opened:
            from toolyard.demo.petshop.app import build

            opened.append(build())
        await opened[0](scope, receive, send)

    return door
