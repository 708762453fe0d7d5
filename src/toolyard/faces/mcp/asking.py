"""A call that asks its caller, and a call that waits for an approval its caller can see to: who is asked, and how.

| the call waits for | modern client | legacy client |
|---|---|---|
| answers to its tool's questions | `input_required`; the same request again, with answers | requests on its stream |
| its own user's confirmation (`pre_` tools) | a form, where the client has forms | the same |
| an operator's decision | a link to the approval's page, where the client has links | the same |
| anything else, or of a client that has neither | held with progress, then a handle | the same |

No answer of a client decides for an operator: a client could forge it, so to follow a link is all it can do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolyard.core.approval import AlreadyDecided, Gate, Waiting
from toolyard.core.call import CallOutcome
from toolyard.core.errors import BadInput, CallError, Forbidden, NotFound
from toolyard.core.json import JsonObject, JsonValue
from toolyard.core.principal import Principal
from toolyard.core.question import (
    ELICITATION,
    NO_CAPABILITIES,
    Capabilities,
    LogSink,
    Question,
    capabilities_from_wire,
)
from toolyard.faces.mcp.face import Context, FaceApp
from toolyard.faces.mcp.request_state import Bound
from toolyard.faces.mcp.sessions import Capability
from toolyard.faces.mcp.waiting import Patience
from toolyard.faces.mcp.wire import INVALID_PARAMS, META_KEY, META_SERVER_INFO, Era, RpcError, as_object, request

SETTLE = 0.02
"""Seconds in which further questions join the first: a legacy upstream sends each by itself, at once or not."""
APPROVAL = "approval"
"""The key of what is asked about an approval."""
_LEGACY_NAMES: Mapping[Capability, str] = {
    Capability.ELICITATION_FORM: "elicitation.form",
    Capability.ELICITATION_URL: "elicitation.url",
    Capability.SAMPLING: "sampling",
    Capability.ROOTS: "roots",
}


def may_ask(ctx: Context) -> Capabilities:
    """What this request's client can be asked; nothing, where no question could reach it."""
    if ctx.era is Era.MODERN:
        return capabilities_from_wire(ctx.capabilities) if ctx.capabilities else NO_CAPABILITIES
    if ctx.session is None or not ctx.session.capabilities or not ctx.may_stream:
        return NO_CAPABILITIES
    return frozenset(name for flag, name in _LEGACY_NAMES.items() if flag in ctx.session.capabilities)


@dataclass(frozen=True, slots=True)
class Talk:
    """One request's part in a call that may ask: what binds it, and how long it is held for somebody else."""

    ctx: Context
    bound: Bound
    hold: float | None
    patience: Patience | None
    log: LogSink | None = None

    async def go_on(self, outcome: CallOutcome) -> CallOutcome | JsonObject:
        """From an open call to its end, or to the `InputRequiredResult` that asks for more. It may stay open."""
        if self.ctx.era is Era.MODERN:
            return await self._in_turns(outcome, held=False)
        return await self._on_the_stream(outcome)

    async def taken_up(self, state: object, answers: object) -> CallOutcome | JsonObject:
        """The same request again, with what its client answered.

        Raises:
            RpcError: the state is not this request's, or an answer is of the wrong shape (-32602).
        """
        given = by_key(answers)
        call_id = await self.ctx.face.states.open(state, self.bound)
        calls, principal = self.ctx.face.app.calls, self.ctx.principal
        self.ctx.running.cancel = lambda: calls.cancel(call_id, principal)
        try:
            await self._stands(call_id)  # what it reports once it is answered is heard here
            await self.ctx.face.app.questions.answer(call_id, given, principal)
            outcome = await self._stands(call_id)
            if outcome.waiting is not None and outcome.waiting.kind == "approval" and APPROVAL in given:
                await decide(self.ctx.face.app, principal, outcome.waiting.id, given[APPROVAL])
            return await self._in_turns(await self._next(outcome.call_id), held=True)
        except BadInput as error:
            raise RpcError(INVALID_PARAMS, f"params.inputResponses: {error.message}") from error
        except NotFound as error:
            raise RpcError(INVALID_PARAMS, "params.requestState names a call that is gone.") from error

    async def answered_ahead(self, outcome: CallOutcome, answers: object) -> CallOutcome | JsonObject:
        """The first request, with answers to questions that it has not heard yet. Keys that are not asked are ignored.

        Raises:
            RpcError: an answer is of the wrong shape (-32602). The call has ended: nobody holds a state to go on with.
        """
        if outcome.waiting is None or outcome.waiting.kind != "question" or self.ctx.era is Era.LEGACY:
            return await self.go_on(outcome)
        try:
            await self.ctx.face.app.questions.answer(outcome.call_id, by_key(answers), self.ctx.principal)
        except BadInput as error:
            await self.ctx.face.app.calls.cancel(outcome.call_id, self.ctx.principal)
            raise RpcError(INVALID_PARAMS, f"params.inputResponses: {error.message}") from error
        return await self._in_turns(await self._next(outcome.call_id), held=True)

    async def _in_turns(self, outcome: CallOutcome, *, held: bool) -> CallOutcome | JsonObject:
        if outcome.state.is_final or outcome.waiting is None:
            return outcome
        asked = await self._asked(outcome.waiting)
        if not asked and not held:
            return await self._in_turns(await self._next(outcome.call_id), held=True)
        if not asked:
            return outcome
        if outcome.waiting.kind == "question":
            await asyncio.sleep(SETTLE)
            outcome = await self._stands(outcome.call_id)
            if outcome.waiting is None:  # answered by somebody else meanwhile, or over
                return await self._in_turns(await self._next(outcome.call_id), held=True)
            asked = await self._asked(outcome.waiting)
        requests: dict[str, JsonValue] = {
            question.key: {"method": question.method, "params": question.params} for question in asked.values()
        }
        return {
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": await self.ctx.face.states.seal(outcome.call_id, self.bound),
            "_meta": {META_SERVER_INFO: self.ctx.face.server_info},
        }

    async def _on_the_stream(self, outcome: CallOutcome) -> CallOutcome:
        sent: set[str] = set()
        while not outcome.state.is_final and outcome.waiting is not None:
            asked = await self._asked(outcome.waiting)
            for question_id, question in asked.items():
                if question_id not in sent:
                    self.ctx.push(request(question_id, question.method, _with_key(question)))
            sent |= asked.keys()
            following = await self._next(outcome.call_id, known=frozenset(sent))
            if following.waiting is not None and following.waiting.kind == outcome.waiting.kind == "approval":
                return following
            outcome = following
        return outcome

    async def _next(self, call_id: str, known: frozenset[str] = frozenset()) -> CallOutcome:
        patience = self.patience
        return await self.ctx.face.app.calls.follow(
            call_id,
            self.ctx.principal,
            hold=self.hold,
            known=known,
            progress=patience and patience.progress,
            log=self.log,
            on_wait=patience and patience.waits,
        )

    async def _stands(self, call_id: str) -> CallOutcome:
        """How it stands now, without waiting."""
        progress = self.patience and self.patience.progress
        follow = self.ctx.face.app.calls.follow
        return await follow(call_id, self.ctx.principal, hold=0.0, progress=progress, log=self.log)

    async def _asked(self, waiting: Waiting) -> dict[str, Question]:
        """What this very client can be asked now, by the id of its row."""
        able = may_ask(self.ctx)
        if waiting.kind == "question":
            return {
                asked.id: question
                for asked in waiting.questions
                if (question := Question(asked.key, asked.method, asked.params)).needs in able
            }
        if waiting.kind != "approval":
            return {}
        question = await about_approval(self.ctx, waiting, able)
        return {} if question is None else {waiting.id: question}


