"""Upstream MCP servers of both eras, over streamable HTTP and stdio. Everything passes through verbatim."""

from toolyard.providers.mcp.http import McpHttpProvider
from toolyard.providers.mcp.stdio import McpStdioProvider

__all__ = ["McpHttpProvider", "McpStdioProvider"]
