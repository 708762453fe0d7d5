"""What people outside are told about a call that waits."""

from __future__ import annotations

from dataclasses import dataclass

from toolyard.core.clock import rfc3339
from toolyard.core.json import JsonObject, JsonValue, dumps

_LONGEST_ARGUMENTS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """`id` is the approval's, the same for every delivery of it; times are epoch seconds; `url` is where to decide."""

    id: str
    tool: str
    who: str
    server: str | None
    session: str | None
    why: str
    created: float
    deadline: float
    url: str
    arguments: JsonObject

    def to_wire(self, *, include_arguments: bool) -> dict[str, JsonValue]:
        """The webhook's body. Without the values, the names of the arguments are there."""
        wire: dict[str, JsonValue] = {
            "type": "approval.requested",
            "id": self.id,
            "tool": self.tool,
            "principal": self.who,
            "server": self.server,
            "session": self.session,
            "why": self.why,
            "created": rfc3339(self.created),
            "deadline": rfc3339(self.deadline),
            "url": self.url,
            "argument_names": sorted(self.arguments),
        }
        if include_arguments:
            wire["arguments"] = self.arguments
        return wire

    @property
    def title(self) -> str:
        return f"Decision needed: {self.tool}"

    def text(self, *, include_arguments: bool) -> str:
        """The message for people, as plain text."""
        lines = [
            f"{self.who} asks to call {self.tool}" + (f" through {self.server}." if self.server else "."),
            f"Asked because: {self.why}",
            f"Decide before {rfc3339(self.deadline)}: {self.url}",
        ]
        if include_arguments:
            shown = dumps(self.arguments).decode()
            cut = shown if len(shown) <= _LONGEST_ARGUMENTS else f"{shown[:_LONGEST_ARGUMENTS]} ... (cut)"
            lines.append(f"Arguments: {cut}")
        return "\n".join(lines)
