"""What a package needs to add a kind of provider (docs/providers.md). Stable: what is not here is private."""

from toolyard.core.call import Progress, ToolResult
from toolyard.core.errors import CallError, ErrorCode, ProviderError
from toolyard.core.schema import Schema
from toolyard.core.tool import Annotations, Kind, Tool
from toolyard.manifest import PluginConfig, ProviderKind, Secret
from toolyard.providers.base import Invocation, Provider

__all__ = [
    "Annotations",
    "CallError",
    "ErrorCode",
    "Invocation",
    "Kind",
    "PluginConfig",
    "Progress",
    "Provider",
    "ProviderError",
    "ProviderKind",
    "Schema",
    "Secret",
    "Tool",
    "ToolResult",
]
