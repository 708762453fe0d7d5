"""What a tool's function may ask for besides its arguments, and how it fails on purpose."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from toolyard.core.call import Progress
from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.question import DECLINED, ELICITATION, ROOTS, SAMPLING, Question, cannot_ask
from toolyard.providers.base import Invocation

T = TypeVar("T")


class ToolError(CallError):
    """Raise it in a tool to fail with a message of your own, and a suggestion of what to do instead."""

    def __init__(self, message: str, *, suggestion: str | None = None) -> None:
        super().__init__(ErrorCode.UPSTREAM, message, suggestion=suggestion)


class Context:
    """The call a tool is running in. Ask for it with a parameter annotated `toolyard.Context`.

    `cancelled` is set when the caller gave up or time ran out: a sync function looks at it between pieces of work
    (`context.cancelled.is_set()`, or `.wait(seconds)` in place of a sleep); an async one is cancelled as usual.
    """

    def __init__(self, invocation: Invocation, updated: Callable[[str], None] | None = None) -> None:
        self.call_id = invocation.call_id
        self.principal = invocation.principal
        self.time_limit = invocation.time_limit
        """Seconds the call had when it began; those in which its caller is asked do not count."""
        self.cancelled = threading.Event()
        self._sink = invocation.progress
        self._log = invocation.log
        self._ask = invocation.ask
        self._updated = updated
        self._loop = asyncio.get_running_loop()

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports how far the work is. May be called from any thread; costs nothing when nobody listens."""
        if self._sink is not None and not self.cancelled.is_set():
            self._hand_over(self._sink, Progress(progress, total, message))

    def log(self, data: JsonValue, *, level: str = "info", logger: str | None = None) -> None:
        """Sends a log message to the caller, where it listens. May be called from any thread."""
        if self._log is not None and not self.cancelled.is_set():
            named: JsonObject = {"logger": logger} if logger is not None else {}
            self._hand_over(self._log, {"level": level, **named, "data": data})

    def resource_changed(self, uri: str) -> None:
        """Tells the clients that follow this resource of the same module. May be called from any thread."""
        if self._updated is not None:
            self._hand_over(self._updated, uri)

    async def elicit(self, message: str, schema: JsonObject, *, key: str = "answer") -> JsonObject:
        """Asks the caller's user by a form: `{action: accept | decline | cancel, content?}`. A caller that cannot be
        asked declines. `schema` is that of a flat object.
        """
        params: JsonObject = {"mode": "form", "message": message, "requestedSchema": schema}
        return (await self.ask(Question(key, ELICITATION, params)))[key]

    async def sample(self, params: JsonObject, *, key: str = "sample") -> JsonObject:
        """Has the caller's model answer; `params` and the answer as in MCP's `sampling/createMessage`.

        Raises:
            CallError: the caller's client has no model to ask.
        """
        return (await self.ask(Question(key, SAMPLING, params)))[key]

    async def roots(self, *, key: str = "roots") -> JsonObject:
        """The folders that the caller's client opened: `{roots: [{uri, name?}]}`.

        Raises:
            CallError: the caller's client tells of none.
        """
        return (await self.ask(Question(key, ROOTS, {})))[key]

    async def ask(self, *questions: Question) -> Mapping[str, JsonObject]:
        """Asks several things at once; the answers by key.

        Raises:
            CallError: the caller cannot be asked this.
        """
        if self._ask is not None:
            return await self._ask(questions)
        for question in questions:
            if question.method != ELICITATION:
                raise cannot_ask(question)
        return {question.key: DECLINED for question in questions}

    def _hand_over(self, sink: Callable[[T], None], message: T) -> None:
        if _running_loop() is self._loop:
            sink(message)
        else:
            self._loop.call_soon_threadsafe(sink, message)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
