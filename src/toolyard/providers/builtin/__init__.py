"""Tools that every yard has, under the namespace `toolyard`."""

from toolyard.providers.builtin.provider import BuiltinProvider, BuiltinTool

__all__ = ["BuiltinProvider", "BuiltinTool"]
