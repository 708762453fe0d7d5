"""`Idempotency-Key` on writes: the first answer is kept and given again (docs/decisions/052).

What is kept is an answer that did something (2xx). A refusal did nothing, so the same request may be tried again. An
answer that holds a secret (`Cache-Control: no-store`) is never stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from functools import partial

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolyard.core.clock import Clock
from toolyard.core.errors import BadInput, Conflict
from toolyard.core.ids import new_id
from toolyard.core.json import dumps
from toolyard.core.principal import Principal
from toolyard.faces.http.body import replayed
from toolyard.store import idempotency as rows
from toolyard.store.base import Store
from toolyard.store.idempotency import Claim

KEPT_FOR = 24 * 3600.0
CLAIM_FOR = 600.0
"""Seconds after which a key that was never answered may be used again; at once, when the node that had it died."""
LARGEST_KEPT = 8 * 1024 * 1024
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_BOUNDARY = re.compile(rb'boundary="?([^";,]+)"?')
_KEPT_HEADERS = frozenset({b"content-type", b"location"})


def checked_key(text: str) -> str:
    """
    Raises:
        BadInput: no key that can be kept.
    """
    if not _KEY.fullmatch(text):
        raise BadInput(
            "The Idempotency-Key cannot be used.",
            where="header:Idempotency-Key",
            suggestion="Use 1 to 255 printable ASCII characters without spaces, such as a UUID.",
        )
    return text


@dataclass(slots=True)
class _Answer:
    """What the application sent, as it goes by."""

    status: int = 0
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    complete: bool = False

    def note(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = tuple(message["headers"])
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
            self.complete = not message.get("more_body", False)

    @property
    def did_something(self) -> bool:
        return self.complete and 200 <= self.status < 300

    @property
    def may_be_kept(self) -> bool:
        secret = any(name.lower() == b"cache-control" and b"no-store" in value for name, value in self.headers)
        return not secret and len(self.body) <= LARGEST_KEPT


class Idempotency:
    def __init__(self, store: Store, clock: Clock, node_id: str) -> None:
        self._store = store
        self._clock = clock
        self._node_id = node_id
        self._answering: dict[tuple[str, str], asyncio.Event] = {}

    async def answer(
        self, app: ASGIApp, scope: Scope, body: bytes, receive: Receive, send: Send, *, principal: Principal, key: str
    ) -> None:
        """Let `app` answer, or give its first answer again.

        Raises:
            BadInput: a key that cannot be kept.
            Conflict: the key came with another request before, or its answer is not there to be given again.
        """
        caller, key = f"{principal.kind}:{principal.id}", checked_key(key)
        while first := self._answering.get((caller, key)):  # a duplicate on this node waits for its turn
            await first.wait()
        done = self._answering[caller, key] = asyncio.Event()
        try:
            await self._answer_once(app, scope, body, receive, send, caller=caller, key=key)
        finally:
            del self._answering[caller, key]
            done.set()

    async def _answer_once(
        self, app: ASGIApp, scope: Scope, body: bytes, receive: Receive, send: Send, *, caller: str, key: str
    ) -> None:
        owner, request_hash, now = f"{self._node_id}/{new_id('idem')}", _request_hash(scope, body), self._clock.now()
        claim = await self._store.tx(
            partial(
                rows.claim,
                principal=caller,
                key=key,
                request_hash=request_hash,
                owner=owner,
                now=now,
                expires=now + CLAIM_FOR,
            )
        )
        if claim.owner != owner:
            await _again(claim, request_hash)(scope, receive, send)
            return
        answer = _Answer()

        async def send_and_note(message: Message) -> None:
            answer.note(message)
            if answer.did_something:  # on disk before the client has the whole of it
                await self._keep(caller, key, owner, answer)
            await send(message)

        try:
            await app(scope, replayed(body, receive), send_and_note)
        finally:
            if not answer.did_something:
                await self._store.tx(partial(rows.release, principal=caller, key=key, owner=owner))

    async def _keep(self, caller: str, key: str, owner: str, answer: _Answer) -> None:
        headers = {name.decode(): value.decode("latin-1") for name, value in answer.headers if name in _KEPT_HEADERS}
        await self._store.tx(
            partial(
                rows.answer,
                principal=caller,
                key=key,
                owner=owner,
                status=answer.status,
                headers=dumps(headers).decode(),
                body=answer.body.decode() if answer.may_be_kept else None,
                expires=self._clock.now() + KEPT_FOR,
            )
        )


def _again(claim: Claim, request_hash: str) -> Response:
    if claim.request_hash != request_hash:
        raise Conflict(
            "This Idempotency-Key came with another request before.", suggestion="Use a new key for a new request."
        )
    if claim.status is None:
        raise Conflict(
            "A request with this Idempotency-Key is being answered right now.", suggestion="Try again in a moment."
        )
    if claim.body is None:
        raise Conflict(
            "This request was answered already, and its answer was not kept because it held a secret or was too large.",
            suggestion="Look at what it made, or send it again with a new Idempotency-Key.",
        )
    headers = {"Idempotent-Replayed": "true"}
    headers.update(orjson.loads(claim.headers or "{}"))
    return Response(claim.body, status_code=claim.status, headers=headers)


def _request_hash(scope: Scope, body: bytes) -> str:
    """Over method, address and body. A multipart boundary is chosen anew by each retry, so it does not count."""
    kind = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    boundary = _BOUNDARY.search(kind)
    if boundary:
        body = body.replace(boundary[1], b"")
    digest = hashlib.sha256()
    for part in (scope["method"].encode(), scope["path"].encode(), scope.get("query_string", b""), body):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
