"""A kind of provider in one file: `kind: clock` in a manifest tells the time of the places that it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from toolyard.plugins import (
    Annotations,
    CallError,
    ErrorCode,
    Invocation,
    Kind,
    PluginConfig,
    ProviderError,
    ProviderKind,
    Schema,
    Tool,
    ToolResult,
)


class ClockConfig(PluginConfig, frozen=True, kw_only=True, tag="clock"):
    """What an entry of the manifest may say, beside `id`, `timeout` and what every provider has."""

    zones: dict[str, str]
    """Places and their time zones: `{Kyoto: Asia/Tokyo}`."""


class ClockProvider:
    """One tool for each place."""

    kind = Kind.PLUGIN

    def __init__(self, config: ClockConfig) -> None:
        self.id = config.id
        self.address = f"clock of {', '.join(config.zones)}"
        self._names = {f"time_in_{place.lower()}": zone for place, zone in config.zones.items()}

    async def start(self) -> None:
        for zone in self._names.values():
            try:
                ZoneInfo(zone)
            except (ZoneInfoNotFoundError, ValueError) as error:
                raise ProviderError(f"{zone!r} is no time zone.", suggestion="Such as Asia/Tokyo.") from error

    async def tools(self) -> Sequence[Tool]:
        return [
            Tool(
                namespace=self.id,
                name=name,
                description=f"Tells the present time in the zone {zone}.",
                input_schema=Schema({"type": "object", "additionalProperties": False}),
                annotations=Annotations(read_only=True),
                kind=Kind.PLUGIN,
            )
            for name, zone in self._names.items()
        ]

    async def call(self, invocation: Invocation) -> ToolResult:
        zone = self._names.get(invocation.tool.name)
        if zone is None:
            raise CallError(ErrorCode.UPSTREAM, "This place is no longer known.")
        return ToolResult.of_value({"zone": zone, "time": datetime.now(ZoneInfo(zone)).isoformat(timespec="seconds")})

    async def health(self) -> None:
        """There is nothing that could be down."""

    def on_change(self, notify: Callable[[], None]) -> None:
        """The list is that of the configuration."""

    async def close(self) -> None:
        """There is nothing to release."""


KIND = ProviderKind(config=ClockConfig, build=ClockProvider)
