"""Legacy session ids that carry their own session: signed, so that no node remembers them and a restart loses none.

`b64url(payload) "." b64url(HMAC-SHA-256)`. The payload is a JSON array: version, server id, principal, capability
bits, client name, nonce, issued-at. The key is kept in the store and shared by all nodes. Only a session that its
client ended (DELETE), or that set a log level or follows a resource, has a row.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntFlag
from functools import partial
from typing import Any

import orjson

from toolyard.core.clock import Clock, SystemClock
from toolyard.core.errors import StoreError
from toolyard.core.principal import Principal
from toolyard.faces.mcp.wire import INVALID_REQUEST, RpcError
from toolyard.store import ended_sessions, kept, session_notes
from toolyard.store.base import Connection, Store
from toolyard.store.session_notes import SessionNote

logger = logging.getLogger(__name__)

KEY_NAME = "mcp.session-key"
LIFETIME = 24 * 3600.0
"""Seconds after which a session id runs out; its client initializes again, unseen by its user."""
REFRESH_EVERY = 2.0
"""Seconds after which a session ended on another node is refused here."""
_COMMIT_LAG = 5.0
"""Seconds that a transaction of another node may be open before its row can be read."""
_LONGEST_CLIENT_NAME = 64
_REMEMBERED = 1024


class Capability(IntFlag):
    """What a legacy client declared that a server may ask of it."""

    NONE = 0
    ELICITATION_FORM = 1
    ELICITATION_URL = 2
    SAMPLING = 4
    ROOTS = 8


@dataclass(frozen=True, slots=True)
class Session:
    version: str
    server: str
    principal: str
    capabilities: Capability
    client: str
    nonce: str
    issued: float
    """Epoch seconds."""


def capabilities_of(declared: Mapping[str, Any]) -> Capability:
    """The bits of an `initialize` request's `capabilities`. `elicitation: {}` means forms, as before 2025-11-25."""
    found = Capability.NONE
    elicitation = declared.get("elicitation")
    if isinstance(elicitation, dict):
        if "form" in elicitation or not elicitation:
            found |= Capability.ELICITATION_FORM
        if "url" in elicitation:
            found |= Capability.ELICITATION_URL
    if "sampling" in declared:
        found |= Capability.SAMPLING
    if "roots" in declared:
        found |= Capability.ROOTS
    return found


def owner_of(principal: Principal) -> str:
    """What binds a session to who began it: ids are never reused, names may be."""
    return f"{principal.kind}:{principal.id}"


