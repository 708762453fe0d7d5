"""What the catalog holds about one tool: its definition, the operator's settings, and whether it can be called."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolyard.catalog.inspection import appearance_of
from toolyard.core.tool import TaskMode, Tool

UNGROUPED = "Ungrouped"
"""The cluster of tools that name none."""


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What an operator decided about one tool; None leaves the tool's own value."""

    enabled: bool = True
    approval: str | None = None
    """`ask` or `never`."""
    time_limit: float | None = None
    """Seconds."""
    description: str | None = None
    approval_timeout: float | None = None
    """Seconds in which to decide about a call."""
    task: TaskMode | None = None
    """Whether MCP clients may be given a task in place of the result."""


DEFAULT_SETTINGS = ToolSettings()


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool in one snapshot.

    `reason` says why it cannot be called, and is None when it can. `appearance` is a digest of what a client is told
    about the tool apart from its name and description.
    """

    tool: Tool
    settings: ToolSettings = DEFAULT_SETTINGS
    available: bool = True
    reason: str | None = None
    appearance: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.appearance:
            object.__setattr__(self, "appearance", appearance_of(self.tool))

    @staticmethod
    def of(tool: Tool, appearance: str, settings: ToolSettings, *, available: bool, reason: str | None) -> Entry:
        """`reason` is the provider's; an operator's decision comes before it."""
        if not settings.enabled:
            reason = "An operator has switched this tool off."
        elif not available:
            reason = reason or f"The provider '{tool.namespace}' is not available."
        else:
            reason = None
        return Entry(tool, settings, available, reason, appearance)

    @property
    def id(self) -> str:
        return self.tool.id

    @property
    def description(self) -> str:
        """The operator's words, or else the tool's own."""
        return self.tool.description if self.settings.description is None else self.settings.description

    @property
    def cluster(self) -> str:
        return self.tool.cluster or UNGROUPED

    @property
    def task(self) -> TaskMode:
        """The operator's choice, or else the tool's own."""
        return self.settings.task or self.tool.task or "auto"

    @property
    def callable(self) -> bool:
        return self.settings.enabled and self.available


@dataclass(frozen=True, slots=True)
class Cluster:
    """A named group of tools, shown and deleted as one. `namespaces` are sorted, `entries` are sorted by id."""

    name: str
    namespaces: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """A tool that a provider offered and the catalog hides, and why."""

    namespace: str
    name: str
    """As it was offered, cut and escaped so that it can be shown."""
    reason: str
