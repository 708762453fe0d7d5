"""The tools that the official suite's scenarios for tasks call, under the names they want.

The yard that serves them gives out tasks after half a second (`Settings.task_after_seconds`), so that a computation of
one second is one.
"""

from __future__ import annotations

import asyncio

import toolyard

INTERNAL_ERROR = -32603


@toolyard.tool(task="never", read_only=True)
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}!"


@toolyard.tool(time_limit=120, read_only=True)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Computes for a while."""
    await asyncio.sleep(seconds)
    return f"{label or 'The computation'} took {seconds:g} s."


@toolyard.tool(task="always")
async def failing_job() -> str:
    """Fails after a second."""
    await asyncio.sleep(1)
    raise toolyard.ToolError("This job always fails.")


@toolyard.tool(task="always")
async def protocol_error_job() -> str:
    """Ends with a JSON-RPC error in place of a result."""
    raise toolyard.ProtocolError(INTERNAL_ERROR, "This job breaks the protocol.")
