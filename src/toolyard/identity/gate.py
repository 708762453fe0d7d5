"""The gate: every face asks it who sent a request, and nobody else decides that.

In order: an API key in `Authorization: Bearer`; the console's cookie; and in demo mode on loopback, whoever is at this
machine. A key that is given and bad is refused also in demo mode.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from toolyard.core.errors import Forbidden, Unauthenticated
from toolyard.core.principal import LOCAL_OPERATOR, Principal
from toolyard.identity.cookies import Headers, header, read_cookie
from toolyard.identity.exposure import is_loopback
from toolyard.identity.keys import Keys
from toolyard.identity.operators import ConsoleSession, Operators

Scope = Mapping[str, Any]
"""An ASGI scope."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
CSRF_HEADER = "x-csrf-token"
_FORWARDING = frozenset(
    {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip"}
)
"""Headers that only a proxy sends."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request. `csrf` is what the console puts into its forms; empty for a key, which needs none."""

    principal: Principal
    session: ConsoleSession | None = None
    csrf: str = ""


class Gate:
    def __init__(self, keys: Keys, operators: Operators, *, demo: bool, host: str, public_url: str) -> None:
        """`host` is the address that is listened on, `public_url` the one that people type."""
        self._keys = keys
        self._operators = operators
        self._public_url = public_url
        self._open = demo and is_loopback(host)
        self._local = Caller(LOCAL_OPERATOR, csrf=secrets.token_urlsafe(32))

    async def principal(self, scope: Scope, *, csrf: str | None = None) -> Principal:
        """`caller`, for those who need no more than who it is."""
        return (await self.caller(scope, csrf=csrf)).principal

    async def caller(self, scope: Scope, *, csrf: str | None = None) -> Caller:
        """Decide who sent a request.

        `csrf` is the token of a form; without it the header `X-CSRF-Token` counts.

        Raises:
            Unauthenticated: no key and no login, or a bad one.
            Forbidden: a browser's request that another site may have caused.
        """
        headers = cast("Headers", scope["headers"])
        authorization = header(headers, b"authorization")
        if authorization is not None:
            return Caller(await self._by_key(authorization))
        cookie = read_cookie(headers, self._public_url)
        session = await self._operators.session(cookie) if cookie else None
        if session is not None:
            _refuse_forged(scope, headers, session, csrf)
            return Caller(session.operator, session, session.csrf)
        if self._open and _is_local(scope, headers):
            _refuse_other_sites(scope, headers)
            return self._local
        raise Unauthenticated(
            "This needs an API key or an operator's login.",
            suggestion="Send 'Authorization: Bearer <key>', or open the console and log in.",
        )

    async def _by_key(self, authorization: str) -> Principal:
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token:
            raise Unauthenticated(
                "The Authorization header holds no key.", suggestion="Write it as 'Authorization: Bearer <key>'."
            )
        return await self._keys.verify(token.strip())


def _refuse_forged(scope: Scope, headers: Headers, session: ConsoleSession, csrf: str | None) -> None:
    """A cookie travels with every request of a browser, whoever caused it; the token only with our own pages'."""
    if scope["method"] in SAFE_METHODS:
        return
    given = csrf if csrf is not None else header(headers, CSRF_HEADER.encode())
    if given is None or not hmac.compare_digest(given.encode(), session.csrf.encode()):
        raise Forbidden(
            "The request does not carry the console's CSRF token.", suggestion="Reload the page and try again."
        )


def _is_local(scope: Scope, headers: Headers) -> bool:
    """From this machine, to a name that only this machine has.

    The Host header keeps out DNS rebinding (a foreign name that points at 127.0.0.1), and the forwarding headers a
    proxy on this machine that speaks for others.
    """
    client = cast("tuple[str, int] | None", scope.get("client"))
    host = header(headers, b"host")
    return (
        client is not None
        and is_loopback(client[0])
        and host is not None
        and is_loopback(_without_port(host))
        and all(name not in _FORWARDING for name, _ in headers)
    )


def _refuse_other_sites(scope: Scope, headers: Headers) -> None:
    """Without a cookie there is no token to check: the browser's own word on where a request comes from must do.

    Programs send neither header. Pages of other local programs (an inspector on another port) are let in.
    """
    if scope["method"] in SAFE_METHODS:
        return
    origin = header(headers, b"origin")
    foreign = (
        header(headers, b"sec-fetch-site") == "cross-site"
        if origin is None
        else not is_loopback(urlsplit(origin).hostname or "")
    )
    if foreign:
        raise Forbidden(
            "Another site's page may not change anything here.",
            suggestion="Use the console, or send the request from a program with an API key.",
        )


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