class Sessions:
    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._key: bytes | None = None
        self._recent: dict[bytes, Session] = {}
        self._ended: dict[str, float] = {}
        self._notes: dict[str, tuple[SessionNote, float]] = {}
        self._read_until = 0.0
        self._read_at = 0.0
        self._refreshing: asyncio.Task[None] | None = None

    async def begin(
        self, *, version: str, server: str, principal: Principal, capabilities: Capability, client: str
    ) -> tuple[str, Session]:
        """A new session and its id."""
        key = self._key or await self._load()
        session = Session(
            version=version,
            server=server,
            principal=owner_of(principal),
            capabilities=capabilities,
            client=client[:_LONGEST_CLIENT_NAME],
            nonce=secrets.token_urlsafe(12),
            issued=float(int(self._clock.now())),
        )
        return _sealed(session, key), session

    async def verify(self, session_id: bytes, *, server: str, principal: Principal) -> Session:
        """
        Raises:
            RpcError: 404 exactly, whatever is wrong with it: clients initialize again on that and on nothing else.
        """
        key = self._key or await self._load()
        if self._clock.monotonic() - self._read_at > REFRESH_EVERY and self._refreshing is None:
            self._refreshing = asyncio.ensure_future(self._refresh())
        session = self._opened(session_id, key)
        if (
            session is None
            or session.server != server
            or session.principal != owner_of(principal)
            or self._clock.now() - session.issued > LIFETIME
            or (self._ended and _digest(session_id) in self._ended)
        ):
            raise RpcError(
                INVALID_REQUEST, "There is no such session (any more). Begin a new one with initialize.", status=404
            )
        return session

    def _opened(self, session_id: bytes, key: bytes) -> Session | None:
        """The session in an id. The last few are remembered, only to save the arithmetic."""
        session = self._recent.get(session_id)
        if session is None:
            session = _opened(session_id, key)
            if session is not None:
                if len(self._recent) >= _REMEMBERED:
                    self._recent.clear()
                self._recent[session_id] = session
        return session

    async def end(self, session_id: bytes, session: Session) -> None:
        """From now on the id is refused with 404, on every node within `REFRESH_EVERY` seconds."""
        digest = _digest(session_id)
        await self._store.tx(partial(ended_sessions.end, digest=digest, expires=session.issued + LIFETIME))
        self._ended[digest] = session.issued + LIFETIME

    def note(self, session: Session) -> SessionNote:
        """What the session has set, as this node knows it: at most `REFRESH_EVERY` seconds old where it is in use."""
        known = self._notes.get(session.nonce)
        return SessionNote(session.nonce) if known is None else known[0]

    async def read_note(self, session: Session) -> SessionNote:
        """As it stands. What cannot be read now is as it was; a later look finds it."""
        try:
            note = await self._store.read(partial(session_notes.get, nonce=session.nonce))
        except StoreError as error:
            logger.warning("could not read what an MCP session has set: %s", error)
            return self.note(session)
        self._notes[session.nonce] = (note, session.issued + LIFETIME)
        return note

    async def change_note(self, session: Session, change: Callable[[SessionNote], SessionNote]) -> None:
        """`change` may run more than once, and may refuse by raising."""
        expires = session.issued + LIFETIME

        def write(c: Connection) -> SessionNote:
            changed = change(session_notes.get(c, session.nonce))
            session_notes.put(c, changed, expires=expires)
            return changed

        self._notes[session.nonce] = (await self._store.tx(write), expires)

    async def refreshed(self) -> None:
        """Wait for a look at the store that is under way."""
        if self._refreshing is not None:
            await self._refreshing

    async def _load(self) -> bytes:
        fresh = secrets.token_hex(32)
        key = bytes.fromhex(await self._store.tx(partial(kept.get_or_create, name=KEY_NAME, value=fresh)))
        await self._refresh()
        self._key = key
        return key

    async def _refresh(self) -> None:
        """Learn which sessions were ended or set something since the last look; forget those that have run out."""
        try:
            self._read_at = self._clock.monotonic()
            since = self._read_until - _COMMIT_LAG
            now, rows, notes = await self._store.read(partial(_news, since=since))
            self._ended.update(rows)
            self._notes.update({note.nonce: (note, expires) for note, expires in notes})
            for digest in [digest for digest, expires in self._ended.items() if expires < now]:
                del self._ended[digest]
            for nonce in [nonce for nonce, (_, expires) in self._notes.items() if expires < now]:
                del self._notes[nonce]
            self._read_until = now
        except StoreError as error:
            logger.warning("could not read which MCP sessions were ended: %s", error)
        finally:
            self._refreshing = None


def _news(c: Connection, *, since: float) -> tuple[float, list[tuple[str, float]], list[tuple[SessionNote, float]]]:
    now, ended = ended_sessions.ended_since(c, since)
    return now, ended, session_notes.changed_since(c, since)


def _sealed(session: Session, key: bytes) -> str:
    fields = [
        session.version,
        session.server,
        session.principal,
        int(session.capabilities),
        session.client,
        session.nonce,
        int(session.issued),
    ]
    payload = urlsafe_b64encode(orjson.dumps(fields)).rstrip(b"=")
    return (payload + b"." + _mac(payload, key)).decode()


def _opened(session_id: bytes, key: bytes) -> Session | None:
    payload, dot, mac = session_id.partition(b".")
    if not dot or not hmac.compare_digest(_mac(payload, key), mac):
        return None
    try:
        fields = orjson.loads(urlsafe_b64decode(payload + b"=" * (-len(payload) % 4)))
    except (BadBase64, ValueError):
        return None
    version, server, principal, bits, client, nonce, issued = fields
    return Session(version, server, principal, Capability(bits), client, nonce, float(issued))


def _mac(payload: bytes, key: bytes) -> bytes:
    return urlsafe_b64encode(hmac.digest(key, payload, "sha256")).rstrip(b"=")


def _digest(session_id: bytes) -> str:
    return hashlib.sha256(session_id).hexdigest()
