"""What a provider may speak beyond `Provider`: resources, prompts, and completion of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from toolyard.core.json import JsonObject
from toolyard.core.offer import Offers


@dataclass(frozen=True, slots=True)
class Completion:
    """What may follow: `reference` is MCP's `ref/prompt` or `ref/resource` under the provider's own name or URI,
    `given` the arguments that are settled already."""

    reference: JsonObject
    argument: str
    value: str
    given: JsonObject = field(default_factory=dict[str, str])


@runtime_checkable
class Offering(Protocol):
    """A provider with resources or prompts. Reads and gets come through `call`, with a tool whose `offer` is set.

    What it says by `on_update` are URIs of resources that are others than before.
    """

    async def offers(self) -> Offers:
        """The current lists; one that cannot be had is empty. Raises `ProviderError` when the upstream is lost."""
        ...

    async def complete(self, completion: Completion) -> JsonObject:
        """MCP's `completion` object: `{values, total?, hasMore?}`. Raises `CallError`."""
        ...

    async def follow(self, uris: frozenset[str]) -> None:
        """From now on tell of changes of exactly these resources. Raises `ProviderError`."""
        ...

    def on_update(self, notify: Callable[[str], None]) -> None: ...
