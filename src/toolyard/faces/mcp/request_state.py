"""`requestState`: what a modern client hands back with its answers, sealed so that only we can read or make it.

base64url(version, nonce, AES-256-GCM of a JSON array). It names the call and binds it to the principal, the server, the
method, the name and the arguments; everything else is in the call's rows. It may be presented again: an answer counts
once by its row, and a call that ended is answered with its recorded result. The store keeps the key, for all nodes.
"""

from __future__ import annotations

import hashlib
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import orjson

from toolyard.core.clock import Clock, SystemClock
from toolyard.core.json import JsonObject, canonical
from toolyard.faces.mcp.wire import INVALID_PARAMS, RpcError
from toolyard.store import kept
from toolyard.store.base import Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_NAME = "mcp.request-state-key"
LIFETIME = 24 * 3600.0
"""Seconds; the questions themselves are open for less."""
_VERSION = b"\x01"
_NONCE_BYTES = 12
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Bound:
    """What a state belongs to: the same request, of the same principal, at the same server."""

    principal: str
    server: str
    method: str
    name: str
    arguments: JsonObject

    def digest(self) -> str:
        parts = [self.principal, self.server, self.method, self.name, canonical(self.arguments).decode()]
        return hashlib.sha256(orjson.dumps(parts)).hexdigest()[:32]


class RequestStates:
    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._cipher: AESGCM | None = None

    async def seal(self, call_id: str, bound: Bound) -> str:
        cipher = self._cipher or await self._load()
        nonce = secrets.token_bytes(_NONCE_BYTES)
        payload = orjson.dumps([call_id, bound.digest(), int(self._clock.now() + LIFETIME)])
        return urlsafe_b64encode(_VERSION + nonce + cipher.encrypt(nonce, payload, _VERSION)).decode().rstrip("=")

    async def open(self, state: object, bound: Bound) -> str:
        """The call's id.

        Raises:
            RpcError: it is none of ours, has run out, or belongs to another request (-32602).
        """
        from cryptography.exceptions import InvalidTag

        cipher = self._cipher or await self._load()
        if not isinstance(state, str) or not 0 < len(state) <= _LONGEST:
            raise _refused("is no state that this server gave out")
        try:
            sealed = urlsafe_b64decode(state + "=" * (-len(state) % 4))
            nonce, text = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
            call_id, digest, expires = orjson.loads(cipher.decrypt(nonce, text, sealed[:1]))
        except (ValueError, InvalidTag):
            raise _refused("is no state that this server gave out") from None
        if expires < self._clock.now():
            raise _refused("has run out")
        if digest != bound.digest():
            raise _refused("belongs to another request; send the same one again, with the answers")
        return str(call_id)

    async def _load(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        fresh = secrets.token_hex(32)
        key = await self._store.tx(partial(kept.get_or_create, name=KEY_NAME, value=fresh))
        self._cipher = AESGCM(bytes.fromhex(key))
        return self._cipher


def _refused(why: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"params.requestState {why}.")
