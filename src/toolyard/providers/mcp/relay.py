"""What an upstream asks and logs while a tool runs, led to the call that it belongs to.

A legacy upstream asks by requests of its own on the session, and does not say for which call. So a session on which it
may ask belongs to one principal and one set of capabilities. What comes on the stream of a call is that call's; else
the latest of that principal's calls is meant.
A modern upstream ends the request with its questions instead (`needs_input`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

import orjson

from toolyard.core.errors import CallError, ErrorCode
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.question import ELICITATION, ROOTS, SAMPLING, NeedsInput, Question, capabilities_to_wire
from toolyard.providers.base import Invocation
from toolyard.providers.mcp.wire import CAPABILITIES_KEY, KEY_KEY, LOG_LEVEL_KEY, TASKS, Message

Reply = Callable[[bytes], None]
LONGEST_KEY = 200
_ASKABLE = (ELICITATION, SAMPLING, ROOTS)
_REFUSED = -32603
_NOTHING: JsonObject = {}
RETRY_PAUSES = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each time that a request is sent again because its answer was nothing but a state."""
_own: ContextVar[Invocation | None] = ContextVar("own call", default=None)
"""Of the task that reads the stream."""


class Relay:
    """Of one legacy session: the calls that run on it, the latest last."""

    def __init__(self) -> None:
        self._calls: list[Invocation] = []
        self._answering: dict[asyncio.Task[None], Invocation] = {}

    @contextmanager
    def serving(self, invocation: Invocation) -> Generator[None]:
        """While this call runs, it is asked and told."""
        self._calls.append(invocation)
        token = _own.set(invocation)
        try:
            yield
        finally:
            _own.reset(token)
            self._calls[:] = [call for call in self._calls if call is not invocation]
            for task in [task for task, asked in self._answering.items() if asked is invocation]:
                task.cancel()

    def ask(self, message: Message, reply: Reply) -> bool:
        """Take a request of the upstream; False when it is none that a caller can answer."""
        method = message.get("method")
        asked = self._meant
        if method not in _ASKABLE or asked is None or asked.ask is None:
            return False
        task = asyncio.create_task(self._answer(asked, message, reply))
        self._answering[task] = asked
        task.add_done_callback(self._answering.pop)
        return True

    def log(self, params: JsonValue) -> None:
        sink = self._meant.log if self._meant is not None else None
        if sink is not None and isinstance(params, dict):
            sink(params)

    @property
    def _meant(self) -> Invocation | None:
        own = _own.get()
        if any(call is own for call in self._calls):
            return own
        return self._calls[-1] if self._calls else None

    async def _answer(self, asked: Invocation, message: Message, reply: Reply) -> None:
        question = _question(str(message["method"]), message.get("params"))
        try:
            if asked.ask is None:
                return
            answers = await asked.ask([question])
        except CallError as error:
            refusal = {"code": _REFUSED, "message": error.message}
            reply(orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "error": refusal}))
            return
        reply(orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answers[question.key]}))


def _question(method: str, params: JsonValue) -> Question:
    """Its key is the one that a Toolyard behind us says, or else the method's first word."""
    asked: JsonObject = params if isinstance(params, dict) else _NOTHING
    meta = asked.get("_meta")
    key = meta.get(KEY_KEY) if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY:
        return Question(method.partition("/")[0], method, asked)
    kept = {name: value for name, value in meta.items() if name != KEY_KEY}
    others = {name: value for name, value in asked.items() if name != "_meta"}
    return Question(key, method, {**others, "_meta": kept} if kept else others)


def meta_of(invocation: Invocation) -> JsonObject:
    """What a modern request says of the actual caller, beside its trace."""
    if not invocation.may_ask and invocation.log_level is None:
        return invocation.trace
    meta: dict[str, JsonValue] = {**invocation.trace}
    if invocation.may_ask:
        meta[CAPABILITIES_KEY] = {**capabilities_to_wire(invocation.may_ask), "extensions": {TASKS: {}}}
    if invocation.log_level is not None:
        meta[LOG_LEVEL_KEY] = invocation.log_level
    return meta


def asked_of(invocation: Invocation) -> dict[str, JsonValue]:
    """The params of the request itself: of `tools/call`, or of the read or get that the tool stands for."""
    if invocation.tool.offer:
        return {**invocation.arguments}
    return {"name": invocation.tool.name, "arguments": invocation.arguments}


def params_of(invocation: Invocation) -> dict[str, JsonValue]:
    params = asked_of(invocation)
    if invocation.answers:
        params["inputResponses"] = dict(invocation.answers)
    if invocation.upstream_state is not None:
        params["requestState"] = invocation.upstream_state
    return params


def state_alone(result: JsonObject) -> str | None:
    """The state with which an upstream that asks nothing wants the request sent again: it is not done yet."""
    if result.get("resultType") != "input_required" or result.get("inputRequests"):
        return None
    state = result.get("requestState")
    return state if isinstance(state, str) else None


def needs_input(result: JsonObject) -> NeedsInput:
    """The questions of an `InputRequiredResult`.

    Raises:
        CallError: it asks nothing, in the end, or nothing that we know.
    """
    requests, state = result.get("inputRequests"), result.get("requestState")
    questions: list[Question] = []
    for key, wanted in (requests if isinstance(requests, dict) else _NOTHING).items():
        method = wanted.get("method") if isinstance(wanted, dict) else None
        params = wanted.get("params") if isinstance(wanted, dict) else None
        if method not in _ASKABLE:
            raise CallError(ErrorCode.UPSTREAM, f"The tool asks for {method!r}, which is not known here.")
        questions.append(Question(key, str(method), params if isinstance(params, dict) else {}))
    if not questions:
        raise CallError(ErrorCode.UPSTREAM, "The tool asks for input, but says not for what.")
    return NeedsInput(questions, state if isinstance(state, str) else None)
