"""The manifest: one YAML file that declares providers, servers, agents, skills folders and settings (API.md)."""

from toolyard.manifest.bodies import dump_provider, dump_server, parse_provider, parse_server
from toolyard.manifest.load import ManifestMistakes, load, loads
from toolyard.manifest.models import (
    AgentConfig,
    AgentShortForm,
    ContextConfig,
    JavaScriptConfig,
    JavaScriptTool,
    Manifest,
    McpConfig,
    McpShortForm,
    ModelConfig,
    OpenApiConfig,
    ProviderConfig,
    PythonConfig,
    ReevaluationTool,
    ServerConfig,
    SettingsConfig,
    WebhookConfig,
    WebhookTool,
)
from toolyard.manifest.schema import json_schema
from toolyard.manifest.secret import Secret

__all__ = [
    "AgentConfig",
    "AgentShortForm",
    "ContextConfig",
    "JavaScriptConfig",
    "JavaScriptTool",
    "Manifest",
    "ManifestMistakes",
    "McpConfig",
    "McpShortForm",
    "ModelConfig",
    "OpenApiConfig",
    "ProviderConfig",
    "PythonConfig",
    "ReevaluationTool",
    "Secret",
    "ServerConfig",
    "SettingsConfig",
    "WebhookConfig",
    "WebhookTool",
    "dump_provider",
    "dump_server",
    "json_schema",
    "load",
    "loads",
    "parse_provider",
    "parse_server",
]
