"""A program: the usual scripted app over stdio. `python -m tests.faces.mcp.stdio_yard FOLDER`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.faces.mcp.yard import Scripted, fill
from toolyard.app import App, Settings
from toolyard.core.call import ToolResult
from toolyard.faces.mcp import serve_stdio
from toolyard.providers.base import Invocation


async def chatty(_: Invocation) -> ToolResult:
    """What a careless tool does: it prints, in Python and below it."""
    print("stray words on stdout", flush=True)
    os.write(1, b"and some from below\n")
    return ToolResult.of_text("quiet")


async def main(folder: str) -> None:
    async with App.running(Settings(data_dir=Path(folder))) as app:
        provider = Scripted("kit")
        slow = fill(provider)
        slow.release.set()
        provider.add("chatty", chatty)

        async def grow(_: Invocation) -> ToolResult:
            provider.add("grown", chatty)
            provider.changed()
            return ToolResult.of_text("grown")

        provider.add("grow", grow)
        await app.supervisor.add_and_start(provider)
        await serve_stdio(app)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
