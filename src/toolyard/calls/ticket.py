"""What the job of a waiting call has to know to run it later, on any node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from toolyard.core.call import CallRequest, Origin
from toolyard.core.json import JsonObject
from toolyard.core.principal import Principal, PrincipalKind, Scope
from toolyard.core.question import NO_CAPABILITIES, Capabilities

KIND = "call"
"""Of jobs that run one call."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The request without its arguments, which are on record, and without what only its own node has."""

    call_id: str
    tool: str
    principal: Principal
    origin: Origin
    server: str | None
    session: str | None
    idempotency_key: str | None
    time_limit: float | None
    trace: Mapping[str, str]
    definition_hash: str
    """Of the tool as it was when it was called: what people approved."""
    after: str | None = None
    """The call that this one follows (`post_`)."""
    may_ask: Capabilities = NO_CAPABILITIES
    """What the caller's client could answer."""

    @staticmethod
    def of(request: CallRequest, definition_hash: str, *, after: str | None = None) -> Ticket:
        return Ticket(
            request.call_id,
            request.tool,
            request.principal,
            request.origin,
            request.server,
            request.session,
            request.idempotency_key,
            request.time_limit,
            request.trace,
            definition_hash,
            after,
            request.may_ask,
        )

    def request(self, arguments: JsonObject) -> CallRequest:
        return CallRequest(
            self.tool,
            arguments,
            self.principal,
            self.origin,
            server=self.server,
            idempotency_key=self.idempotency_key,
            time_limit=self.time_limit,
            call_id=self.call_id,
            trace=self.trace,
            session=self.session,
            may_ask=self.may_ask,
        )

    def to_wire(self) -> JsonObject:
        return {
            "call": self.call_id,
            "tool": self.tool,
            "principal": {
                "kind": self.principal.kind.value,
                "id": self.principal.id,
                "name": self.principal.name,
                "scopes": sorted(self.principal.scopes),
            },
            "origin": self.origin.value,
            "server": self.server,
            "session": self.session,
            "idempotency_key": self.idempotency_key,
            "time_limit": self.time_limit,
            "trace": dict(self.trace),
            "definition_hash": self.definition_hash,
            "after": self.after,
            "may_ask": sorted(self.may_ask),
        }

    @staticmethod
    def from_wire(wire: JsonObject) -> Ticket:
        who = cast("Mapping[str, str]", wire["principal"])
        scopes = cast("Sequence[str]", who["scopes"])
        return Ticket(
            call_id=str(wire["call"]),
            tool=str(wire["tool"]),
            principal=Principal(
                PrincipalKind(who["kind"]), who["id"], who["name"], frozenset(Scope(scope) for scope in scopes)
            ),
            origin=Origin(str(wire["origin"])),
            server=cast("str | None", wire["server"]),
            session=cast("str | None", wire["session"]),
            idempotency_key=cast("str | None", wire["idempotency_key"]),
            time_limit=cast("float | None", wire["time_limit"]),
            trace=cast("Mapping[str, str]", wire["trace"]),
            definition_hash=str(wire["definition_hash"]),
            after=cast("str | None", wire.get("after")),
            may_ask=frozenset(cast("Sequence[str]", wire.get("may_ask", ()))),
        )
