"""Toolyard: one catalog of tools, one governed call path, every face an agent, a developer or an operator needs.

The public Python API; everything else is private. Names are loaded on first use, so importing this is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolyard.app import App as Toolyard
    from toolyard.core.errors import ProtocolError
    from toolyard.providers.python import Context, Image, ToolError, completion, prompt, resource, tool

    __version__: str

__all__ = [
    "Context",
    "Image",
    "ProtocolError",
    "ToolError",
    "Toolyard",
    "__version__",
    "completion",
    "prompt",
    "resource",
    "tool",
]

_HOMES = {
    "Context": ("toolyard.providers.python", "Context"),
    "Image": ("toolyard.providers.python", "Image"),
    "ProtocolError": ("toolyard.core.errors", "ProtocolError"),
    "ToolError": ("toolyard.providers.python", "ToolError"),
    "Toolyard": ("toolyard.app", "App"),
    "completion": ("toolyard.providers.python", "completion"),
    "prompt": ("toolyard.providers.python", "prompt"),
    "resource": ("toolyard.providers.python", "resource"),
    "tool": ("toolyard.providers.python", "tool"),
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("toolyard")
    elif home := _HOMES.get(name):
        value = getattr(import_module(home[0]), home[1])
    else:
        raise AttributeError(f"module 'toolyard' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
