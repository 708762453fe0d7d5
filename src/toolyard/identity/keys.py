"""API keys: `ty_<id>_<secret>`, stored as SHA-256, verified from memory.

The prefix lets a leaked key be found by a scanner (`ty_[a-z2-7]{12}_[A-Za-z0-9_-]{43}`), the id lets one be revoked
and named in the audit log without anybody knowing the secret.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import b32encode
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from toolyard.core.clock import Clock, SystemClock
from toolyard.core.errors import BadInput, Conflict, NotFound, Unauthenticated
from toolyard.core.principal import Principal, PrincipalKind, Scope
from toolyard.store import keys as rows
from toolyard.store.base import Store
from toolyard.store.keys import KeyRow

TRUSTED_FOR = 1.5
"""Seconds a verified key is believed without asking the store: a key revoked on another node dies within 2 s."""
LAST_USE_EVERY = 60.0
"""Seconds between two writes of a key's last use."""
LONGEST_NAME = 64
_TOKEN = re.compile(r"ty_([a-z2-7]{12})_[A-Za-z0-9_-]{43}")
_REFUSED = "The key is unknown, expired or revoked."
_REFUSED_SUGGESTION = "Ask an operator for a new key, or make one with `toolyard keys create`."


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key as people may see it: everything but the secret. Times are epoch seconds."""

    id: str
    name: str
    scopes: frozenset[Scope]
    created: float
    expires: float | None
    last_used: float | None
    revoked: float | None

    def is_live(self, now: float) -> bool:
        return self.revoked is None and (self.expires is None or self.expires > now)

    @property
    def principal(self) -> Principal:
        return Principal(PrincipalKind.KEY, self.id, self.name, self.scopes)


@dataclass(slots=True)
class _Known:
    principal: Principal
    expires: float
    believe_until: float
    """On the monotonic clock."""
    write_use_after: float


class Keys:
    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock: Clock = clock or SystemClock()
        self._known: dict[bytes, _Known] = {}
        self._revocations = 0

    async def create(self, name: str, scopes: Iterable[Scope], expires: float | None = None) -> tuple[KeyInfo, str]:
        """Make a key; the second value is its only copy.

        `expires` is in epoch seconds, None for never.

        Raises:
            BadInput: no name or one that cannot be printed, no scope, or an expiry that is past.
            Conflict: another live key has this name, and the audit log could not tell them apart.
        """
        now = self._clock.now()
        granted = frozenset(scopes)
        _check(name, granted, expires, now)
        key_id = b32encode(secrets.token_bytes(8))[:12].decode().lower()
        token = f"ty_{key_id}_{secrets.token_urlsafe(32)}"
        row = KeyRow(
            id=key_id,
            name=name,
            secret_hash=_digest(token).hex(),
            scopes=" ".join(sorted(granted)),
            created=now,
            expires=expires,
        )
        if not await self._store.tx(partial(rows.insert, row=row)):
            raise Conflict(
                f"There is a key named {name!r} already.", suggestion="Revoke it first, or choose another name."
            )
        return _info(row), token

    async def verify(self, token: str) -> Principal:
        """The principal of a key. A key seen lately costs one hash and one dict lookup.

        Raises:
            Unauthenticated: unknown, malformed, expired or revoked; the caller is not told which.
        """
        digest = _digest(token)
        known = self._known.get(digest)
        if known is None or self._clock.monotonic() >= known.believe_until:
            known = await self._look_up(token, digest)
        now = self._clock.now()
        if now >= known.expires:
            self._known.pop(digest, None)
            raise Unauthenticated(_REFUSED, suggestion=_REFUSED_SUGGESTION)
        if now >= known.write_use_after:
            known.write_use_after = now + LAST_USE_EVERY
            self._store.submit(partial(rows.touch, key_id=known.principal.id, at=now, at_most_every=LAST_USE_EVERY))
        return known.principal

    async def list(self) -> list[KeyInfo]:
        """All keys, newest first, revoked ones included."""
        return [_info(row) for row in await self._store.read(rows.all_keys)]

    async def get(self, key_id: str) -> KeyInfo:
        """
        Raises:
            NotFound: no such key.
        """
        row = await self._store.read(partial(rows.find, key_id=key_id))
        if row is None:
            raise NotFound(f"There is no key {key_id[:40]!r}.", suggestion="List them with GET /v1/keys.")
        return _info(row)

    async def revoke(self, key_id: str) -> KeyInfo:
        """End a key: at once on this node, within 2 s on any other.

        Raises:
            NotFound: no such key.
        """
        await self._store.tx(partial(rows.revoke, key_id=key_id, at=self._clock.now()))
        self._forget(key_id)
        return await self.get(key_id)

    async def _look_up(self, token: str, digest: bytes) -> _Known:
        before = self._known.pop(digest, None)
        match = _TOKEN.fullmatch(token)
        asked_at, revocations = self._clock.monotonic(), self._revocations
        row = await self._store.read(partial(rows.find, key_id=match[1])) if match else None
        if row is None or row.revoked is not None or not hmac.compare_digest(bytes.fromhex(row.secret_hash), digest):
            raise Unauthenticated(_REFUSED, suggestion=_REFUSED_SUGGESTION)
        known = _Known(
            principal=_info(row).principal,
            expires=float("inf") if row.expires is None else row.expires,
            believe_until=asked_at + TRUSTED_FOR,
            write_use_after=before.write_use_after if before else (row.last_used or 0.0) + LAST_USE_EVERY,
        )
        if revocations == self._revocations:  # else the row may be older than a revocation on this very node
            self._known[digest] = known
        return known

    def _forget(self, key_id: str) -> None:
        self._revocations += 1
        for digest in [digest for digest, known in self._known.items() if known.principal.id == key_id]:
            del self._known[digest]


def _check(name: str, scopes: frozenset[Scope], expires: float | None, now: float) -> None:
    if not (name.strip() == name and 0 < len(name) <= LONGEST_NAME and name.isprintable()):
        raise BadInput(
            f"{name[:80]!r} cannot be the name of a key.",
            where="name",
            suggestion=f"Use 1 to {LONGEST_NAME} printable characters without spaces around them, such as 'ci'.",
        )
    if not scopes:
        raise BadInput("A key needs at least one scope.", where="scopes", suggestion=f"Choose from {', '.join(Scope)}.")
    if expires is not None and not expires > now:
        raise BadInput("The key would have expired already.", where="expires", suggestion="Give a time to come.")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _info(row: KeyRow) -> KeyInfo:
    return KeyInfo(
        id=row.id,
        name=row.name,
        scopes=frozenset(Scope(scope) for scope in row.scopes.split()),
        created=row.created,
        expires=row.expires,
        last_used=row.last_used,
        revoked=row.revoked,
    )
