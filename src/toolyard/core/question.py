"""A question that a running tool asks through us: of the caller's user, of its model, or of its client.

MCP has three kinds, named by their methods: `elicitation/create`, `sampling/createMessage` and `roots/list`. A caller's
client says which of them it can answer (`Capabilities`); no other may be asked. Spec: 2026-07-28, "input required";
2025-11-25, "client features".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue

ELICITATION = "elicitation/create"
SAMPLING = "sampling/createMessage"
ROOTS = "roots/list"
DECLINED: JsonObject = {"action": "decline"}
"""The answer to a form that its caller cannot be shown."""

Capabilities: TypeAlias = frozenset[str]
"""Of `elicitation.form`, `elicitation.url`, `sampling`, `sampling.tools`, `roots`."""
NO_CAPABILITIES: Capabilities = frozenset()


def capabilities_from_wire(declared: JsonObject) -> Capabilities:
    """What a client's `capabilities` object lets us ask. Both eras write it alike; a bare `elicitation` means forms."""
    found: set[str] = set()
    elicitation = declared.get("elicitation")
    if isinstance(elicitation, Mapping):
        modes = [mode for mode in ("form", "url") if isinstance(elicitation.get(mode), Mapping)]
        found.update(f"elicitation.{mode}" for mode in modes or ("form",))
    sampling = declared.get("sampling")
    if isinstance(sampling, Mapping):
        found.add("sampling")
        if isinstance(sampling.get("tools"), Mapping):
            found.add("sampling.tools")
    if isinstance(declared.get("roots"), Mapping):
        found.add("roots")
    return frozenset(found)


def capabilities_to_wire(capabilities: Capabilities) -> dict[str, JsonObject]:
    """The object that tells an upstream the same."""
    wire: dict[str, JsonObject] = {}
    modes: dict[str, JsonValue] = {mode: {} for mode in ("form", "url") if f"elicitation.{mode}" in capabilities}
    if modes:
        wire["elicitation"] = modes
    if "sampling" in capabilities:
        wire["sampling"] = {"tools": {}} if "sampling.tools" in capabilities else {}
    if "roots" in capabilities:
        wire["roots"] = {}
    return wire


@dataclass(frozen=True, slots=True)
class Question:
    """One question, as its asker wrote it. `key` tells the questions of one round apart; `params` go on verbatim."""

    key: str
    method: str
    params: JsonObject

    @property
    def needs(self) -> str:
        """The capability of a client that can answer it."""
        if self.method == ELICITATION:
            return "elicitation.url" if self.params.get("mode") == "url" else "elicitation.form"
        if self.method == SAMPLING:
            return "sampling.tools" if self.params.get("tools") else "sampling"
        return "roots"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question on record: `key` is never used again within its call. Times are epoch seconds."""

    id: str
    call_id: str
    key: str
    method: str
    params: JsonObject
    created: float
    deadline: float
    answered: bool = False


def cannot_ask(question: Question) -> CallError:
    return CallError(
        ErrorCode.UPSTREAM,
        f"The tool asks for {question.method}, which the caller's client cannot answer ({question.needs}).",
        suggestion="Call it through a client that declares this capability.",
    )


class NeedsInput(Exception):
    """Raised by a provider whose upstream ended the request with questions instead of a result.

    `state` is the upstream's own, handed back to it with the answers.
    """

    def __init__(self, questions: Sequence[Question], state: str | None) -> None:
        super().__init__(f"{len(questions)} questions")
        self.questions = tuple(questions)
        self.state = state


Ask: TypeAlias = Callable[[Sequence[Question]], Awaitable[Mapping[str, JsonObject]]]
"""Asks all of them at once and waits for the last answer; by key, as the client gave them."""
LogSink: TypeAlias = Callable[[JsonObject], None]
"""Takes the params of one `notifications/message`: `{level, logger?, data}`. Must not block and must not raise."""
