"""Typed Python functions as tools, resources and prompts."""

from toolyard.providers.python.context import Context, ToolError
from toolyard.providers.python.decorator import PythonTool, tool
from toolyard.providers.python.offers import completion, prompt, resource
from toolyard.providers.python.provider import PythonProvider
from toolyard.providers.python.results import Image

__all__ = ["Context", "Image", "PythonProvider", "PythonTool", "ToolError", "completion", "prompt", "resource", "tool"]
