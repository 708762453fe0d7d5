"""From a provider's configuration to the provider. Each kind's room is imported when the first of its kind is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from toolyard.app.imports import Imports
from toolyard.core.call import ToolResult
from toolyard.core.errors import BadInput, CallError, ErrorCode, ProviderError, ToolyardError
from toolyard.core.json import JsonObject
from toolyard.core.tool import Kind, Tool
from toolyard.egress import Egress
from toolyard.manifest import McpConfig, OpenApiConfig, PluginConfig, ProviderConfig, PythonConfig, kind_of
from toolyard.providers.base import Invocation, Provider


class UnusableProvider:
    """In the place of one whose kept configuration this version cannot use: it is listed, with the reason."""

    def __init__(self, provider_id: str, config: JsonObject, reason: str) -> None:
        self.id = provider_id
        known = config.get("kind")
        self.kind = Kind(str(known)) if known in {kind.value for kind in Kind} else Kind.BUILTIN
        self.address = ""
        self._reason = reason

    async def start(self) -> None:
        """
        Raises:
            ProviderError: always.
        """
        raise ProviderError(
            f"The configuration kept for provider {self.id!r} cannot be used: {self._reason}",
            suggestion="Correct it, or remove the provider.",
        )

    async def tools(self) -> Sequence[Tool]:
        return ()

    async def call(self, invocation: Invocation) -> ToolResult:
        raise CallError(ErrorCode.UPSTREAM, self._reason)

    async def health(self) -> None:
        await self.start()

    def on_change(self, notify: Callable[[], None]) -> None:
        """It never changes."""

    async def close(self) -> None:
        """It holds nothing."""


def build_provider(
    config: ProviderConfig, egress: Egress, imports: Imports, manifest_dir: Path | None
) -> Provider | None:
    """None for the kinds that are checked and kept but not served yet (webhook, javascript)."""
    match config:
        case McpConfig():
            return _mcp(config, egress)
        case OpenApiConfig():
            return imports.deferred(config, manifest_dir)
        case PythonConfig():
            from toolyard.providers.python import PythonProvider

            return PythonProvider(config.id, module=config.module, path=manifest_dir)
        case PluginConfig():
            return _added(config)
        case _:
            return None


def _added(config: PluginConfig) -> Provider:
    """
    Raises:
        BadInput: the package made no provider of it; with its cause.
    """
    try:
        built = kind_of(config).build(config)
    except ToolyardError:
        raise
    except Exception as error:
        raise BadInput(f"The provider {config.id!r} cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(built, Provider):
        raise BadInput(f"The provider {config.id!r} cannot be made: its package gave {type(built).__name__}.")
    return built


def _mcp(config: McpConfig, egress: Egress) -> Provider:
    if config.command is not None:
        from toolyard.providers.mcp import McpStdioProvider

        env = {name: secret.reveal() for name, secret in config.env.items()}
        return McpStdioProvider(config.id, config.command, env=env, cwd=config.cwd, time_limit=config.timeout)
    from toolyard.providers.mcp import McpHttpProvider

    if config.endpoint is None:
        raise BadInput(
            f"The MCP provider {config.id!r} has neither an address nor a command.",
            where="url",
            suggestion="Give it a url, a hostname, or a command.",
        )
    return McpHttpProvider(
        config.id,
        config.endpoint,
        egress=egress,
        headers=config.request_headers,
        era=config.era,
        time_limit=config.timeout,
    )
