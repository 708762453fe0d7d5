"""Which Host and Origin a request may carry: the defence against DNS rebinding and foreign web pages."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from toolyard.faces.mcp.wire import INVALID_REQUEST, RpcError

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_NOBODY = {"", "0.0.0.0", "[::]"}
"""Addresses to listen on that are nobody's name: a web page may use them to reach a local server."""
_REMEMBERED = 256


class HostGuard:
    """Allows the loopback names and the names it is given, with any port.

    `names` are host names, `host:port` pairs or URLs; `*` allows everything (behind a proxy that checks).
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        given = list(names)
        self._open = "*" in given
        self._names = frozenset({*LOOPBACK_NAMES, *(_host_name(name) for name in given)} - _NOBODY)
        self._allowed: set[bytes] = set()

    def check(self, host: bytes | None, origin: bytes | None) -> None:
        """
        Raises:
            RpcError: a foreign Host (421) or Origin (403).
        """
        if host not in self._allowed and not self._allows(host):
            raise RpcError(
                INVALID_REQUEST,
                "This Host is not served here. Use the public URL (--public-url), or name the host in the manifest's "
                "settings.allowed_hosts.",
                status=421,
            )
        if origin is not None and origin not in self._allowed and not self._allows(origin):
            raise RpcError(INVALID_REQUEST, "Requests from this Origin are not accepted.", status=403)

    def _allows(self, value: bytes | None) -> bool:
        if self._open:
            return True
        if value is None or _host_name(value.decode("latin-1")) not in self._names:
            return False
        if len(self._allowed) < _REMEMBERED:
            self._allowed.add(value)
        return True


def _host_name(text: str) -> str:
    """`https://Example.com:8443/x` or `example.com:8443` -> `example.com`; what cannot be read -> ``."""
    try:
        parts = urlsplit(text if "//" in text else f"//{text}")
        name = parts.hostname
        _ = parts.port
    except ValueError:
        return ""
    if not name or "@" in parts.netloc:
        return ""
    return f"[{name}]" if ":" in name else name
