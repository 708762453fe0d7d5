"""An MCP server over streamable HTTP, of either era."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from toolyard.core.errors import BadInput, ProviderError
from toolyard.core.json import JsonObject, JsonValue
from toolyard.egress import Egress, without_secrets
from toolyard.providers.mcp import wire
from toolyard.providers.mcp.failures import BadAnswer, RpcFault
from toolyard.providers.mcp.legacy import LegacyHttp
from toolyard.providers.mcp.link import NO_META, NO_NEWS, Link
from toolyard.providers.mcp.modern import ModernHttp
from toolyard.providers.mcp.provider import McpProvider

EraSetting: TypeAlias = Literal["auto", "modern", "legacy"]
_INCONCLUSIVE = frozenset((401, 403, 408, 425, 429))


class McpHttpProvider(McpProvider):
    """`era` "auto" asks the server at each start; `time_limit` (seconds) is its tools' own limit.

    `headers` go with every request and are never shown; the address is shown without credentials and query.
    """

    def __init__(
        self,
        provider_id: str,
        url: str,
        *,
        egress: Egress,
        headers: Mapping[str, str] | None = None,
        era: EraSetting = "auto",
        time_limit: float = 30,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise BadInput(
                f"{without_secrets(url)!r} is no address of an MCP server.",
                where="url",
                suggestion="Give a whole URL, such as https://example.com/mcp.",
            )
        super().__init__(provider_id, without_secrets(url), time_limit=time_limit)
        self._url = url
        self._egress = egress
        self._headers = dict(headers or {})
        self._era: EraSetting = era

    async def _connect(self) -> tuple[Link, JsonObject]:
        if self._era == "legacy":
            return await self._legacy()
        modern = ModernHttp(self._id, self._url, egress=self._egress, headers=self._headers)
        try:
            found = await _discovered(modern)
        except RpcFault as fault:
            if self._era == "modern" or fault.status in _INCONCLUSIVE or _is_modern(fault):
                raise _refused(self._address, fault) from fault
            return await self._legacy()
        except BadAnswer:
            if self._era == "modern":
                raise
            return await self._legacy()
        if self._era == "auto" and wire.MODERN not in versions_of(found.get("supportedVersions")):
            return await self._legacy()
        capabilities = found.get("capabilities")
        return modern, capabilities if isinstance(capabilities, dict) else {}

    async def _connect_asking(self, declared: JsonObject) -> Link:
        link, _ = await self._legacy(declared)
        link.listen(NO_NEWS, announced=False)  # changes are heard on the provider's first session
        return link

    async def _legacy(self, declared: JsonObject = NO_META) -> tuple[Link, JsonObject]:
        link = LegacyHttp(
            self._id,
            self._url,
            egress=self._egress,
            headers=self._headers,
            limit=self._time_limit,
            declared=declared,
        )
        try:
            await link.initialize()
        except RpcFault as fault:
            raise _refused(self._address, fault) from fault
        except TimeoutError as error:
            raise ProviderError(f"{self._address} did not answer to initialize in time.") from error
        return link, link.capabilities


async def _discovered(modern: ModernHttp) -> JsonObject:
    """Asked once more of a server that refuses the version, and then names it among those that it supports."""
    try:
        return await modern.discover()
    except RpcFault as fault:
        supported = fault.data.get("supported") if isinstance(fault.data, dict) else None
        if fault.code != wire.UNSUPPORTED_VERSION or wire.MODERN not in versions_of(supported):
            raise
    return await modern.discover()


def versions_of(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _is_modern(fault: RpcFault) -> bool:
    """An error that only a modern server knows; a server without a version of ours may still speak a legacy one."""
    if fault.code == wire.UNSUPPORTED_VERSION:
        supported = versions_of(fault.data.get("supported")) if isinstance(fault.data, dict) else []
        return not any(version in wire.LEGACY_VERSIONS for version in supported)
    return fault.code in wire.MODERN_ERRORS


def _refused(address: str, fault: RpcFault) -> ProviderError:
    if fault.status in (401, 403):
        return ProviderError(fault.message, suggestion="Check its key (`api_key` or `headers`).")
    return ProviderError(f"{address} refused: {fault.message}")
