"""The console's session cookie: its name, how it is set, and how it is read from a request."""

from __future__ import annotations

from collections.abc import Iterable

from toolyard.identity.operators import ConsoleSession

Headers = Iterable[tuple[bytes, bytes]]


def is_secure(public_url: str) -> bool:
    return public_url.lower().startswith("https:")


def cookie_name(public_url: str) -> str:
    """Over https the `__Host-` prefix: no neighbouring subdomain can plant a session."""
    return "__Host-toolyard_session" if is_secure(public_url) else "toolyard_session"


def set_cookie(session: ConsoleSession, public_url: str, *, now: float) -> str:
    """The `Set-Cookie` value that opens a session in a browser."""
    return _cookie(public_url, session.cookie, max(0, int(session.expires - now)))


def clear_cookie(public_url: str) -> str:
    """The `Set-Cookie` value that ends it."""
    return _cookie(public_url, "", 0)


def header(headers: Headers, name: bytes) -> str | None:
    """The first header of that lower-case name."""
    return next((value.decode("latin-1") for key, value in headers if key == name), None)


def read_cookie(headers: Headers, public_url: str) -> str | None:
    """The session cookie of a request."""
    wanted = cookie_name(public_url)
    for key, value in headers:
        if key == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                name, _, content = pair.strip().partition("=")
                if name == wanted and content:
                    return content
    return None


def _cookie(public_url: str, value: str, max_age: int) -> str:
    secure = "; Secure" if is_secure(public_url) else ""
    return f"{cookie_name(public_url)}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}"