def _with_key(question: Question) -> JsonObject:
    """A legacy request has no place for its key; a Toolyard before us finds it in `_meta`."""
    meta = as_object(question.params.get("_meta")) or {}
    return {**question.params, "_meta": {**meta, META_KEY: question.key}}


def by_key(answers: object) -> Mapping[str, Any]:
    """
    Raises:
        RpcError: `inputResponses` are no object (-32602).
    """
    given = as_object(answers) if answers is not None else {}
    if given is None:
        raise RpcError(INVALID_PARAMS, "params.inputResponses must be an object: answers by key.")
    return given


async def about_approval(ctx: Context, waiting: Waiting, able: Capabilities) -> Question | None:
    """How this client can see to an approval."""
    approval = await ctx.face.app.approvals.get(waiting.id)
    what = f"{approval.tool} with {approval.arguments[:2000]}"
    if approval.gate is Gate.USER and "elicitation.form" in able:
        schema: JsonObject = {
            "type": "object",
            "properties": {"approve": {"type": "boolean", "title": "Run it", "description": "Leave off to refuse."}},
            "required": ["approve"],
        }
        form: JsonObject = {"mode": "form", "message": f"Run {what}?", "requestedSchema": schema}
        return Question(APPROVAL, ELICITATION, form)
    if approval.gate is Gate.OPERATOR and "elicitation.url" in able and waiting.url:
        link: dict[str, JsonValue] = {
            "mode": "url",
            "message": f"{what} waits for an operator's decision.",
            "url": waiting.url,
        }
        if ctx.era is Era.LEGACY:
            link["elicitationId"] = waiting.id
        return Question(APPROVAL, ELICITATION, link)
    return None


async def decide(app: FaceApp, principal: Principal, approval_id: str, answer: object) -> None:
    """The user's own confirmation. What is an operator's is left alone, whatever the client says.

    Raises:
        BadInput: the answer has no action.
    """
    approval = await app.approvals.get(approval_id)
    if approval.gate is not Gate.USER or approval.principal != principal.label:
        return
    given = as_object(answer) or {}
    action = given.get("action")
    if action not in ("accept", "decline", "cancel"):
        raise BadInput(f"the answer to {APPROVAL!r} has no action.", suggestion="accept, decline or cancel")
    if action == "cancel":
        return
    content = as_object(given.get("content")) or {}
    agreed = action == "accept" and content.get("approve") is True
    try:
        await app.approvals.decide(approval_id, decision="approve" if agreed else "reject", principal=principal)
    except (AlreadyDecided, Forbidden, CallError):
        return  # what the call does next tells the client


async def answered(app: FaceApp, message: Mapping[str, Any], principal: Principal) -> None:
    """A legacy client's response to a request of ours, on whichever node it arrives. One that nobody awaits is dropped.

    Raises:
        RpcError: a result of the wrong shape (-32602).
    """
    asked_id = message.get("id")
    if not isinstance(asked_id, str):
        return
    error = as_object(message.get("error"))
    answer: Any = message.get("result") if error is None else {"error": error}
    try:
        if asked_id.startswith("appr_"):
            await decide(app, principal, asked_id, answer if error is None else {"action": "cancel"})
        else:
            await app.questions.answer_one(asked_id, answer, principal)
    except NotFound:
        return
    except BadInput as wrong:
        raise RpcError(INVALID_PARAMS, wrong.message, status=400) from wrong
