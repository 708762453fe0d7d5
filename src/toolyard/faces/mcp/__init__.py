"""The MCP face: one core over HTTP (both eras on one URL) and stdio, with no protocol library on its path."""

from __future__ import annotations

from toolyard.faces.mcp.edge import Edge, build
from toolyard.faces.mcp.stdio import serve_stdio

__all__ = ["Edge", "build", "serve_stdio"]
