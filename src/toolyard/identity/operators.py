"""Operators: people at the console. They come in by a one-time link and stay by a cookie."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from functools import partial

from toolyard.core.clock import Clock, SystemClock
from toolyard.core.errors import Unauthenticated
from toolyard.core.principal import ALL_SCOPES, Principal, PrincipalKind
from toolyard.store import logins as rows
from toolyard.store.base import Connection, Store
from toolyard.store.logins import SessionRow

LINK_LIFETIME = 3600.0
"""Seconds until an unused login link is worthless."""
SESSION_LIFETIME = 7 * 24 * 3600.0
TRUSTED_FOR = 1.5
"""Seconds a session is believed without asking the store (logout on another node works within 2 s)."""
_LARGEST_CACHE = 1024


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """`cookie` is the secret the browser keeps; `csrf` must come back with every change it asks for."""

    cookie: str
    csrf: str
    operator: Principal
    expires: float


class Operators:
    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock: Clock = clock or SystemClock()
        self._known: dict[str, tuple[float, ConsoleSession]] = {}

    async def first_link(self, base_url: str) -> str | None:
        """A login link to print at start, or None when somebody has logged in before.

        Links of earlier starts that nobody used stop working.
        """
        token, now = secrets.token_urlsafe(32), self._clock.now()
        token_hash = _hash(token)

        def write(connection: Connection) -> bool:
            if rows.any_login_yet(connection):
                return False
            rows.drop_unused_links(connection, token_hash)
            rows.insert_link(connection, token_hash, now, now + LINK_LIFETIME)
            return True

        return _link(base_url, token) if await self._store.tx(write) else None

    async def new_link(self, base_url: str) -> str:
        """Another one-time login link: for a second operator, or one whose session has ended."""
        token, now = secrets.token_urlsafe(32), self._clock.now()
        await self._store.tx(
            partial(rows.insert_link, token_hash=_hash(token), created=now, expires=now + LINK_LIFETIME)
        )
        return _link(base_url, token)

    async def redeem(self, token: str) -> ConsoleSession:
        """Use a link up and open a session.

        Raises:
            Unauthenticated: unknown, used before, or expired; the caller is not told which.
        """
        now = self._clock.now()
        session = ConsoleSession(
            cookie=secrets.token_urlsafe(32),
            csrf=secrets.token_urlsafe(32),
            operator=_operator("operator"),
            expires=now + SESSION_LIFETIME,
        )
        row = SessionRow(_hash(session.cookie), session.csrf, session.operator.name, now, session.expires)
        if not await self._store.tx(partial(rows.redeem, token_hash=_hash(token), session=row)):
            raise Unauthenticated(
                "This login link was used before, has expired, or never existed.",
                suggestion="Make a new one on the server with `toolyard login-link`.",
            )
        return session

    async def session(self, cookie: str) -> ConsoleSession | None:
        """The session of a cookie, or None when there is none any more."""
        id_hash = _hash(cookie)
        believe_until, session = self._known.get(id_hash, (0.0, None))
        if session is None or self._clock.monotonic() >= believe_until:
            session = await self._look_up(cookie, id_hash)
        return session if session is not None and self._clock.now() < session.expires else None

    async def logout(self, cookie: str) -> None:
        """End a session: at once on this node, within 2 s on any other."""
        id_hash = _hash(cookie)
        await self._store.tx(partial(rows.delete_session, id_hash=id_hash))
        self._known.pop(id_hash, None)

    async def _look_up(self, cookie: str, id_hash: str) -> ConsoleSession | None:
        self._known.pop(id_hash, None)
        asked_at = self._clock.monotonic()
        row = await self._store.read(partial(rows.find_session, id_hash=id_hash))
        if row is None:
            return None
        session = ConsoleSession(cookie, row.csrf, _operator(row.operator), row.expires)
        if len(self._known) >= _LARGEST_CACHE:
            self._known.clear()
        self._known[id_hash] = (asked_at + TRUSTED_FOR, session)
        return session


def _operator(name: str) -> Principal:
    return Principal(PrincipalKind.OPERATOR, name, name, ALL_SCOPES)


def _link(base_url: str, token: str) -> str:
    return f"{base_url.rstrip('/')}/login/{token}"


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
