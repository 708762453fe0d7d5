"""Tools with an effect outside the database: each appends one line, durably, to the file named by `CHAOS_EFFECTS`.

The line is what happened; the call's record is only what we say happened. The checker compares the two.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolyard import Context, tool

FILE = "CHAOS_EFFECTS"


@dataclass(frozen=True, slots=True)
class Effect:
    """One line. `label` names the operation that a client asked for."""

    tool: str
    label: str
    value: str
    pid: int
    call_id: str = ""


def append(effect: Effect) -> None:
    """Durable when it returns."""
    line = json.dumps(
        {"tool": effect.tool, "label": effect.label, "value": effect.value, "pid": effect.pid, "call": effect.call_id}
    )
    descriptor = os.open(os.environ[FILE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path) -> list[Effect]:
    """Every effect so far, in order."""
    if not path.exists():
        return []
    return [_of(json.loads(line)) for line in path.read_text("utf-8").splitlines() if line.endswith("}")]


def _of(line: Mapping[str, Any]) -> Effect:
    return Effect(line["tool"], line["label"], line["value"], line["pid"], line.get("call", ""))


async def _act(name: str, label: str, value: str, seconds: float, call_id: str) -> str:
    """Some of the time passes before the effect and some after it, so that a kill can fall on either side."""
    await asyncio.sleep(seconds / 2)
    append(Effect(name, label, value, os.getpid(), call_id))
    await asyncio.sleep(seconds / 2)
    return f"{label}={value}"


@tool
async def act(context: Context, label: str, value: str = "", seconds: float = 0.0) -> str:
    """Does something that must not happen twice."""
    return await _act("act", label, value, seconds, context.call_id)


@tool(idempotent=True)
async def put(context: Context, label: str, value: str = "", seconds: float = 0.0) -> str:
    """Does something that may happen again."""
    return await _act("put", label, value, seconds, context.call_id)


@tool(read_only=True)
async def look(label: str, value: str = "", seconds: float = 0.0) -> str:
    """Changes nothing, and leaves no line."""
    await asyncio.sleep(seconds)
    return f"{label}={value}"
