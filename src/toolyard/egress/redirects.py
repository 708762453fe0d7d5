"""Which redirects we follow ourselves: GET and HEAD, at most five, and no credential crosses an origin.

aiohttp's own following keeps `X-Api-Key`-like headers across origins and turns a POST into a GET.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urljoin, urlsplit

LONGEST_CHAIN = 5
_STATUSES = frozenset({301, 302, 303, 307, 308})
_HARMLESS = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})


def next_location(method: str, url: str, status: int, location: str | None) -> str | None:
    """The absolute address to go on to, or None when the answer is to be handed back as it is."""
    if status not in _STATUSES or not location or method not in ("GET", "HEAD"):
        return None
    try:
        target = urljoin(url, location)
        parts = urlsplit(target)
    except ValueError:
        return None
    return target if parts.scheme in ("http", "https") and parts.hostname else None


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises `ValueError` for a bad port."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def headers_for(headers: Iterable[tuple[str, str]], before: str, after: str) -> list[tuple[str, str]]:
    """The headers that may go along from one address to the next: across origins only those that identify nobody."""
    if origin(before) == origin(after):
        return list(headers)
    return [(name, value) for name, value in headers if name.lower() in _HARMLESS]
